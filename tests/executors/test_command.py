"""Commands pass the table: programs of the host, started without a shell."""

from __future__ import annotations

from typing import ClassVar, Unpack

from taskyard import NewTask, Options, command
from tests.executors.cases import ExecutorCases
from tests.executors.shell import COUNT, HANG, LINGER, PROGRESS, RESULT, TAKE_MEMORY


class Commands:
    flags: ClassVar[tuple[str, ...]] = ()
    memory_code: ClassVar[str] = "OUT_OF_MEMORY"

    def prints(self, *lines: str, **options: Unpack[Options]) -> NewTask:
        return command("printf", "%s\\n", *lines, **options)

    def fails(self, **options: Unpack[Options]) -> NewTask:
        return command("false", **options)

    def fails_for_good(self, **options: Unpack[Options]) -> NewTask:
        return command("no-such-program", **options)

    def hangs(self, **options: Unpack[Options]) -> NewTask:
        return _shell(HANG, options)

    def counts(self, **options: Unpack[Options]) -> NewTask:
        return _shell(COUNT, options)

    def reports_progress(self, **options: Unpack[Options]) -> NewTask:
        return _shell(PROGRESS, options)

    def returns(self, **options: Unpack[Options]) -> NewTask:
        return _shell(RESULT, options)

    def takes_memory(self, **options: Unpack[Options]) -> NewTask:
        return command("python3", "-c", TAKE_MEMORY, **options)

    def lingers(self, **options: Unpack[Options]) -> NewTask:
        return _shell(LINGER, options)


def _shell(body: str, options: Options) -> NewTask:
    return command("bash", "-c", body, **options)


class TestCommand(ExecutorCases):
    kind = Commands()
