#!/bin/sh
# An unattended demo: starts Taskyard in a temporary directory, runs a few tasks and removes everything afterwards.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
PATH="$root/.venv/bin:$PATH"
# The user's own settings are ignored.
unset TASKYARD_ADDRESS TASKYARD_SCHEDULER TASKYARD_KEY TASKYARD_ADMIN_KEY TASKYARD_TENANT TASKYARD_DATABASE_URL
work=$(mktemp -d)
up=
worker=
image=
skipped=

finish() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$worker" ]; then kill -TERM "$worker" 2>/dev/null || true; wait "$worker" || true; fi
    if [ -n "$up" ]; then kill -TERM "$up" 2>/dev/null || true; wait "$up" || true; fi
    if [ -n "$image" ]; then podman rmi --force "$image" >/dev/null 2>&1 || true; fi
    if [ "$status" -ne 0 ]; then tail -n 5 "$work"/up.log "$work"/.taskyard/logs/*.log 2>/dev/null || true; fi
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

title() { printf '\n# %s\n' "$*"; }
# Prints a command, then runs it.
show() { printf '$ %s\n' "$1"; eval "$1"; }
# Prints and runs a command that must exit with the given code.
expect() {
    got=0; show "$2" || got=$?
    if [ "$got" -ne "$1" ]; then echo "exit code $got, not $1"; exit 1; fi
    echo "(exit code $got)"
}

exec 2>&1
cd "$work"
title "Everything starts on this machine: PostgreSQL, taskdb, scheduler, runner"
taskyard up --data-dir .taskyard --taskdb-port 0 --scheduler-port 0 --gateway-port 0 >up.log 2>&1 &
up=$!
tries=0
until grep -q '^Ready' up.log; do
    kill -0 "$up" 2>/dev/null && [ "$tries" -lt 900 ] || { cat up.log; exit 1; }
    tries=$((tries + 1)); sleep 0.1
done
show 'taskyard status'

title "A command, its output, its exit code"
show 'taskyard run -- echo hello'
expect 3 'taskyard run -- sh -c "echo this one fails; exit 3"'

title "A script is sent along"
printf 'import sys\nprint("the sum is", sum(map(int, sys.argv[1:])))\n' >sum.py
show 'taskyard run --script sum.py -- 20 22'

title "What the runner has proved to work"
show 'taskyard runners show local'
runner_info=$(taskyard runners show local)
# Whether the runner offers a kind; if not, the demo skips it and reports that here and at its end.
offers() {
    case $(printf '%s\n' "$runner_info" | grep '^kinds') in *"$1"*) return 0;; esac
    skipped="${skipped:+$skipped, }$1"
    echo "Skipped: $1: the runner could not run one on this host. It needs $2. Reported errors:"
    grep "\"kind\": \"$1\"" .taskyard/logs/runner.log | tail -n 3 || true
    return 1
}

title "A WASI module is sent along, and runs in a sandbox"
if offers wasm "wasmtime"; then
    python "$root/tools/demo_module.py" >hello.wasm
    show 'taskyard run --wasm hello.wasm'
fi

title "A container has an image of its own, no network and no rights"
if offers container "podman or runc"; then
    python "$root/tools/demo_image.py" .taskyard/runner/images/taskyard-demo
    if printf '%s\n' "$runner_info" | grep -q '^containers *podman'; then
        image=localhost/taskyard-demo-$$:1
        tar -C .taskyard/runner/images/taskyard-demo -c . | podman import - "$image" >/dev/null 2>&1
    fi
    show "taskyard run --image ${image:-taskyard-demo} -- /bin/hello"
fi

title "A function of an application, on a runner of its own"
cat >greetings.py <<'END'
from taskyard_runner.functions import App

app = App()

@app.task("greet")
def greet(name: str) -> dict[str, str]:
    print("greeting", name)
    return {"greeting": f"hello {name}"}
END
show 'taskyard keys create --kind runner --runner-id worker --to worker.key'
PYTHONPATH=. taskyard-runner --scheduler "$(sed -n 's/^scheduler = "\(.*\)"/\1/p' .taskyard/context.toml)" --id worker \
    --data-dir worker --key "file:$work/worker.key" --app greetings:app >worker.log 2>&1 &
worker=$!
show "taskyard run --id greeted --function greet --payload '{\"name\": \"you\"}'"
show 'taskyard get greeted | grep output'

title "A failure is tried again"
cat >flaky.sh <<'END'
echo "attempt $TASKYARD_ATTEMPT"
[ "$TASKYARD_ATTEMPT" -ge 2 ]
END
show 'taskyard run --retries 2 --script flaky.sh'

title "A task is created, and every change of it watched"
show 'taskyard submit --id counting --label tour=demo -- sh -c "for n in 1 2 3; do echo \$n; sleep 0.2; done"'
show 'taskyard watch counting'
show 'taskyard logs counting'

title "A task is cancelled"
show 'taskyard submit --id endless --label tour=demo -- sleep 1000'
show 'taskyard cancel --grace 2s --reason enough endless'
expect 1 'taskyard wait --timeout 30s endless'

title "A task is paused, and resumes from its checkpoint"
cat >patient.py <<'END'
import os, pathlib, signal, subprocess, sys, time
saved = os.environ.get("TASKYARD_CHECKPOINT_FILE")
count = int(pathlib.Path(saved).read_text()) if saved else 0
print("starting at", count, flush=True)
def stop(*_):
    pathlib.Path("state").write_text(str(count))
    subprocess.run(["taskyard-task", "checkpoint", "state", "--wait", "10"], check=True, stdout=subprocess.DEVNULL)
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
# The first run continues until it is stopped; the second runs ten more steps.
end = count + 10 if saved else float("inf")
while count < end:
    time.sleep(0.1)
    count += 1
print("done at", count, flush=True)
END
show 'taskyard submit --id patient --label tour=demo --script patient.py'
until taskyard logs patient 2>/dev/null | grep -q starting; do sleep 0.3; done
show 'taskyard pause patient'
until taskyard get patient | grep -q PAUSED; do sleep 0.3; done
show 'taskyard resume patient'
show 'taskyard wait --timeout 40s patient'
show 'taskyard logs patient'

title "Why does it not run?"
show 'taskyard submit --id moonshot --label tour=demo --runner-label zone=moon -- true'
expect 1 'taskyard explain moonshot'
show 'taskyard runners label local zone=moon'
show 'taskyard wait --timeout 30s moonshot'

title "Many at a time"
show 'seq 100 | taskyard submit --each - --label tour=many -- echo >ids'
show "taskyard wait --timeout 60s \$(cat ids) | tail -n 1"

title "What happened"
show "taskyard list --filter 'metadata.labels.tour = \"demo\"'"
show 'taskyard runs patient'
show 'taskyard stats'
show 'taskyard audit moonshot'

title "The end${skipped:+; skipped here: $skipped}"
