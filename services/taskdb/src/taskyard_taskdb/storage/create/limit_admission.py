"""Limits of new tasks: locked before the counters of tenants; they admit the tasks once these are stored."""

from __future__ import annotations

from collections.abc import Sequence

from taskyard.errors import FieldInvalid, NotFound
from taskyard_taskdb.domain.names import limit_name
from taskyard_taskdb.domain.words import PendingReason
from taskyard_taskdb.storage import arrays
from taskyard_taskdb.storage.create.new_task import NewTask, Refused
from taskyard_taskdb.storage.limit import admission
from taskyard_taskdb.storage.limit import book as books
from taskyard_taskdb.storage.limit.admission import Settled, key_arrays
from taskyard_taskdb.storage.limit.book import Book
from taskyard_taskdb.storage.pool import Tx
from taskyard_taskdb.storage.statements import statement

Fresh = Sequence[tuple[int, NewTask]]


async def lock(tx: Tx, fresh: Fresh) -> Book | None:
    """Lock the limits of new tasks; None if no task has any.

    Raises Refused for tasks that name an unknown one, or more units than it ever has.
    """
    named = [(position, task) for position, task in fresh if task.limits]
    if not named:
        return None
    book = await books.lock(tx, ((task.tenant_id, use.limit_id) for _, task in named for use in task.limits))
    refused: dict[int, Exception] = {}
    for position, task in named:
        if (error := _find_error(book, task)) is not None:
            refused[position] = error
    if refused:
        raise Refused(refused)
    return book


def _find_error(book: Book, task: NewTask) -> Exception | None:
    for index, use in enumerate(task.limits):
        key = (task.tenant_id, use.limit_id)
        found = book.limits.get(key)
        if found is None or found.deleted:
            return NotFound("limit", limit_name(*key))
        most = found.rules.most_units()
        if most is not None and use.units > most:
            problem = (
                f"is {use.units}, but {limit_name(*key)} has {most} at most; ask for less or raise the limit"
            )
            return FieldInvalid.of(f"task.spec.limits[{index}].units", problem)
    return None


async def store(tx: Tx, book: Book, stored: Sequence[tuple[NewTask, PendingReason]]) -> Settled:
    """Store the limits of new tasks, and admit those that wait for nothing else."""
    named = [(task, reason) for task, reason in stored if task.limits]
    if not named:
        return Settled()
    rows = [
        (task, use, reason is PendingReason.LIMITED and place == 0)
        for task, reason in named
        for place, use in enumerate(sorted(task.limits))
    ]
    await tx.execute(
        statement("insert_task_limits"),
        {
            **key_arrays([task.key for task, _, _ in rows]),
            "limit_ids": arrays.texts([use.limit_id for _, use, _ in rows]),
            "keys": arrays.texts([use.key for _, use, _ in rows]),
            "units": arrays.integers([use.units for _, use, _ in rows]),
            "waits": arrays.bools([waits for _, _, waits in rows]),
        },
    )
    limited = arrays.bools([False] * len(named))
    await tx.execute(
        statement("set_limited"), key_arrays([task.key for task, _ in named]) | {"limited": limited}
    )
    waiting = [(task.tenant_id, use) for task, use, waits in rows if waits]
    return await admission.admit(tx, book, waiting) if waiting else Settled()
