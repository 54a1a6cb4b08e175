"""The reasons that each RPC documents, read from the comments of the protos."""

from __future__ import annotations

import re
from pathlib import Path

from taskyard.v1 import errors_pb2

PROTOS = Path(__file__).parents[4] / "protos" / "taskyard" / "v1"

_REASONS = {name.removeprefix("ERROR_REASON_") for name in list(errors_pb2.ErrorReason.keys())}
_RPC = re.compile(r"(?P<comment>(?:^ *//[^\n]*\n)+) *rpc (?P<name>\w+)\(", re.MULTILINE)
_ERRORS = re.compile(r"Errors: (.*)", re.DOTALL)
# A code whose reasons follow in parentheses; NOT_FOUND and ALREADY_EXISTS are names of both.
_CODE = re.compile(r"\b[A-Z_]+(?= *\()")
_WORD = re.compile(r"\b[A-Z][A-Z_]+\b")
_READS = re.compile("Get|BatchGet|List|Read|Tail|Watch|Wait|Check|Verify|Validate")
_REPEAT = re.compile("[Ii]dempotent|repeat")
_AS = re.compile(r"\bas (?:in )?([A-Z]\w+)")

Pair = tuple[str, str]


def documented(*services: str) -> set[Pair]:
    """All (RPC, reason) pairs of these services."""
    texts: dict[str, str] = {}
    for service in services:
        for match in _RPC.finditer((PROTOS / f"{service}.proto").read_text()):
            texts[match["name"]] = _errors_of(match["comment"])
    return {(rpc, reason) for rpc, text in texts.items() for reason in _reasons(text, texts)}


def undocumented_repeats(*services: str) -> set[str]:
    """The mutating RPCs whose comment does not document the effect of a repetition."""
    return {
        match["name"]
        for service in services
        for match in _RPC.finditer((PROTOS / f"{service}.proto").read_text())
        if not _READS.match(match["name"]) and not _REPEAT.search(match["comment"])
    }


def _errors_of(comment: str) -> str:
    plain = " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
    found = _ERRORS.search(plain)
    return found[1] if found else ""


def _reasons(text: str, texts: dict[str, str]) -> set[str]:
    found = set(_WORD.findall(_CODE.sub("", text))) & _REASONS
    for other in _AS.findall(text):
        found |= _reasons(texts.get(other, ""), texts)
    return found
