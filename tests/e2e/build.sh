#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 900
# The Makefile: only what needs it is made again, nothing lands outside build/, every reason is one line.
. "$SRC/tests/e2e/lib.sh"
[ "$BUILD" = "$SRC/build" ] || skip "once, with the plain build, is enough"
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES CFLAGS LDFLAGS CC LD_LIBRARY_PATH
mkdir tree; (cd "$SRC" && tar cf - --exclude=./build --exclude=./.git .) | tar xf - -C tree
cd tree || exit 2
listing() { find . -path ./build -prune -o -print | sort; }
made() { grep -E '^  [A-Z]+ ' ../log | sed 's/^ *//' | sort; }
build() { make -j2 CFLAGS=-O0 "$@" >../log 2>&1; rc=$?; expect 0 "make $*: $(cat ../log)"; }
objects() { sed -n 's/^CC //p' <(made) | tr '\n' ' '; }
listing >before
build NCCL=0
check "one line says that NCCL was left out: $(grep -i nccl: ../log)" test "$(grep -c '^nccl: skipped, NCCL=0$' ../log)" = 1
check "nothing but build/ is new" cmp -s before <(listing)
check "no warning: $(cat ../log)" test "$(grep -cvE '^(  [A-Z]+ |nccl: )' ../log)" = 0
build NCCL=0; check "a second make makes nothing: $(made)" test -z "$(made)"
check "all binaries are there" test -x build/launch -a -e build/liblaunch.a -a -e build/liblaunch.so -a -x build/launch-run -a -x build/examples/rank_sum

touched() { # HEADER "objects that must be made again"
    local want got
    touch "$1"; build NCCL=0; got=$(objects)
    want=$(grep -lE "/${1##*/}" $(find build/obj -name '*.d') | sed 's|^build/obj/||; s|\.d$|.c|' | sort | tr '\n' ' ')
    check "$1: made again: $got, includes it: $want" test "$got" = "$want"
    check "$1: at least $2" has "$2" <(echo "$got")
}
touched agent/plan.h 'agent/cmd/run.c .*agent/job.c .*agent/plan.c'
check "and launch is linked, liblaunch is not" test "$(grep -v ^CC <(made) | tr '\n' ,)" = 'LD build/launch,'
touched worker/reduce.h 'worker/collective.c worker/reduce.c'
check "launch is not linked" not has 'build/launch$' <(made)
touch agent/tail.c; build NCCL=0; check "one source: $(objects)" test "$(objects)" = 'agent/tail.c '
# From here on with a compiler that reads the includes and makes empty objects and programs: all takes seconds.
cat >../quick <<'W'
#!/bin/bash
out= dep= args=("$@")
for ((i = 0; i < $#; i++)); do [ "${args[i]}" = -o ] && out=${args[i + 1]}; [[ ${args[i]} == *.c ]] && src=${args[i]}; done
case " $* " in
*" -c "*) gcc "${args[@]}" -fsyntax-only -M -MF "${out%.o}.d" -MT "$out" 2>/dev/null; exec gcc -c -x c /dev/null -o "$out" ;;
*" -o "*) exec cp /bin/true "$out" ;;
*) exec gcc "$@" ;;
esac
W
chmod +x ../quick; quick() { build NCCL=0 CC="$PWD/../quick" "$@"; }
quick; check "another compiler makes everything again" test "$(objects | wc -w)" -gt 30
quick CFLAGS='-O0 -g0'; check "other flags make everything again" test "$(objects | wc -w)" -gt 30
quick CFLAGS='-O0 -g0' V=1; check "V=1 of nothing is nothing" not has ' -c ' ../log
touch agent/tail.c; quick CFLAGS='-O0 -g0' V=1; check "V=1 shows the command" has "-c agent/tail.c -o build/obj/agent/tail.o" ../log
mkdir -p ../rocm/include/hip ../rocm/include/rccl ../rocm/lib; touch ../rocm/include/{hip/hip_runtime_api,rccl/rccl}.h ../rocm/lib/lib{amdhip64.so.6,rccl.so.1}
quick CFLAGS='-O0 -g0' V=1 ROCM_HOME="$PWD/../rocm" build/liblaunch_rccl.a build/liblaunch_rccl.so build/launch-bench-rccl build/examples/rank_sum
check "a ROCm that is there gives an RCCL part" test -e build/liblaunch_rccl.a -a -e build/liblaunch_rccl.so -a -x build/launch-bench-rccl
check "of the NCCL part's sources: $(cat ../log)" has 'D__HIP_PLATFORM_AMD__ .*-include worker/gpu_api.h .*-c worker/nccl.c -o build/obj/rccl/worker/nccl.o' ../log
check "which examples have, too, where there is no NCCL" has 'liblaunch_rccl.a .*/librccl.so.1 .*/libamdhip64.so.6 .*-o build/examples/rank_sum' ../log
make NCCL=0 CC=no-such-cc >../log 2>&1; check "a missing compiler is an error" test $? = 2; check "that names it" has no-such-cc ../log
make CUDA_HOME=/no/such/dir ROCM_HOME=/no/such/dir CFLAGS='-O0 -g0' >../log 2>&1
check "a CUDA that is not there: one line, with the variable" test "$(grep -c '^nccl: skipped, no .*CUDA_HOME=' ../log)" = 1
check "a ROCm that is not there, likewise" test "$(grep -c '^rccl: skipped, no .*librccl.so (set ROCM_HOME=' ../log)" = 1
make clean >../log 2>&1; check "make clean leaves the tree as it was: $(diff before <(listing))" cmp -s before <(listing)
check "and no build/" test ! -e build
finish
