/* SPDX-License-Identifier: MIT */
#include "doctor.h"

#include "../../proto/status.h"
#include "../doctor/log.h"
#include "../doctor/run.h"
#include "words.h"

#include <stdio.h>

int cmd_doctor(int argc, char **argv)
{
    struct words words;
    struct err err;
    int exit_code = words_parse(&words, argc, argv, WORD_RUN | WORD_JSON | WORD_LOG);
    if (exit_code >= 0)
        return exit_code;
    bool json = words.given & WORD_JSON;
    int rc = words.log ? doctor_log(stdout, words.log, json, &err)
                       : doctor_run(stdout, words.run, json, &err);
    return rc < 0 ? words_tell(&err) : rc;
}
