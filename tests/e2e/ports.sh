#!/bin/bash
# SPDX-License-Identifier: MIT
# MASTER_ADDR and MASTER_PORT: a port that rank 0 can bind, for every job its own, without a resolver.
. "$SRC/tests/e2e/lib.sh"
cat >rdv.py <<'W'
import os, select, socket, sys
e = os.environ; a, p, r, n = e["MASTER_ADDR"], int(e["MASTER_PORT"]), int(e["RANK"]), int(e["WORLD_SIZE"])
if r == 0:
    s = socket.create_server((a, p)); k = [s.accept() for _ in range(n - 1)]
else:
    for i in range(2000):  # for 20 s at most
        try: k = socket.create_connection((a, p), 1); break
        except OSError: select.select([], [], [], .01)
    else: sys.exit(9)
open("rdv.%d" % r, "w").write("%s %d\n" % (a, p))
W
run --nproc-per-node=2 python3 rdv.py; expect 0 "two ranks meet"; check "numeric loopback" grep -q '^127.0.0.1 ' rdv.0
python3 -c 'import socket,sys; s=socket.create_server(("0.0.0.0",0)); print(s.getsockname()[1],flush=True); sys.stdin.read()' \
    < <(exec sleep $TAG) >port & server=$!
until_true test -s port; port=$(cat port)
run --nproc-per-node=2 --master-port "$port" true; expect 125 "an asked-for port in use"
check "is named" has "$port" err
reap; kill $server
for i in 1 2; do (mkdir j$i; cd j$i; "$LAUNCH" --nproc-per-node=2 python3 ../rdv.py 2>err; echo $? >rc) & done; wait %2 %3 2>/dev/null; wait
check "two jobs at once both end well" test "$(cat j1/rc j2/rc | tr -d '\n')" = 00
check "on ports of their own" not cmp -s j1/rdv.0 j2/rdv.0
if unshare -Uru true 2>/dev/null; then
    timeout 20 unshare -Uru sh -c 'hostname no-such-host.invalid; exec "$@"' sh "$LAUNCH" --nproc-per-node=2 python3 rdv.py
    check "an unresolvable host name does not matter" test $? = 0
fi
finish
