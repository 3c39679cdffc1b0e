#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# make deb: what is in the package, who owns it, and that it says what it needs.
. "$SRC/tests/e2e/lib.sh"
[ "$BUILD" = "$SRC/build" ] || skip "a sanitizer's build is not what is packaged"
command -v dpkg-shlibdeps >/dev/null || skip "no dpkg-dev"
case ${MAKEFLAGS:-} in *'-- '*) export MAKEFLAGS="-- ${MAKEFLAGS#*-- }" ;; *) unset MAKEFLAGS ;; esac; unset MAKELEVEL
version=$(sed -n 's/^#define LAUNCH_VERSION "\(.*\)"/\1/p' "$SRC/worker/launch.h")
deb=$BUILD/launch_${version}_$(dpkg --print-architecture).deb
rm -f "$deb"; make -s -C "$SRC" deb >log 2>&1; rc=$?; expect 0 "make deb: $(cat log)"
[ -e "$deb" ] || { fail "no $deb: $(cat log)"; finish; }
dpkg-deb -c "$deb" >list
check "everything is root's: $(cat list)" not grep -qv ' root/root ' list
check "nobody else may write: $(cat list)" not grep -qE '^[^l].{4}w|^[^l].{7}w' list
sed -E 's/.* \.\///; s/ -> .*//' list | grep '[^/]$' | grep -v '[_-][nr]ccl' | sort >files
check "what is in it: $(cat files)" test "$(tr '\n' ' ' <files)" = "usr/bin/launch usr/include/launch.h usr/lib/liblaunch.a usr/lib/liblaunch.so \
usr/lib/liblaunch.so.0 usr/lib/liblaunch.so.$version usr/lib/pkgconfig/launch.pc usr/libexec/launch/launch-bench usr/libexec/launch/launch-run \
usr/share/bash-completion/completions/launch usr/share/doc/launch/changelog.gz usr/share/doc/launch/copyright \
usr/share/fish/vendor_completions.d/launch.fish usr/share/man/man1/launch.1.gz usr/share/zsh/vendor-completions/_launch "
check "its name and version" test "$(dpkg-deb -f "$deb" Package)/$(dpkg-deb -f "$deb" Version)" = "launch/$version"
check "it needs libc: $(dpkg-deb -f "$deb" Depends)" has 'libc6 \(>= ' <(dpkg-deb -f "$deb" Depends)
for field in Architecture Maintainer Installed-Size Description Section; do
    check "it has a $field" test -n "$(dpkg-deb -f "$deb" $field)"
done
dpkg-deb -R "$deb" x
check "the sums are right" bash -c 'cd x && md5sum --quiet -c DEBIAN/md5sums'
check "all files have a sum" test "$(wc -l <x/DEBIAN/md5sums)" = "$(find x/usr -type f | wc -l)"
check "no path of the build is in it" not grep -rqaF "$SRC" x
LAUNCH=x/usr/bin/launch run -n 2 true; expect 0 "the program runs"
finish
