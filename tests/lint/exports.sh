#!/bin/bash
# SPDX-License-Identifier: MIT
# The libraries export launch_* and nothing else; liblaunch.so also the main() of jobs without one. In the archives
# nothing else is visible either, or a job's own names could clash with ours.
cd "${BUILD:-build}" || exit 2
bad=0
for lib in liblaunch{,_nccl,_rccl}.{so,a}; do
    [ -e "$lib" ] || continue
    case $lib in *.so) how=-D ;; *) how=-g ;; esac
    extra=$(nm $how --defined-only "$lib" | awk 'NF == 3 && $3 !~ /^launch_/ && $3 != "main" { print $3 }')
    [ -z "$extra" ] || { echo "$lib exports" $extra; bad=1; }
done
exit $bad
