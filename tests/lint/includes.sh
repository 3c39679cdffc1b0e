#!/bin/bash
# SPDX-License-Identifier: MIT
# Who may include whom, and the airlock of each foreign header.
cd "$(dirname "$0")/../.." || exit 2
bad=0

# Every include of every source as "file:line folder-of-the-file name-as-written".
includes() {
    find proto config agent worker examples tests -name '*.[ch]' -print0 |
        xargs -0 grep -nHE '^[[:space:]]*#[[:space:]]*include' |
        sed -E 's/^([^:]+):([0-9]+):[[:space:]]*#[[:space:]]*include[[:space:]]*[<"]([^>"]+)[>"].*/\1 \2 \3/'
}

complain() {
    echo "$1:$2: $3"
    bad=1
}

# The folder of ours that a quoted include reaches; empty for foreign headers.
target() {
    case $1 in
    */*) [ -e "$(dirname "$2")/$1" ] && realpath --relative-to=. "$(dirname "$2")/$1" | cut -d/ -f1 ;;
    *) [ -e "$(dirname "$2")/$1" ] && echo "$2" | cut -d/ -f1 ;;
    esac
}

allowed() { # from to
    case $1:$2 in
    *: | proto:proto | config:config | config:proto | agent:agent | agent:config | agent:proto | \
        worker:worker | worker:proto | examples:examples | examples:worker | tests:*) return 0 ;;
    esac
    return 1
}

airlock() { # file header
    case $2 in
    uv.h | uv/*) [[ $1 == agent/* || $1 == tests/* ]] ;;
    yaml.h) [[ $1 == config/yaml.c ]] ;;
    hwloc.h | hwloc/*) [[ $1 == agent/hwloc.c ]] ;;
    nvml.h) [[ $1 == agent/nvml.c ]] ;;
    nccl.h | cuda*.h) [[ $1 == worker/nccl*.[ch] || $1 == worker/launch_nccl.h || $1 == worker/bench_nccl.c || $1 == examples/* || $1 == tests/* ]] ;;
    rccl*.h | hip/*) [[ $1 == worker/rccl.c || $1 == examples/* ]] ;;
    esac
}

while read -r file line header; do
    from=${file%%/*}
    to=$(target "$header" "$file")
    allowed "$from" "$to" || complain "$file" "$line" "$from/ must not include $to/ ($header)"
    [ -n "$to" ] || airlock "$file" "$header" || complain "$file" "$line" "$header is not for this file"
    if [ "$from" = examples ] && [ "$to" = worker ] && [[ ! $header =~ launch(_nccl)?\.h$ ]]; then
        complain "$file" "$line" "examples use the public headers only ($header)"
    fi
done < <(includes)

# The public headers stand alone.
for header in worker/launch.h; do
    grep -nE '^#include "' "$header" && complain "$header" 1 "includes a header of ours"
done
exit $bad
