"""Which errors of taskdb are final for the sender: repeating the call cannot help."""

from __future__ import annotations

from taskyard import errors

# taskdb was not reached, failed on its own account, or does not accept the scheduler's key for now.
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
    """Whether the runner may discard what taskdb answered this for."""
    if error.retryable or error.code in _TRANSIENT or isinstance(error, errors.Overloaded):
        return False
    return error.code != errors.Code.ABORTED or isinstance(error, errors.StaleGeneration)
