#!/bin/bash
# SPDX-License-Identifier: MIT
# Functions that have a better sibling. The tests may use what they test against.
cd "$(dirname "$0")/../.." || exit 2
exec python3 - $(find proto config agent worker -name '*.[ch]') <<'PYTHON'
import re, sys
words = "sprintf|vsprintf|strcpy|strcat|strtok|gets|atoi|atol|atoll|atof|system|popen|tmpnam|mktemp|signal"
banned = re.compile(rf"(^|[^A-Za-z0-9_.>])(({words}|wait)\s*\(|wait(pid|4)\s*\(\s*-1)")
blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
bad = 0
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    # Comments and strings out, line numbers kept.
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    for n, line in enumerate(text.split("\n"), 1):
        if banned.search(line):
            print(f"{path}:{n}: {line.strip()}")
            bad = 1
sys.exit(bad)
PYTHON
