"""Words of policies and phases as people write them, and identities, checked before anything is sent.

    ValueError
    └── Invalid             a structure that no server accepts: an empty slot, a back-off that shrinks, …
        ├── UnknownAdmission
        ├── UnknownRestart
        ├── UnknownJitter
        ├── UnknownOperator
        └── UnknownTaskPhase

Every spelling of a word is read: OnFailure, on_failure, on-failure and RESTART_POLICY_ON_FAILURE are one.
"""

from __future__ import annotations

import math
import re
from typing import Any

from taskyard.limits import SLOT_MAX_LEN, TASK_ID_MAX_LEN
from taskyard.v1 import common_pb2, task_pb2

_ID = re.compile(r"[A-Za-z0-9._-]+")
# What the replaced systems call some phases.
_PHASES = {"completed": "succeeded", "timeout": "timedout", "canceled": "cancelled", "inprogress": "running"}


class Invalid(ValueError):
    """A structure that no server accepts."""


class UnknownAdmission(Invalid):
    """A word that names no admission policy."""


class UnknownRestart(Invalid):
    """A word that names no restart policy."""


class UnknownJitter(Invalid):
    """A word that names no jitter policy."""


class UnknownOperator(Invalid):
    """A word that names no operator of a selector."""


class UnknownTaskPhase(Invalid):
    """A word that names no phase."""


def enum_value(enum: Any, word: str, error: type[Invalid] = Invalid) -> Any:
    """The number of a word, whatever its spelling; raises `error`, which lists the words."""
    prefix = enum.Name(0).removesuffix("UNSPECIFIED")
    named = {_plain(name.removeprefix(prefix)): number for name, number in enum.items() if number}
    plain = _plain(word)
    found = named.get(plain.removeprefix(_plain(prefix)) or plain)
    if found is None:
        words = ", ".join(name.removeprefix(prefix).lower() for name, number in enum.items() if number)
        raise error(f"{word!r} is not one of {words}")
    return found


def parse_admission(word: str) -> task_pb2.AdmissionPolicy.ValueType:
    """The policy of a word such as DropIfRunning; raises UnknownAdmission."""
    found: task_pb2.AdmissionPolicy.ValueType = enum_value(task_pb2.AdmissionPolicy, word, UnknownAdmission)
    return found


def parse_restart(word: str) -> common_pb2.RestartPolicy.ValueType:
    """The policy of a word such as OnFailure; raises UnknownRestart."""
    found: common_pb2.RestartPolicy.ValueType = enum_value(common_pb2.RestartPolicy, word, UnknownRestart)
    return found


def parse_jitter(word: str) -> common_pb2.JitterPolicy.ValueType:
    """The policy of a word such as Equal; raises UnknownJitter."""
    found: common_pb2.JitterPolicy.ValueType = enum_value(common_pb2.JitterPolicy, word, UnknownJitter)
    return found


def parse_operator(word: str) -> common_pb2.SelectorOperator.ValueType:
    """The operator of a word such as DoesNotExist; raises UnknownOperator."""
    found: common_pb2.SelectorOperator.ValueType = enum_value(
        common_pb2.SelectorOperator, word, UnknownOperator
    )
    return found


def parse_phase(word: str) -> task_pb2.TaskPhase.ValueType:
    """The phase of a word such as Succeeded, or completed, or IN_PROGRESS; raises UnknownTaskPhase."""
    known = _PHASES.get(_plain(word), word)
    found: task_pb2.TaskPhase.ValueType = enum_value(task_pb2.TaskPhase, known, UnknownTaskPhase)
    return found


def check_id(text: str, what: str, longest: int) -> None:
    """Raises Invalid unless a text may be an identity: letters, digits, '.', '_' and '-'; not '.' or '..'."""
    if not text:
        raise Invalid(f"{what} is empty; give 1 to {longest} letters, digits, '.', '_' or '-'")
    if len(text) > longest:
        raise Invalid(f"{what} {text[:20]!r}… has {len(text)} characters; at most {longest} are allowed")
    if not _ID.fullmatch(text) or text in (".", ".."):
        raise Invalid(f"{what} {text!r} is not allowed; use letters, digits, '.', '_' and '-'")


def check_backoff(backoff: common_pb2.BackoffPolicy) -> None:
    """Raises Invalid for a first delay of zero, a maximum below it, or a factor below 1 or without an end."""
    first, most = backoff.initial.ToTimedelta(), backoff.max.ToTimedelta()
    if backoff.HasField("initial") and first.total_seconds() <= 0:
        raise Invalid(f"the first delay of a back-off is {first.total_seconds():g} s; it must be above 0")
    if backoff.HasField("initial") and backoff.HasField("max") and most < first:
        raise Invalid(
            f"the longest delay of a back-off, {most.total_seconds():g} s, is below the first,"
            f" {first.total_seconds():g} s"
        )
    if backoff.HasField("factor") and not (math.isfinite(backoff.factor) and backoff.factor >= 1):
        raise Invalid(f"the factor of a back-off is {backoff.factor:g}; it must be a number of at least 1")


def check_identities(task_id: str, slot: str) -> None:
    """Raises Invalid for an id or a slot that no server accepts; both may be left out."""
    if task_id:
        check_id(task_id, "the id", TASK_ID_MAX_LEN)
    if slot:
        check_id(slot, "the slot", SLOT_MAX_LEN)


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]", "", word.strip().lower())
