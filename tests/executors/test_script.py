"""Scripts pass the table: a text and an interpreter of the host."""

from __future__ import annotations

from typing import ClassVar, Unpack

from taskyard import NewTask, Options, script
from tests.executors.cases import ExecutorCases
from tests.executors.shell import COUNT, HANG, LINGER, PROGRESS, RESULT, TAKE_MEMORY


class Scripts:
    flags: ClassVar[tuple[str, ...]] = ()
    memory_code: ClassVar[str] = "OUT_OF_MEMORY"

    def prints(self, *lines: str, **options: Unpack[Options]) -> NewTask:
        return script.python("import sys; print(*sys.argv[1:], sep='\\n')", *lines, **options)

    def fails(self, **options: Unpack[Options]) -> NewTask:
        return script.bash("exit 3", **options)

    def fails_for_good(self, **options: Unpack[Options]) -> NewTask:
        return script.bash("taskyard-task fail --permanent --code BAD_INPUT no; exit 1", **options)

    def hangs(self, **options: Unpack[Options]) -> NewTask:
        return script.bash(HANG, **options)

    def counts(self, **options: Unpack[Options]) -> NewTask:
        return script.bash(COUNT, **options)

    def reports_progress(self, **options: Unpack[Options]) -> NewTask:
        return script.bash(PROGRESS, **options)

    def returns(self, **options: Unpack[Options]) -> NewTask:
        return script.bash(RESULT, **options)

    def takes_memory(self, **options: Unpack[Options]) -> NewTask:
        return script.python(TAKE_MEMORY, **options)

    def lingers(self, **options: Unpack[Options]) -> NewTask:
        return script.bash(LINGER, **options)


class TestScript(ExecutorCases):
    kind = Scripts()
