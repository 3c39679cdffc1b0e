#!/bin/bash
# SPDX-License-Identifier: MIT
# One idea a file: at most 600 lines; a head that says what it owns; the licence in the first three lines.
cd "$(dirname "$0")/../.." || exit 2
find proto config agent worker tests examples .ci -type f \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -path .ci/run \) -print0 |
    xargs -0 awk 'FNR == 1 { if (path != "" && !licensed) { print path ": no SPDX line"; bad = 1 } path = FILENAME; licensed = 0 }
        FNR <= 3 && /SPDX-License-Identifier/ { licensed = 1 }
        FNR == 601 { print path ": more than 600 lines"; bad = 1 }
        END { if (path != "" && !licensed) { print path ": no SPDX line"; bad = 1 } exit bad }'
