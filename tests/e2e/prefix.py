#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE means what string.Template, which torchrun uses, makes of it."""
import os
import string
import subprocess
import sys

TEMPLATES = ["[${role_name}${local_rank}]:", "rank $rank of $role_name ", "$local_rank.$rank|", "$$rank $${rank} $$$rank ",
             "$ranks $rank_ ${rank ${ranks} ${} $ $", "$RANK ${Rank} ", "$rank0 ${ rank} $rank\u00e9 ", "${rank}${rank}$rank$", "plain ",
             "%s {} \\n ", "${a.b}$1 "]


def main():
    failed = 0
    for template in TEMPLATES:
        expected = string.Template(template).safe_substitute(role_name="trainer", local_rank=1, rank=1)
        env = {**os.environ, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": template}
        out = subprocess.run([os.environ["LAUNCH"], "--nproc-per-node=2", "--log-dir=/dev/null", "--tee=1", "--role=trainer", "sh", "-c",
                              "[ $RANK = 0 ] || echo line"], env=env, capture_output=True, check=False).stdout.decode()
        if out != expected + "line\n":
            failed += 1
            print(f"FAIL: {template!r}: {expected!r} expected, got {out!r}")
    sys.exit(bool(failed))


main()
