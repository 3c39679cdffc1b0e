#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# limit: 300
"""A short run of tests/torture/torch_kills.py: one rank of a PyTorch job over gloo is killed, and again. KILLS= for more."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from torchlib import LAUNCH, SRC, find_python  # noqa: E402

sys.exit(subprocess.run([sys.executable, SRC + "/tests/torture/torch_kills.py", "-n", os.environ.get("KILLS", "2"), find_python(),
                         LAUNCH, "--shutdown-timeout=5"], check=False).returncode)
