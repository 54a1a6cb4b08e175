"""Functions as the table sees them."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack, cast

from taskyard import NewTask, Options, function

FLAGS = ("--app", "tests.executors.function_app:app", "--kind", "function")


class Functions:
    """Plain functions, or with a suffix their asynchronous twins."""

    flags: ClassVar[tuple[str, ...]] = FLAGS
    memory_code: ClassVar[str] = "OUT_OF_MEMORY"

    def __init__(self, suffix: str = "") -> None:
        self._suffix = suffix

    def _call(self, name: str, options: Options, payload: Any = None) -> NewTask:
        return function(name + self._suffix, payload, **cast(Any, options))

    def prints(self, *lines: str, **options: Unpack[Options]) -> NewTask:
        return self._call("prints", options, {"lines": list(lines)})

    def fails(self, **options: Unpack[Options]) -> NewTask:
        return self._call("fails", options)

    def fails_for_good(self, **options: Unpack[Options]) -> NewTask:
        return self._call("fails-for-good", options)

    def hangs(self, **options: Unpack[Options]) -> NewTask:
        return self._call("hangs", options)

    def counts(self, **options: Unpack[Options]) -> NewTask:
        return self._call("counts", options)

    def reports_progress(self, **options: Unpack[Options]) -> NewTask:
        return self._call("reports-progress", options)

    def returns(self, **options: Unpack[Options]) -> NewTask:
        return self._call("returns", options)

    def takes_memory(self, **options: Unpack[Options]) -> NewTask:
        return self._call("takes-memory", options)

    def lingers(self, **options: Unpack[Options]) -> NewTask:
        return self._call("lingers", options)
