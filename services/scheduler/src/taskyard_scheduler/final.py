"""Which errors of taskdb are final for the sender: repeating the call cannot help."""

from __future__ import annotations

from taskyard import errors

# taskdb was not reached, failed internally, or does not accept the scheduler's key at the moment.
_TRANSIENT = frozenset(
    (
        errors.Code.UNAVAILABLE,
        errors.Code.DEADLINE_EXCEEDED,
        errors.Code.CANCELLED,
        errors.Code.INTERNAL,
        errors.Code.UNKNOWN,
        errors.Code.UNAUTHENTICATED,
        errors.Code.PERMISSION_DENIED,
    )
)


def is_final(error: errors.TaskyardError) -> bool:
    """Whether the runner may discard the data that taskdb rejected with this error."""
    if error.retryable or error.code in _TRANSIENT or isinstance(error, errors.Overloaded):
        return False
    return error.code != errors.Code.ABORTED or isinstance(error, errors.StaleGeneration)
