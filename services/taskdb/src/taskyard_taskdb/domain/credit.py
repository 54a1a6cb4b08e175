"""Credit: places that schedulers keep with this replica, for tasks that are leased when they are created.

Credit is a permission, not a promise. It is used only while its scheduler and its runner are beyond doubt and
while nothing is known to wait that its scheduler has not considered; the database decides about the rest.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Terms:
    """What a scheduler allows for one runner; `valid_for` is in seconds, no tenants are all tenants."""

    runner_id: str
    session_epoch: int
    heartbeat_id: int
    valid_for: float
    lease_duration: timedelta
    class_ids: frozenset[int]
    tenants: frozenset[str] = frozenset()


class Wanted(NamedTuple):
    """A task that might be leased at once, by its lane."""

    tenant_id: str
    class_id: int
    priority: int


class Receiver(Protocol):
    """Passes the uses of credit on to the scheduler, in order."""

    def granted(self, grant: Grant, task: object) -> None: ...

    def settled(self, runner_id: str) -> None: ...


@dataclass(slots=True, eq=False)
class Account:
    """The credit of one runner's session: what is left of it, and how many places undecided creates have."""

    terms: Terms
    valid_until: float
    left: int = 0
    undecided: int = 0
    withdrawn: bool = False
    # The classes in whose turns the account is.
    listed: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Grant:
    """A place that an undecided create has taken, and the terms it was taken under."""

    line: CreditLine
    account: Account
    terms: Terms


class CreditLine:
    """The credit of one scheduler, as long as its stream is open."""

    def __init__(self, book: CreditBook, scheduler_id: str, receiver: Receiver) -> None:
        self.scheduler_id = scheduler_id
        self.receiver = receiver
        self._book = book
        self._accounts: dict[str, Account] = {}
        # Accounts take turns, so that the tasks of a class spread over the runners.
        self._turns: dict[int, OrderedDict[Account, None]] = {}
        self._considered = -1
        self._valid_until = 0.0

    def consider(self, replica_id: str, number: int, valid_for: float) -> None:
        """The scheduler has considered the work up to this position, and is alive."""
        self._valid_until = self._book.now() + valid_for
        # A position of another replica says nothing about the work that this one knows of.
        self._considered = number if replica_id == self._book.replica_id else -1

    def give(self, terms: Terms, places: int) -> None:
        """Replace the terms of a runner and add places; those of another session are void."""
        account = self._accounts.get(terms.runner_id)
        if account is None or account.withdrawn or account.terms.session_epoch != terms.session_epoch:
            if account is not None:
                self._unlist(account)
            account = self._accounts[terms.runner_id] = Account(terms, 0.0)
        account.terms = terms
        account.valid_until = self._book.now() + terms.valid_for
        account.left += places
        self._list(account)

    def withdraw(self, runner_id: str) -> None:
        """Use no more of a runner's credit; `settled` follows once no create is undecided."""
        account = self._accounts.get(runner_id)
        if account is None:
            self.receiver.settled(runner_id)
            return
        account.withdrawn = True
        self._unlist(account)
        self._settle_withdrawn(account)

    def close(self) -> None:
        """The stream has ended, and with it the credit."""
        self._accounts.clear()
        self._turns.clear()
        self._book.remove(self)

    def is_usable(self) -> bool:
        """Whether the scheduler is alive and has considered all work that is known to wait."""
        return self._considered >= self._book.position and self._valid_until > self._book.now()

    def take(self, wanted: Wanted) -> Grant | None:
        """A place for the task, if a runner that may take it has one."""
        turns = self._turns.get(wanted.class_id)
        if not turns:
            return None
        now = self._book.now()
        for _ in range(len(turns)):
            account = next(iter(turns))
            terms = account.terms
            if account.left <= 0 or wanted.class_id not in terms.class_ids:
                # It is listed again with new places.
                del turns[account]
                account.listed.discard(wanted.class_id)
                continue
            turns.move_to_end(account)
            serves = not terms.tenants or wanted.tenant_id in terms.tenants
            if serves and account.valid_until > now:
                account.left -= 1
                account.undecided += 1
                return Grant(self, account, terms)
        return None

    def decide(self, grant: Grant, task: object | None) -> None:
        """The create is decided: the leased task, or None if the place was not used."""
        account = grant.account
        account.undecided -= 1
        if task is not None:
            self.receiver.granted(grant, task)
        else:
            account.left += 1
            if self._accounts.get(account.terms.runner_id) is account and not account.withdrawn:
                self._list(account)
        if account.withdrawn:
            self._settle_withdrawn(account)

    def _list(self, account: Account) -> None:
        """Give the account its turn in each of its classes."""
        for class_id in account.terms.class_ids - account.listed:
            self._turns.setdefault(class_id, OrderedDict())[account] = None
            account.listed.add(class_id)

    def _unlist(self, account: Account) -> None:
        """The account gets no more turns."""
        for class_id in account.listed:
            turns = self._turns[class_id]
            del turns[account]
            if not turns:
                del self._turns[class_id]
        account.listed.clear()

    def _settle_withdrawn(self, account: Account) -> None:
        runner_id = account.terms.runner_id
        if not account.undecided and self._accounts.get(runner_id) is account:
            del self._accounts[runner_id]
            self.receiver.settled(runner_id)


class CreditBook:
    """All credit of a replica. `position` counts how often work that waits became known."""

    def __init__(self, replica_id: str, now: Callable[[], float] = time.monotonic) -> None:
        self.replica_id = replica_id
        self.position = 0
        self.now = now
        self._lines: list[CreditLine] = []

    def open(self, scheduler_id: str, receiver: Receiver) -> CreditLine:
        """The credit of a scheduler that has connected."""
        line = CreditLine(self, scheduler_id, receiver)
        self._lines.append(line)
        return line

    def remove(self, line: CreditLine) -> None:
        """The credit has ended."""
        if line in self._lines:
            self._lines.remove(line)

    def work_waits(self) -> None:
        """Work that waits became known: no credit is used before its scheduler has considered it."""
        self.position += 1

    def take(self, wanted: Sequence[Wanted]) -> list[Grant | None]:
        """A place for each task, as far as there are any; once a task gets none, its lane gets no more."""
        lines = [line for line in self._lines if line.is_usable()]
        if not lines:
            return [None] * len(wanted)
        grants: list[Grant | None] = []
        waiting: set[Wanted] = set()
        for one in wanted:
            grant = None if one in waiting else _first(line.take(one) for line in lines)
            if grant is None:
                waiting.add(one)
            grants.append(grant)
        return grants


def _first(grants: Iterable[Grant | None]) -> Grant | None:
    return next((grant for grant in grants if grant is not None), None)
