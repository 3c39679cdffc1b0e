/* SPDX-License-Identifier: MIT */
/* What libFuzzer does with file names: runs each file through the fuzzer once. For builds without it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *in = fopen(argv[i], "rb");
        if (!in) {
            perror(argv[i]);
            return 1;
        }
        static uint8_t data[1 << 20];
        size_t n = fread(data, 1, sizeof data, in);
        fclose(in);
        uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read behind it */
        if (!exact)
            return 1;
        for (size_t k = 0; k < n; k++)
            exact[k] = data[k];
        LLVMFuzzerTestOneInput(exact, n);
        free(exact);
    }
    return 0;
}
