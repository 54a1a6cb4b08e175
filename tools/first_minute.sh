#!/usr/bin/env bash
# The README's first minute for a new user: `make up` in an empty environment, then the first command.
# Exits with 0 if the command printed the output of a real task and Ctrl-C stopped everything cleanly.
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

output=$("${clean[@]}" .venv/bin/taskyard run -- echo hello)
[ "$output" = hello ] || { echo "first minute: the first command printed '$output', not 'hello'"; cat "$log"; exit 1; }
kill -INT -- "-$up"
# make reports the interrupt; Taskyard prints Stopped.
wait "$up"
grep -q '^Stopped' "$log" || { echo "first minute: make up did not end cleanly after Ctrl-C"; cat "$log"; exit 1; }
trap - EXIT
rm -rf "$home"
echo "first minute: make up, the first task and Ctrl-C work"
