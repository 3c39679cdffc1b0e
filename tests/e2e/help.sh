#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# launch help, the manual page, and completion in real shells.
. "$SRC/tests/e2e/lib.sh"
run help; expect 0 "help"; cp out all
run --help; check "--help is the same" cmp -s out all
run -h; check "-h is the same" cmp -s out all
run help --help; expect 0 "help --help"; check "help --help is about help: $(cat out)" has '--man' out
run --version; check "one line of version: $(cat out)" has '^launch [0-9]+\.[0-9]+\.[0-9]+$' out
run help restarts; expect 0 "a topic"; check "text and options: $(cat out)" has '^Restarts$' out
run help PET_NNODES; check "a variable: $(cat out)" has '--nnodes=' out
run help restrats; expect 2 "no such topic"; check "the nearest: $(cat err)" has 'did you mean: launch help restarts\?' err
run help one two; expect 2 "two topics"

commands=$(sed -n '/^Commands/,/^$/s/^  launch \([a-z]*\) .*/\1/p' all)
check "commands are listed: $commands" test "$(wc -w <<<"$commands")" -ge 10
for command in $commands; do
    run $command --help; expect 0 "$command --help"
    check "$command --help says how it is used: $(head -1 out)" has '^usage: launch ' out
    check "$command --help has lines of a terminal's width" not has '.{81}' out
    mv out own; run help $command; expect 0 "help $command"
    check "help $command begins with what $command --help shows: $(cat out)" cmp -s own <(head -c "$(wc -c <own)" out)
    check "$command --help explains its words: $(cat own)" test "$(wc -l <own)" -ge 5
    "$LAUNCH" $command --help >/dev/full 2>err; rc=$?; expect 125 "$command --help on a full disk"
    check "a full disk is told: $(cat err)" has 'No space left' err
done

run help --man; expect 0 "--man"; mv out launch.1
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning launch.1 | grep -v 'missing date' >log # a page of the same version has the same bytes
    check "mandoc has nothing to say: $(cat log)" test ! -s log
fi
if command -v groff >/dev/null; then
    groff -man -Tutf8 -ww -z launch.1 >log 2>&1
    check "groff has nothing to say: $(cat log)" test ! -s log
fi
if command -v man >/dev/null; then
    MANWIDTH=80 man -l launch.1 2>&1 | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g' >page
    check "man shows an option with its dashes: $(head -5 page)" has '^ +-n, --nproc-per-node=' page
fi

# Completion: the words are what bash makes of the line, the last one is where the cursor is.
run help --bash; mv out launch.bash
complete_bash() { # words...: what is offered, on one line
    bash --norc -c 'compopt() { :; }; . ./launch.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _launch; echo "${COMPREPLY[*]}"' bash "$@"
}
offers() { local want=$1 got; shift; got=$(complete_bash "$@"); check "$*: '$want' and not '$got'" test "$got" = "$want"; }
: >zz.py; mkdir logs
offers '--nproc-per-node=' launch --nproc-p
check "commands, too" has '^help ' <(complete_bash launch '')
check "programs of the PATH" has 'timeout' <(complete_bash launch timeou)
offers 'zz.py' launch zz
offers 'zz.py' launch --share-gpus zz
offers 'zz.py' launch --nproc_per_node 2 zz
offers 'zz.py' launch --nproc-per-node = 2 zz
offers 'gpu' launch --nproc-per-node = g
offers 'gpu auto cpu' launch --nproc-per-node =
offers 'gpu auto cpu' launch -n ''
offers 'logs' launch --log-dir l
offers '' launch zz.py --nproc-p
offers '' launch -- zz.py --nproc-p
offers 'exit-codes exit-code' launch help exit
cat >tab.py <<'W'
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "-i"])
def until(text, got=b""):
    end = time.monotonic() + 20
    while text not in got and time.monotonic() < end:
        if select.select([fd], [], [], 1)[0]:
            got += os.read(fd, 4096)
    return got
os.write(fd, b"PS1=; . ./launch.bash; echo rea''dy\n")
until(b"ready")
os.write(fd, b"launch --nproc-p\t")
sys.exit(b"--nproc-per-node=" not in until(b"--nproc-per-node="))
W
if command -v python3 >/dev/null; then check "a real TAB completes --nproc-p" python3 tab.py; fi

for shell in zsh fish; do run help --$shell; expect 0 "--$shell"; mv out launch.$shell; done
if command -v fish >/dev/null; then
    check "fish offers it: $(fish -c 'source launch.fish; complete -C "launch --nproc-p"')" \
        has '^--nproc-per-node=?' <(fish -c 'source launch.fish; complete -C "launch --nproc-p"')
    check "fish offers no option of ours behind the program" \
        not has 'nproc' <(fish -c 'source launch.fish; complete -C "launch zz.py --nproc-p"')
    check "fish offers choices" has '^gpu' <(fish -c 'source launch.fish; complete -C "launch -n "')
else echo "fish is not here: its completion was not tried"
fi
cat >tab.zsh <<'W'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1=; autoload -Uz compinit; compinit -u -d $PWD/dump; fpath=($PWD \$fpath); source ./launch.zsh; bindkey '^I' complete-word; echo rea''dy"
zpty -r -m z got '*ready*'
zpty -n -w z $'launch --nproc-p\t'
zpty -r -m z got '*--nproc-per-node*' && print -r -- $got
W
if command -v zsh >/dev/null; then
    check "zsh reads it" zsh -n launch.zsh
    check "zsh completes it: $(timeout 20 zsh tab.zsh)" has 'nproc-per-node' <(timeout 20 zsh tab.zsh)
else echo "zsh is not here: its completion was not tried"
fi
finish
