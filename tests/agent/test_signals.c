/* SPDX-License-Identifier: MIT */
#include "../../agent/signals.h"
#include "../harness.h"

TEST(every_signal_has_a_name_and_those_that_tell_something_a_meaning)
{
    char name[SIGNALS_NAME_BYTES];
    unsigned told = 0;
    for (int sig = 1; sig <= 64; sig++) {
        CHECK(strlen(signals_name(sig, name)) > 3);
        const char *meaning = signals_meaning(sig);
        told += *meaning != '\0';
        if (*meaning)
            CHECK(strncmp(meaning, " (", 2) == 0 && meaning[strlen(meaning) - 1] == ')');
    }
    CHECK_INT(told, ==, 15);
    CHECK_STR(signals_meaning(SIGSEGV), " (invalid memory access)");
    CHECK_STR(signals_meaning(SIGUSR1), "");
}
