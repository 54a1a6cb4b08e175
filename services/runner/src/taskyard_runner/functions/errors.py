"""Exceptions by which a function chooses its outcome.

FunctionError
├── Transient        retried under the task's policy
├── Permanent        never retried
│   ├── InvalidPayload
│   ├── InvalidResult
│   └── ChildFailed  a child that the function waited for did not succeed
└── Cancelled        a stop was asked for, and the function obeys
"""

from __future__ import annotations

from datetime import timedelta


class FunctionError(Exception):
    """An outcome that the function chose itself.

    `code` is the machine-readable cause in UPPER_SNAKE_CASE; `retry_after` in seconds delays the retry of a
    transient one.
    """

    code = ""

    def __init__(
        self, message: str = "", *, code: str = "", retry_after: float | timedelta | None = None
    ) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.retry_after = retry_after.total_seconds() if isinstance(retry_after, timedelta) else retry_after


class Transient(FunctionError):
    """It may work the next time."""


class Permanent(FunctionError):
    """It will not work the next time either."""


class InvalidPayload(Permanent):
    """The payload does not fit the function's parameters; the text names field, value and expected type."""

    code = "INVALID_PAYLOAD"


class InvalidResult(Permanent):
    """The function's return value cannot be stored as a result."""

    code = "INVALID_RESULT"


class ChildFailed(Permanent):
    """A spawned child did not succeed; the function that starts again would find the same outcome.

    `task` is the child's name, `phase` how it ended (such as FAILED), `error_code` and `error_message` why.
    """

    code = "CHILD_FAILED"

    def __init__(self, task: str, phase: str, error_code: str = "", error_message: str = "") -> None:
        why = f": {error_code}" if error_code else ""
        why += f": {error_message}" if error_message else ""
        super().__init__(f"child {task} ended as {phase}{why}")
        self.task, self.phase = task, phase
        self.error_code, self.error_message = error_code, error_message


class Waiting(BaseException):
    """Ends a run whose function waits for children; gather raises it, and the host handles it.

    No Exception, so that a function's own `except Exception` lets it pass.
    """


class Cancelled(FunctionError):
    """The run is being stopped: a cancel, a pause, a drain or a timeout."""


class RequestFailed(FunctionError):
    """The runner refused a request of the function, such as storing a checkpoint."""
