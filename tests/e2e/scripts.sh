#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# What is run by Python, by which one, and what its arguments become.
. "$SRC/tests/e2e/lib.sh"
python=$(command -v python3) || skip "no python3"
unset PYTHON_EXEC
mkdir bin bin3 pkg
who() { printf '#!/bin/sh\nPATH="%s" BY=%s exec "%s" "$@"\n' "$PATH" "${1##*/}" "$python" >"$1"; chmod +x "$1"; }
for file in bin/python bin/python3 bin/mine bin3/python3; do who $file; done # each says its name
cat >show.py <<'W'
import os, sys
print(os.environ.get("BY"), sys.flags.dont_write_bytecode, sys.stdout.write_through, *sys.argv)
W
cp show.py pkg/mod.py; : >pkg/__init__.py; cp show.py script
export PYTHONDONTWRITEBYTECODE=1
PATH=$PWD/bin:$PATH
says() { # "what" LINE arguments...
    local what=$1 line=$2; shift 2
    run "$@"; expect 0 "$what"
    check "$what: $(cat out)" test "$(sort -u out)" = "$line"
}
says "a script by the python of the PATH, unbuffered" "python 1 True show.py a b" -n 2 show.py a b
PYTHON_EXEC=mine says "PYTHON_EXEC goes first" "mine 1 True show.py" show.py
says "a module" "python 1 True $PWD/pkg/mod.py -x" -m pkg.mod -x
printf '#!/bin/sh\nPATH="%s" exec "%s" "$@"\n' "$PWD/bin3" "$LAUNCH" >narrow; chmod +x narrow
LAUNCH=./narrow says "python3 where there is no python" "python3 1 True ./show.py" ./show.py
says "a module behind --" "python 1 True $PWD/pkg/mod.py -- -x" --module -- pkg.mod -- -x
says "any file with --run-path" "python 1 True script" --run-path script
says "torchrun lets --run-path go before --no-python" "python 1 True script" --no-python --run-path script

# A script that can be executed is run by Python all the same, but not with --no-python.
{ echo '#!/bin/sh'; echo 'echo "by sh $*"'; } >both.py; chmod +x both.py
says "--no-python executes the word" "by sh x" --no-python ./both.py x
run ./both.py; check "else Python reads it: $(cat err)" has SyntaxError err
check "the report has the script's name and not Python's" has 'launch: \./both\.py: rank 0 of 1' err

# The macro of torchrun, and nothing else that looks like it.
run -n 3 show.py '--out=${local_rank}.pt' '$local_rank' '${rank}' 'a$$b' '$HOME' '$${local_rank}'; expect 0 "macros"
check "each has its number: $(cat out)" test "$(sort out | cut -d' ' -f 4-)" = "show.py --out=0.pt 0 \${rank} a\$\$b \$HOME \${local_rank}
show.py --out=1.pt 1 \${rank} a\$\$b \$HOME \${local_rank}
show.py --out=2.pt 2 \${rank} a\$\$b \$HOME \${local_rank}"
run -n 2 --virtual-local-rank sh -c 'echo "$0 $LOCAL_RANK"' '${local_rank}'
check "with --virtual-local-rank it is still the number: $(cat out)" test "$(sort out)" = "0 0
1 0"
worker once.sh <<'W'
#!/bin/sh
echo "$1 in attempt $TORCHELASTIC_RESTART_COUNT"
[ "$TORCHELASTIC_RESTART_COUNT" = 1 ]
W
run -n 2 --max-restarts=1 ./once.sh '${local_rank}'; expect 0 "a restart"
check "a restart has the same arguments: $(cat out)" test "$(grep -c '^[01] in attempt 1$' out)" = 2

# The job's own arguments are nobody else's, least of all an ambiguous option.
for word in --log --master --no --nproc --local --max -m -n --help --version; do
    says "'$word' belongs to the script" "python 1 True show.py $word x" show.py "$word" x
done
finish
