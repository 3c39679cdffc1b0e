#!/bin/bash
# SPDX-License-Identifier: MIT
# Who may include whom, and the airlock of each foreign header.
cd "$(dirname "$0")/../.." || exit 2
exec python3 - $(find proto config agent worker examples tests -name '*.[ch]') <<'PYTHON'
import os, re, sys
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
ALLOWED = {"proto": ["proto"], "config": ["config", "proto"], "agent": ["agent", "config", "proto"],
           "worker": ["worker", "proto"], "examples": ["examples", "worker"]}  # tests: all
AIRLOCKS = [  # header, files that may name it
    (r"uv\.h|uv/.*", r"agent/.*|tests/.*"),
    (r"yaml\.h", r"config/yaml\.c"),
    (r"hwloc\.h|hwloc/.*", r"agent/hwloc\.c"),
    (r"nvml\.h", r"agent/nvml\.c"),
    (r"nccl\.h|cuda.*\.h", r"worker/nccl.*\.[ch]|worker/launch_nccl\.h|worker/bench_nccl\.c|examples/.*|tests/.*"),
    (r"rccl/.*\.h|hip/.*", r"worker/launch_nccl\.h|examples/.*|tests/.*"),
]
PUBLIC = ["worker/launch.h"]  # stands alone
bad = 0


def complain(path, line, what):
    global bad
    print(f"{path}:{line}: {what}")
    bad = 1


def look(path, line, header):
    ours = os.path.normpath(os.path.join(os.path.dirname(path), header))
    room = path.split("/")[0]
    if not os.path.exists(ours):
        for pattern, files in AIRLOCKS:
            if re.fullmatch(pattern, header) and not re.fullmatch(files, path):
                complain(path, line, f"{header} is not for this file")
        return
    to = ours.split("/")[0]
    if room in ALLOWED and to not in ALLOWED[room]:
        complain(path, line, f"{room}/ must not include {to}/ ({header})")
    if room == "examples" and to == "worker" and not re.search(r"launch(_nccl)?\.h$", header):
        complain(path, line, f"examples use the public headers only ({header})")
    if path in PUBLIC:
        complain(path, line, "includes a header of ours")


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as f:
        for n, text in enumerate(f, 1):
            found = INCLUDE.match(text)
            if found:
                look(path, n, found[1])
sys.exit(bad)
PYTHON
