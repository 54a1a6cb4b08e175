#!/bin/sh
# An unattended tour: a Taskyard of its own in a temporary directory, a few tasks, and everything gone afterwards.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
PATH="$root/.venv/bin:$PATH"
# Nothing of the user's set-up takes part.
unset TASKYARD_ADDRESS TASKYARD_SCHEDULER TASKYARD_KEY TASKYARD_TENANT TASKYARD_DATABASE_URL
work=$(mktemp -d)
up=

finish() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$up" ]; then kill -TERM "$up" 2>/dev/null || true; wait "$up" || true; fi
    if [ "$status" -ne 0 ]; then tail -n 5 "$work"/up.log "$work"/.taskyard/logs/*.log 2>/dev/null || true; fi
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '\n# %s\n' "$*"; }
# Shows a command as it is typed, then does it.
show() { printf '$ %s\n' "$1"; eval "$1"; }
# The same for one that has to end with a certain exit code.
expect() {
    got=0; show "$2" || got=$?
    if [ "$got" -ne "$1" ]; then echo "exit code $got, not $1"; exit 1; fi
    echo "(exit code $got)"
}

exec 2>&1
cd "$work"
say "Everything starts on this machine: PostgreSQL, taskdb, scheduler, runner"
taskyard up --data-dir .taskyard --taskdb-port 0 --scheduler-port 0 >up.log 2>&1 &
up=$!
tries=0
until grep -q '^Ready' up.log; do
    kill -0 "$up" 2>/dev/null && [ "$tries" -lt 300 ] || { cat up.log; exit 1; }
    tries=$((tries + 1)); sleep 0.1
done
show 'taskyard status'

say "A command, its output, its exit code"
show 'taskyard run -- echo hello'
expect 3 'taskyard run -- sh -c "echo this one fails; exit 3"'

say "A failure that is tried again"
cat >flaky.sh <<'END'
echo "attempt $TASKYARD_ATTEMPT"
[ "$TASKYARD_ATTEMPT" -ge 2 ]
END
show 'taskyard run --retries 2 --script flaky.sh'

say "A script is sent along"
printf 'import sys\nprint("the sum is", sum(map(int, sys.argv[1:])))\n' >sum.py
show 'taskyard run --script sum.py -- 20 22'

say "A task is created, and every change of it watched"
show 'taskyard submit --id counting --label tour=demo -- sh -c "for n in 1 2 3; do echo \$n; sleep 0.3; done"'
show 'taskyard watch counting'
show 'taskyard logs counting'

say "A task is cancelled"
show 'taskyard submit --id endless --label tour=demo -- sleep 1000'
show 'taskyard cancel --grace 2s --reason enough endless'
expect 1 'taskyard wait --timeout 30s endless'

say "A task is paused and resumed"
show 'taskyard submit --id patient --label tour=demo -- sleep 4'
show 'taskyard pause --grace 1s patient'
show 'taskyard resume patient'
show 'taskyard wait --timeout 40s patient'

say "What happened"
show 'taskyard list'
show 'taskyard runs patient'
show 'taskyard get counting'

say "The end"
