#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# limit: 200
"""Files as torchrun makes them, read by PyTorch's own code: what @record left, and what whoever started launch finds."""
import glob
import json
import os
import re
import sys

sys.dont_write_bytecode = True
from torchlib import check, done, find_python, launch, read  # noqa: E402

# The reader is ProcessFailure of torch/distributed/elastic/multiprocessing/errors; a launcher around ours would use it.
READER = """
import json, sys
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
for path, code in zip(sys.argv[1::2], sys.argv[2::2]):
    f = ProcessFailure(local_rank=0, pid=1, exitcode=int(code), error_file=path)
    print(json.dumps([path, f.message, f.timestamp, ChildFailedError("job", {0: f}).format_msg()]))
"""

RECORDED = """
import os, signal
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"] == "1": raise ValueError('no shard "7\\u00e9"')
    signal.pause()
main()
"""


def main():
    python = find_python()
    files = {}  # path: exit code that its reader was told

    with open("job.py", "w", encoding="utf-8") as f:
        f.write(RECORDED)
    r = launch("--nproc-per-node=2", "--log-dir=logs", "--run-id=night", "--redirects=3", python, "job.py",
               TORCHELASTIC_ERROR_FILE=os.path.abspath("recorded.json"))
    (run,) = glob.glob("logs/*") or [""]
    made = sorted(os.path.relpath(p, run) for p in glob.glob(run + "/attempt_*/**", recursive=True) if os.path.isfile(p))
    check(f"the layout is torchrun's: {run} {made}", re.fullmatch(r"logs/night_\w{8}", run) and
          made == ["attempt_0/0/stderr.log", "attempt_0/0/stdout.log", "attempt_0/1/error.json", "attempt_0/1/stderr.log",
                   "attempt_0/1/stdout.log"], r)
    check("the report has the exception", r.returncode == 1 and 'it said: ValueError: no shard "7\u00e9"\n' in r.stderr, r)
    worker = run + "/attempt_0/1/error.json"
    files.update({worker: 1, "recorded.json": 1})
    copy, original = (json.loads(read(p) or b'{"message": {}}') for p in ("recorded.json", worker))
    check("the parent's copy is the worker's file with the code", copy["message"].pop("errorCode", None) == 1 and copy == original, r)

    def fails(name, script, code):
        launch("--nproc-per-node=2", "sh", "-c", script, TORCHELASTIC_ERROR_FILE=os.path.abspath(name))
        files[name] = code

    fails("silent.json", "exit 3", 3)
    fails("killed.json", "kill -KILL $$", -9)
    fails("text.json", """echo '{"message": "disk full", "timestamp": 5}' >$TORCHELASTIC_ERROR_FILE; exit 4""", 4)
    fails("nonsense.json", "echo oh no >$TORCHELASTIC_ERROR_FILE; exit 5", 5)
    fails("stopped.json", "kill -TERM $PPID; exec sleep 60", -15)

    r = launch(python, "-c", READER, *(str(x) for item in files.items() for x in item))
    read_back = {path: (message, timestamp, told) for path, message, timestamp, told in map(json.loads, r.stdout.splitlines())}
    check("PyTorch's reader takes all of them", sorted(read_back) == sorted(files), r)
    messages = {path: m if isinstance(m, str) else m["message"] for path, (m, _, _) in read_back.items()}
    for path in (worker, "recorded.json"):
        check(f"{path}: message and traceback arrive", messages.get(path) == 'ValueError: no shard "7\u00e9"' and
              "in main\n" in read_back[path][2], r)
    for path, text in {"silent.json": "exited with code 3", "killed.json": "killed by SIGKILL", "text.json": "^disk full$",
                       "nonsense.json": "oh no", "stopped.json": "asked to end by SIGTERM"}.items():
        check(f"{path} says so", re.search(text, messages.get(path, "")), r)
    check("times are of today, or the worker's own", all(t == 5 if path == "text.json" else t > 1.7e9
          for path, (_, t, _) in read_back.items() if path != "nonsense.json"), r)
    codes = {path: json.loads(read(path))["message"].get("errorCode") for path in files
             if path not in (worker, "text.json") and read(path)}
    check(f"each has the code: {codes}", codes == {p: c for p, c in files.items() if p in codes} and len(codes) == 5, r)
    done()


main()
