#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# make install: below DESTDIR and PREFIX and nowhere else; jobs build against it and run under it.
. "$SRC/tests/e2e/lib.sh"
[ "$BUILD" = "$SRC/build" ] || skip "a sanitizer's build is not what is installed"
unset LD_LIBRARY_PATH PKG_CONFIG_PATH; gpus 0
# The variables of an outer make's command line (CC=clang), but not its jobs.
case ${MAKEFLAGS:-} in *'-- '*) export MAKEFLAGS="-- ${MAKEFLAGS#*-- }" ;; *) unset MAKEFLAGS ;; esac; unset MAKELEVEL
CC=$(cut -d' ' -f1 "$BUILD/flags")
root=$PWD/root prefix=/opt/launch-me version=$(sed -n 's/^#define LAUNCH_VERSION "\(.*\)"/\1/p' "$SRC/worker/launch.h")
listing() { (cd "$1" && find . \( -path ./build -o -path ./.git \) -prune -o -print | sort); }
listing "$SRC" >before
make -s -C "$SRC" install DESTDIR="$root" PREFIX="$prefix" >log 2>&1; rc=$?; expect 0 "make install: $(cat log)"
check "the source tree is untouched" cmp -s before <(listing "$SRC")
check "nothing outside the prefix: $(ls "$root" "$root/opt")" test "$(ls "$root")/$(ls "$root/opt")" = opt/launch-me
(cd "$root$prefix" && find . ! -type d | grep -v '[_-][nr]ccl' | sort) >got
check "what is installed: $(cat got)" test "$(tr '\n' ' ' <got)" = "./bin/launch ./include/launch.h ./lib/liblaunch.a ./lib/liblaunch.so \
./lib/liblaunch.so.0 ./lib/liblaunch.so.$version ./lib/pkgconfig/launch.pc ./libexec/launch/launch-bench ./libexec/launch/launch-run \
./share/bash-completion/completions/launch ./share/fish/vendor_completions.d/launch.fish ./share/man/man1/launch.1 ./share/zsh/site-functions/_launch "
check "no path of the build is in the .pc file" not grep -q "$SRC\|root" "$root$prefix"/lib/pkgconfig/launch.pc
check "no link points out of the prefix" test -z "$(find "$root" -type l -lname '/*')"
for file in "$root$prefix"/bin/launch "$root$prefix"/libexec/launch/launch-run "$root$prefix"/lib/liblaunch.so; do
    check "$file searches no path of the build" not has "R(UN)?PATH.*$SRC" <(readelf -d "$file")
done

# The tree as if it had been unpacked elsewhere: nothing may look into build/ or know its name.
mv "$root$prefix" moved; P=$PWD/moved
cat >job.c <<'W'
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* readlink() */
#endif
#include <launch.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int board_open = 1; /* a name that liblaunch uses inside */
int launch_main(struct launch *l, int argc, char **argv)
{
    int32_t n = argc;
    int r = launch_all_reduce(l, &n, &n, 1, LAUNCH_INT32, LAUNCH_SUM);
    if (r == LAUNCH_OK)
        printf("rank %d: %d %s\n", launch_rank(l), (int)n, argv[1]);
    char exe[4096] = "";
    if (strcmp(argv[1], "exe") == 0 && readlink("/proc/self/exe", exe, sizeof exe - 1) > 0)
        puts(exe);
    return r;
}
W
if command -v pkg-config >/dev/null; then
    flags() { PKG_CONFIG_PATH=$P/lib/pkgconfig pkg-config --define-variable=prefix="$P" "$@" launch; }
else
    flags() { case $1 in --cflags) echo "-I$P/include" ;; *) echo "-L$P/lib -llaunch" ;; esac; }
fi
built() { # NAME compiler-arguments...
    local name=$1; shift
    "$CC" -std=c99 -pedantic -Wall -Werror $(flags --cflags) -o "$name" "$@" >log 2>&1; rc=$?; expect 0 "$name: $(cat log)"
}
ran() { # JOB: two ranks agree
    run --nproc-per-node=2 "$1" x; expect 0 "$1"
    check "$1: $(cat out)" test "$(sort out | tr '\n' ,)" = "rank 0: 4 x,rank 1: 4 x,"
}
LAUNCH=$P/bin/launch
built static job.c "$P/lib/liblaunch.a" -pthread; ran ./static
check "static: needs no library of ours" not has liblaunch <(readelf -d static)
built shared job.c $(flags --libs) -Wl,-rpath,"$P/lib"; ran ./shared
check "shared: by its soname" has 'NEEDED.*\[liblaunch.so.0\]' <(readelf -d shared)
built job.so -fPIC -shared job.c $(flags --libs); ran ./job.so
run ./job.so exe; check "by the installed launch-run: $(cat out)" has "$P/libexec/launch/launch-run" out
if command -v g++ >/dev/null; then
    sed 's/int launch_main/extern "C" int launch_main/' job.c >job.cc
    g++ -Wall -Werror $(flags --cflags) -o cxx job.cc $(flags --libs) -Wl,-rpath,"$P/lib" >log 2>&1; rc=$?; expect 0 "C++: $(cat log)"
    ran ./cxx
fi
finish
