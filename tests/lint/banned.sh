#!/bin/bash
# SPDX-License-Identifier: MIT
# Functions that have a better sibling. The tests may use what they test against.
cd "$(dirname "$0")/../.." || exit 2
words='sprintf|vsprintf|strcpy|strcat|strtok|gets|atoi|atol|atoll|atof|system|popen|tmpnam|mktemp|signal'

# Comments and strings out, line numbers kept.
strip() {
    python3 - "$1" <<'PYTHON'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
print(re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S))
PYTHON
}

bad=0
for file in $(find proto config agent worker -name '*.[ch]'); do
    hits=$(strip "$file" | grep -nE "(^|[^A-Za-z0-9_.>])(($words|wait)[[:space:]]*\(|wait(pid|4)[[:space:]]*\([[:space:]]*-1)") &&
        { sed "s|^|$file:|" <<<"$hits"; bad=1; }
done
exit $bad
