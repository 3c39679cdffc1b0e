#!/bin/bash
# SPDX-License-Identifier: MIT
# One idea a file: at most 600 lines; a head that says what it owns; the licence in the first three lines.
cd "$(dirname "$0")/../.." || exit 2
bad=0
for file in $(find proto config agent worker tests examples .ci -type f \
    \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -path .ci/run \)); do
    lines=$(wc -l <"$file")
    [ "$lines" -le 600 ] || { echo "$file: $lines lines"; bad=1; }
    head -3 "$file" | grep -q SPDX-License-Identifier || { echo "$file: no SPDX line"; bad=1; }
done
exit $bad
