/* SPDX-License-Identifier: MIT */
/* What libFuzzer does with file names: runs each file through the fuzzer once. For builds without it. "-": inputs from stdin, each
 * behind its length in 4 bytes; what fails then tells its number. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static uint8_t data[1 << 20];
static int number;

static void run(size_t n)
{
    uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read behind it */
    if (!exact)
        abort();
    memcpy(exact, data, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

static void tell_number(int sig)
{
    dprintf(2, "input %d\n", number);
    signal(sig, SIG_DFL);
    raise(sig);
}

static int run_all_of(FILE *in)
{
    uint32_t n;
    signal(SIGABRT, tell_number);
    signal(SIGSEGV, tell_number);
    signal(SIGBUS, tell_number);
    for (; fread(&n, sizeof n, 1, in) == 1; number++) {
        if (n > sizeof data || fread(data, 1, n, in) != n)
            return 1;
        run(n);
    }
    printf("%d inputs\n", number);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "-") == 0)
        return run_all_of(stdin);
    for (int i = 1; i < argc; i++) {
        FILE *in = fopen(argv[i], "rb");
        if (!in) {
            perror(argv[i]);
            return 1;
        }
        size_t n = fread(data, 1, sizeof data, in);
        fclose(in);
        run(n);
    }
    return 0;
}
