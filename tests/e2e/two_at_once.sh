#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# In every pairing of forms two jobs share no GPU, port, log directory, run id, RAS address or exclusive core. Without --gpus a job may
# use a GPU that another one has, and is warned.
. "$SRC/tests/e2e/lib.sh"
gpus 8
# 64 CPUs: where cores are given away is read from placement.json; the kernel can't put a worker on those that are not there
mkdir -p machine/proc/self machine/sys/devices/system/cpu; echo 0-63 >machine/sys/devices/system/cpu/online
printf 'Cpus_allowed_list:\t0-63\n' >machine/proc/self/status
worker w.sh <<'W'
#!/bin/sh
printf '%s\n' "gpus $CUDA_VISIBLE_DEVICES" "port $MASTER_PORT" "run $TORCHELASTIC_RUN_ID" "ras $NCCL_RAS_ADDR" >$1.new
mv $1.new $1
while [ -d up ]; do sleep 0.02; done
W
echo 'gpus: 2' >yaml.yaml
FORMS='plain count list bounded yaml jobs'
# form NAME N: that form of job writes what it sees to N, its errors to err.N
form() {
    local opts="--log-dir=logs --tee=1 --affinity=exclusive --report-placement"
    case $1 in
    plain) "$LAUNCH" $opts ./w.sh "$2" ;;
    count) "$LAUNCH" $opts --gpus=2 ./w.sh "$2" ;;
    list) "$LAUNCH" $opts --gpus=$((2 * $2 - 2)),$((2 * $2 - 1)) ./w.sh "$2" ;;
    bounded) CUDA_VISIBLE_DEVICES=7,6,5,4 "$LAUNCH" $opts --gpus=2 ./w.sh "$2" ;;
    yaml) "$LAUNCH" --config yaml.yaml $opts ./w.sh "$2" ;;
    jobs) printf 'jobs:\n  one%d: {gpus: 2, program: ./w.sh, args: ["%d"]}\n' "$2" "$2" >jobs.$2.yaml
        "$LAUNCH" --config jobs.$2.yaml $opts ;;
    esac >/dev/null 2>err.$2 </dev/null
}
CORES='
import json, sys
def numbers(text):
    return {n for part in text.split(",") for a, _, b in [part.partition("-")] for n in range(int(a), int(b or a) + 1)}
a, b = (set().union(*(numbers(r["cpus"]) for r in json.load(open(path))["ranks"])) for path in sys.argv[1:])
assert a and b and not a & b, (a, b)'
# apart PAIR: 1 and 2 have nothing in common
apart() {
    check "$1 has what is compared: $(cat 1 2)" test "$(grep -cE '^(port|run) [^ ]' 1 2 | tr '\n' ' ')" = '1:2 2:2 '
    for what in port run; do check "$1: $what: $(cat 1 2)" test "$(grep -h "^$what" 1 2 | sort -u | wc -l)" = 2; done
    check "$1: RAS address: $(cat 1 2)" test "$(grep -hE '^ras 127.0.0.1:[0-9]+$' 1 2 | sort -u | wc -l)" = 2
    check "$1: log directories" test "$(ls -d logs/* | wc -l)" = 2
    check "$1: cores: $(grep -h cpus logs/*/placement.json)" python3 -c "$CORES" logs/*/placement.json
}
for a in $FORMS; do
    for b in $FORMS; do
        rm -rf 1 2 logs; mkdir up
        form $a 1 & first=$!
        until_true test -e 1 || fail "$a: runs: $(cat err.1)"
        form $b 2 & second=$!
        until_true test -e 2 || fail "$b beside $a: runs: $(cat err.2)"
        apart "$a, $b"
        if [ $b != plain ] && [ $a != plain ]; then
            check "$a, $b: GPUs: $(cat 1 2)" test "$(grep -h ^gpus 1 2 | tr -d a-z | tr ', ' '\n\n' | grep -c .)" = 4 -a "$(grep -h ^gpus 1 2 | tr -d a-z | tr ', ' '\n\n' | grep . | sort -u | wc -l)" = 4
        elif [ $a = plain ]; then
            check "plain, $b: keeps off GPU 0, which the first one uses" not has '^gpus (0|.*,0)(,|$)' 2
        fi
        warned=0; case $a,$b in count,plain | list,plain | yaml,plain | jobs,plain) warned=1 ;; esac
        check "$a, $b: warned $warned times: $(cat err.2)" test "$(grep -c 'warning: GPU 0 is leased by run' err.2)" = $warned
        rmdir up; wait $first; rc=$?; expect 0 "$a"; wait $second; rc=$?; expect 0 "$b beside $a"
    done
done

# both in one file
rm -rf 1 2 logs
printf 'program: ./w.sh\njobs:\n  a: {gpus: 2, args: ["1"]}\n  b: {gpus: 2, args: ["2"]}\n' >both.yaml
mkdir up
"$LAUNCH" --config both.yaml --log-dir=logs --tee=1 --affinity=exclusive --report-placement >/dev/null 2>err & pid=$!
until_true test -e 1 -a -e 2 || fail "both run: $(cat err)"
apart "one file"
check "one file: GPUs: $(cat 1 2)" test "$(grep -h ^gpus 1 2 | sort | tr '\n' ' ')" = 'gpus 0,1 gpus 2,3 '
rmdir up; wait $pid; rc=$?; expect 0 "both"
finish
