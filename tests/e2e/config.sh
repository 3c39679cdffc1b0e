#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# A job as a YAML file: it runs, the command line and variables go before it, what is wrong with it is one line with its place.
. "$SRC/tests/e2e/lib.sh"
worker p.sh <<'W'
#!/bin/sh
printf '%s\n' "$WORLD_SIZE" "$COUNTRY" "$LR" "$IDN" "$AT" "$FLAG" "$VER" "$MODE" "$@" >got.$RANK
W
cat >j.yaml <<'E'
nproc_per_node: 1
program: ./p.sh
args: [no, 1e-5, 010, "yes"]
env:
  COUNTRY: NO
  LR: 1e-5
  IDN: 007
  AT: 22:30
  FLAG: on
  VER: 1.10
  MODE: 0755
E
run --config j.yaml; expect 0 "a job file"
printf '%s\n' 1 NO 1e-5 007 22:30 on 1.10 0755 no 1e-5 010 yes >want
check "values reach the job as they are written" cmp want got.0
LAUNCH_NPROC_PER_NODE=2 run --config=j.yaml -- --more ''; expect 0 "a variable goes before the file"
printf '%s\n' 2 NO 1e-5 007 22:30 on 1.10 0755 no 1e-5 010 yes --more '' >want
check "further arguments come behind the file's" cmp want got.1
rm got.*
LAUNCH_NPROC_PER_NODE=2 run --config j.yaml -n 3 ./p.sh other; expect 0 "the command line goes before both"
check "another program has its own arguments only: $(tail -1 got.2)" test "$(tail -n +9 got.2)" = other

# The file's variables are as good as exported ones.
gpus 4; mkdir bin; worker bin/tool <<'W'
#!/bin/sh
echo "$RANK of $WORLD_SIZE: $CUDA_VISIBLE_DEVICES $MINE"
W
cat >env.yaml <<'E'
nproc_per_node: gpu
program: tool
env: {CUDA_VISIBLE_DEVICES: "2,3", PATH: "${PWD}/bin:${PATH}", MINE: "$${HOME}"}
E
run --config env.yaml; expect 0 "PATH and CUDA_VISIBLE_DEVICES of the file"
check "they find the program and bound the job: $(cat out)" has '^1 of 2: 2,3 \$\{HOME\}$' out
unset LAUNCH_SYSROOT

# Shown, and taken again.
PET_MAX_RESTARTS=2 run --config j.yaml --tee 3 --print-config -- x; expect 0 "--print-config"
check "nothing on stderr" test ! -s err
for line in 'nproc_per_node: 1  # j.yaml:1' 'max_restarts: 2  # PET_MAX_RESTARTS' 'tee: 3  # command line --tee' 'timeout: 0  # default'; do
    check "$line" grep -qxF "$line" out
done
mv out shown.yaml
run --config shown.yaml --print-config; expect 0 "what was shown is a job file"
check "and says the same" cmp <(sed 's/  # .*//' shown.yaml) <(sed 's/  # .*//' out)
rm got.*; run --config shown.yaml; expect 0 "and runs"; check "the same job" test "$(tail -1 got.0)" = x
run --example-config; expect 0 "--example-config"
check "config/example.yaml is up to date (make example)" cmp out "$SRC/config/example.yaml"
run --config "$SRC/config/example.yaml" ./p.sh; expect 0 "the example runs as it is"
"$LAUNCH" --print-config >/dev/full 2>err; rc=$?; expect 125 "a full disk"; check "is told" has 'No space' err

refused() { # "what" REGEX < FILE
    cat >bad.yaml; rm -f got.*
    run --config bad.yaml; expect 2 "$1"
    check "$1: '$2', not '$(cat err)'" has "^launch: $2" err
    check "$1: one line" test "$(wc -l <err)" = 1
    check "$1: nothing started" test ! -e got.0 -a ! -s out
}
refused 'unknown key' "bad.yaml:3:1: unknown key 'nprocs_per_node' \(did you mean 'nproc_per_node'\?\)" \
    <<<$'nproc_per_node: 1\nprogram: ./p.sh\nnprocs_per_node: 8'
refused 'repeated key' 'bad.yaml:3:1: nproc_per_node: .* second time' <<<$'nproc_per_node: 1\nprogram: ./p.sh\nnproc_per_node: 2'
refused 'tab' 'bad.yaml:4:1: a tab' <<<$'nproc_per_node: 1\nprogram: ./p.sh\nenv:\n\tA: b'
refused 'list for a word' 'bad.yaml:3:10: env: A: must be a text, not a list' \
    <<<$'nproc_per_node: 1\nprogram: ./p.sh\nenv: {A: [1, 2]}'
refused 'variable of ours' 'bad.yaml:2:7: env: RANK is what launch itself sets' <<<$'program: ./p.sh\nenv: {RANK: 1}'
refused 'unset variable' 'bad.yaml:2:10: env: A: \$\{NOT_SET_AT_ALL\} is not set' \
    <<<$'program: ./p.sh\nenv: {A: "${NOT_SET_AT_ALL}"}'
refused 'no program' "no program given, neither here nor as 'program' in bad.yaml" <<<'nproc_per_node: 1'
refused 'NUL' 'bad.yaml:2:7: a NUL byte' < <(printf 'program: ./p.sh\nrole: \0\n')
refused 'empty file' 'job file bad.yaml: is empty' </dev/null
mkfifo pipe; LIMIT=10 run --config pipe; expect 2 "a pipe does not hold it up"
truncate -s 100M big.yaml; LIMIT=10 run --config big.yaml; expect 2 "100 MB"; check "by its size" has '104857600 bytes' err
run --config; expect 2 "no file named"

# The inputs that the fuzzers begin with.
"$BUILD/tests/fuzz/yaml" "$SRC"/tests/fuzz/corpus_yaml/* 2>err || fail "a job file of the corpus: $(cat err)"
"$BUILD/tests/fuzz/cmdline" "$SRC"/tests/fuzz/corpus_cmdline/* 2>err || fail "a command line of the corpus: $(cat err)"
"$BUILD/tests/fuzz/nccl_log" "$SRC"/tests/fuzz/corpus_nccl_log/* 2>err || fail "a log of the corpus: $(cat err)"
finish
