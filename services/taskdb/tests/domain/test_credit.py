"""The book of credit: turns, places, and what remains of withdrawn credit."""

from __future__ import annotations

from datetime import timedelta

from taskyard_taskdb.domain.credit import CreditBook, CreditLine, Grant, Terms, Wanted

TASK = Wanted("default", 1, 10)


class Uses:
    """Records the uses of a line."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def granted(self, grant: Grant, task: object) -> None:
        self.sent.append(f"{task} on {grant.terms.runner_id}")

    def settled(self, runner_id: str) -> None:
        self.sent.append(f"{runner_id} settled")


def terms(runner_id: str, epoch: int = 1, *class_ids: int) -> Terms:
    return Terms(runner_id, epoch, 0, 10.0, timedelta(seconds=15), frozenset(class_ids or (1,)))


def open_line() -> tuple[CreditBook, CreditLine, Uses]:
    book, uses = CreditBook("replica", lambda: 0.0), Uses()
    line = book.open("scheduler", uses)
    line.consider("replica", 0, 3.0)
    return book, line, uses


def runners(grants: list[Grant | None]) -> list[str | None]:
    return [None if grant is None else grant.terms.runner_id for grant in grants]


def test_runners_take_turns() -> None:
    book, line, _ = open_line()
    line.give(terms("a"), 2)
    line.give(terms("b"), 2)
    assert runners(book.take([TASK] * 5)) == ["a", "b", "a", "b", None]


def test_a_lane_gets_no_more_once_one_of_its_tasks_got_none() -> None:
    book, line, _ = open_line()
    line.give(terms("a", 1, 1, 2), 1)
    other = Wanted("default", 2, 10)
    assert runners(book.take([TASK, other, TASK])) == ["a", None, None]


def test_a_place_that_was_not_used_is_put_back() -> None:
    book, line, uses = open_line()
    line.give(terms("a"), 1)
    (grant,) = book.take([TASK])
    assert grant is not None and book.take([TASK]) == [None]
    line.decide(grant, None)
    (again,) = book.take([TASK])
    assert again is not None
    line.decide(again, "t")
    assert uses.sent == ["t on a"]
    assert book.take([TASK]) == [None]


def test_withdrawal_is_settled_behind_what_was_granted() -> None:
    book, line, uses = open_line()
    line.give(terms("a"), 2)
    (grant,) = book.take([TASK])
    assert grant is not None
    line.withdraw("a")
    assert (uses.sent, book.take([TASK])) == ([], [None])
    line.decide(grant, "t")
    assert uses.sent == ["t on a", "a settled"]


def test_places_of_an_older_session_are_void() -> None:
    book, line, _ = open_line()
    line.give(terms("a", 1), 5)
    line.give(terms("a", 2), 1)
    grants = book.take([TASK, TASK])
    assert [grant and grant.terms.session_epoch for grant in grants] == [2, None]


def test_nothing_is_kept_of_withdrawn_and_replaced_credit() -> None:
    _, line, _ = open_line()
    for epoch in range(1, 50):
        line.give(terms("a", epoch, 1, 2, 3), 1)
        line.give(terms("b", epoch, 1, 2, 3), 1)
        line.withdraw("b")
    line.withdraw("a")
    assert (line._turns, line._accounts) == ({}, {})


def test_work_that_waits_closes_all_credit_until_it_was_considered() -> None:
    book, line, _ = open_line()
    line.give(terms("a"), 2)
    book.work_waits()
    assert book.take([TASK]) == [None]
    line.consider("replica", 1, 3.0)
    assert runners(book.take([TASK])) == ["a"]
    line.consider("another", 9, 3.0)
    assert book.take([TASK]) == [None]


def test_a_closed_line_has_no_credit() -> None:
    book, line, _ = open_line()
    line.give(terms("a"), 2)
    line.close()
    assert book.take([TASK]) == [None]
