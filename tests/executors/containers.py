"""The behaviours of the table in a container of busybox."""

from __future__ import annotations

from typing import ClassVar, Unpack

from taskyard import NewTask, Options, container
from tests.executors.images import NAME, engine_problem, image_directory, podman_image

_COUNT = """
from=0; [ -n "$TASKYARD_CHECKPOINT_FILE" ] && from=$(cat "$TASKYARD_CHECKPOINT_FILE")
keep() {
    echo 1 > "$TASKYARD_CHECKPOINT_DIR/state"
    echo '{"op": "checkpoint", "file": "state"}' > "$TASKYARD_PIPE"
    exit 0
}
trap keep TERM
echo "from $from"; [ "$from" -ge 1 ] && exit 0
echo ready; while true; do sleep 600 & wait $!; done
"""
_PROGRESS = """echo '{"op": "progress", "percent": 60, "message": "half"}' > "$TASKYARD_PIPE" """
_RESULT = """echo '{"sum": 42}' > "$TASKYARD_RESULT_FILE" """


class Containers:
    """Tasks for one engine."""

    memory_code: ClassVar[str] = "OUT_OF_MEMORY"

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def problem(self) -> str:
        return engine_problem(self.engine)

    @property
    def flags(self) -> tuple[str, ...]:
        chosen = ("--kind", "container", "--container-engine", self.engine, "--no-container-pull")
        return (*chosen, "--image-dir", str(image_directory()))

    @property
    def image(self) -> str:
        return podman_image() if self.engine == "podman" else NAME

    def runs(self, *args: str, **options: Unpack[Options]) -> NewTask:
        return container(self.image, *args, **options)

    def shell(self, body: str, **options: Unpack[Options]) -> NewTask:
        return self.runs("sh", "-c", body, **options)

    def prints(self, *lines: str, **options: Unpack[Options]) -> NewTask:
        return self.runs("printf", "%s\\n", *lines, **options)

    def fails(self, **options: Unpack[Options]) -> NewTask:
        return self.shell("exit 3", **options)

    def fails_for_good(self, **options: Unpack[Options]) -> NewTask:
        return self.runs("/bin/no-such-program", **options)

    def hangs(self, **options: Unpack[Options]) -> NewTask:
        return self.shell("echo ready; exec sleep 600", **options)

    def counts(self, **options: Unpack[Options]) -> NewTask:
        return self.shell(_COUNT, **options)

    def reports_progress(self, **options: Unpack[Options]) -> NewTask:
        return self.shell(_PROGRESS, **options)

    def returns(self, **options: Unpack[Options]) -> NewTask:
        return self.shell(_RESULT, **options)

    def takes_memory(self, **options: Unpack[Options]) -> NewTask:
        return self.shell("dd if=/dev/zero of=/dev/null bs=400M count=1", **options)

    def lingers(self, **options: Unpack[Options]) -> NewTask:
        return self.shell("echo before; sleep 2; echo after", **options)
