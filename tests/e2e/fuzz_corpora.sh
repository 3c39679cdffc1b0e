#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Every fuzzer of tests/fuzz takes each input that it begins with; without clang, too (tests/fuzz/driver.c).
. "$SRC/tests/e2e/lib.sh"
for source in "$SRC"/tests/fuzz/*.c; do
    name=$(basename "$source" .c)
    [ "$name" != driver ] || continue
    for input in "$SRC/tests/fuzz/corpus_$name"/*; do
        "$BUILD/tests/fuzz/$name" "$input" >out 2>&1 || fail "$name ${input##*/}, exit code $?: $(head -5 out)"
    done
done
finish
