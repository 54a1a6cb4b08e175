"""The behaviours of the table in shell and Python, for the kinds that run programs."""

HANG = "echo ready; exec sleep 600"

COUNT = """
i=0; [ -n "$TASKYARD_CHECKPOINT_FILE" ] && i=$(cat "$TASKYARD_CHECKPOINT_FILE")
trap 'echo $((i + 1)) > state; taskyard-task checkpoint state > /dev/null; exit 0' TERM
echo "from $i"
[ "$i" -ge 1 ] && exit 0
echo ready; while true; do sleep 600 & wait; done
"""

PROGRESS = "taskyard-task progress 60 half"

RESULT = """echo '{"sum": 42}' > "$TASKYARD_RESULT_FILE" """

TAKE_MEMORY = "x = bytearray(400_000_000)"

LINGER = "echo before; sleep 2; echo after"
