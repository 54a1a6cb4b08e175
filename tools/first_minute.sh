#!/usr/bin/env bash
# The README's first minute as a newcomer has it: `make up` in an environment with nothing in it, then the first command.
# Ends with 0 if that printed the output of a real task and Ctrl-C ended everything cleanly.
set -u
cd "$(dirname "$0")/.." || exit 1
home=$(mktemp -d)
log=$home/up.log
python=$(dirname "$(command -v python3.11 || command -v python3)")
clean=(env -i "HOME=$home" "PATH=$python:/usr/bin:/bin")

# A job of its own gets SIGINT as a terminal would send it, to make and to what make runs.
set -m
"${clean[@]}" make up >"$log" 2>&1 &
up=$!
set +m
trap 'kill -KILL -- -$up 2>/dev/null; rm -rf "$home"' EXIT

for _ in $(seq 120); do
    grep -q '^Ready' "$log" && break
    kill -0 "$up" 2>/dev/null || { echo "first minute: make up ended:"; cat "$log"; exit 1; }
    sleep 0.5
done

said=$("${clean[@]}" .venv/bin/taskyard run -- echo hello)
[ "$said" = hello ] || { echo "first minute: the first command printed '$said', not 'hello'"; cat "$log"; exit 1; }
kill -INT -- "-$up"
# make itself says that it was interrupted; Taskyard says that it stopped.
wait "$up"
grep -q '^Stopped' "$log" || { echo "first minute: make up did not end cleanly after Ctrl-C"; cat "$log"; exit 1; }
trap - EXIT
rm -rf "$home"
echo "first minute: make up, the first task and Ctrl-C are well"
