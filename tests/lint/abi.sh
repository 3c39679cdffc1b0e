#!/bin/bash
# SPDX-License-Identifier: MIT
# What a program that is linked with our libraries relies on stays as abi.txt beside this file has it: prototypes, values of enums
# and macros, and that each library exports just what its headers declare. `abi.sh --update` writes the file anew.
cd "$(dirname "$0")/../.." || exit 2
exec python3 - "$@" <<'PYTHON'
import difflib, os, re, subprocess, sys, tempfile

RECORD = "tests/lint/abi.txt"
CC = os.environ.get("CC", "gcc").split()
# The fakes' headers have the real ones' names, and are everywhere.
LIBRARIES = {"liblaunch.so": ["launch.h", "device.h", "run.h"], "liblaunch_nccl.so": ["launch_nccl.h"],
             "liblaunch_rccl.so": ["launch_nccl.h"]}
INCLUDE = ["-Itests/fake/include"]
HEAD = """# What programs that are linked with our libraries rely on. tests/lint/abi.sh compares, and with --update writes it.
# A line that is new: fine in a release with a higher second number. One that changes or goes: the soname changes, too.
"""


def cc(*options, text=None):
    return subprocess.run([*CC, *options], input=text, capture_output=True, text=True, check=True).stdout


def own_text(header):
    """The header after the preprocessor, without what it includes."""
    kept, ours = [], False
    for line in cc("-E", "-std=gnu17", "-D_GNU_SOURCE", *INCLUDE, f"worker/{header}").splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = marker[1] == f"worker/{header}"
        elif ours:
            kept.append(line)
    return " ".join(" ".join(kept).split())


def prototypes(text):
    text = re.sub(r"__attribute__ ?\(\((?:[^()]|\([^()]*\))*\)\) ?", "", text)
    text = re.sub(r"\{[^{}]*\}", "{}", text)
    found = [part.strip() for part in text.split(";") if re.search(r"\blaunch_\w+ ?\(", part)]
    return {re.search(r"\b(launch_\w+) ?\(", part)[1]: part for part in found if not part.startswith("typedef")}


def enums(header, text):
    """Name and values of each enum, and the numbers of macros, as the compiler sees them."""
    lines, macros = [], []
    for name, body in re.findall(r"\benum (launch_\w+) \{([^{}]*)\}", text):
        lines.append((f"enum {name}, %zu bytes", f"sizeof(enum {name})"))
        lines += [(f"{name} {c} = %lld", f"(long long){c}") for c in re.findall(r"\b(LAUNCH_\w+)", body)]
    defined = cc("-E", "-dM", *INCLUDE, f"worker/{header}")
    own = set(re.findall(r"^#define (\w+)", open(f"worker/{header}", encoding="utf-8").read(), re.M))
    for name, arguments, value in re.findall(r"^#define (\w+)(\([^)]*\))? ?(.*)$", defined, re.M):
        if name not in own or name in ("LAUNCH_VERSION", "LAUNCH_API", "LAUNCH_PRINTF") or not value:
            continue
        if arguments:  # goes into the program with its text
            macros.append(f"#define {name}{arguments} {' '.join(value.split())}")
        else:
            lines.append((f"{name} = %lld", f"(long long)({value})"))
    probe = f'#include <stdio.h>\n#include "worker/{header}"\nint main(void) {{\n'
    probe += "".join(f'printf("{form}\\n", {value});\n' for form, value in lines) + "}\n"
    with tempfile.TemporaryDirectory() as folder:
        cc("-I.", *INCLUDE, "-x", "c", "-", "-o", f"{folder}/probe", text=probe)
        values = subprocess.run([f"{folder}/probe"], capture_output=True, text=True, check=True).stdout
    return values.splitlines() + sorted(macros)


def exported(path):
    names = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in names.splitlines()} - {"main"}


now, bad = HEAD, False
for library, headers in LIBRARIES.items():
    if "rccl" in library:
        INCLUDE.append("-D__HIP_PLATFORM_AMD__")
    declared = {}
    for header in headers:
        text = own_text(header)
        here = prototypes(text)
        declared.update(here)
        constants = enums(header, text) if header.startswith("launch") else []
        now += "".join(f"{line}\n" for line in [f"\n== {library}: {header}", *constants, *sorted(here.values())])
    path = os.path.join(os.environ.get("BUILD", "build"), library)
    if os.path.exists(path):
        for name in sorted(exported(path) ^ (declared.keys() - {"launch_main"})):
            print(f"{library}: {name} is {'declared, not exported' if name in declared else 'exported, not declared'}")
            bad = True
if "--update" in sys.argv:
    open(RECORD, "w", encoding="utf-8").write(now)
before = open(RECORD, encoding="utf-8").read()
change = list(difflib.unified_diff(before.splitlines(), now.splitlines(), RECORD, "the headers", lineterm="", n=0))
if change:
    print("\n".join(change))
    print("The interface has changed. If that is meant: tests/lint/abi.sh --update, and read what the file's head asks for.")
sys.exit(bad or bool(change))
PYTHON
