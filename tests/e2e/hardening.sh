#!/bin/bash
# SPDX-License-Identifier: MIT
# What is built by default makes an error in our memory hard to use: position independent, relocations read-only before main(),
# no memory both writable and executable, canaries, checked copies; and the libraries, too, which live in others' programs.
. "$SRC/tests/e2e/lib.sh"
command -v readelf >/dev/null || skip "no readelf"
[ "$BUILD" = "$SRC/build" ] || skip "sanitizers build otherwise"
for file in launch launch-{run,bench,bench-nccl,bench-rccl} liblaunch.so liblaunch_{n,r}ccl.so; do
    [ -e "$BUILD/$file" ] || continue
    readelf -hW "$BUILD/$file" >header; readelf -lW "$BUILD/$file" >segments; readelf -dW "$BUILD/$file" >dynamic; readelf --dyn-syms -W "$BUILD/$file" >symbols
    check "$file is position independent" has 'Type: *DYN' header
    check "$file: relocations are read-only" has GNU_RELRO segments
    check "$file: and made before anything runs: $(cat dynamic)" has '\(FLAGS(_1)?\).*NOW' dynamic
    check "$file: the stack is not executable: $(cat segments)" has 'GNU_STACK .* RW ' segments
    check "$file: nothing is writable and executable" not has 'LOAD .* RWE ' segments
    check "$file: canaries" has __stack_chk_fail symbols
done
check "copies are checked" has '__(memcpy|snprintf|fprintf|read|vsnprintf)_chk' <(readelf --dyn-syms -W "$LAUNCH")
finish
