"""Recognises errors of the connection itself, which no server sends, by the code and text of gRPC."""

from __future__ import annotations

import re
from urllib.parse import unquote

from taskyard import errors

_ADDRESS = re.compile(r"(?:ipv[46]|unix|dns):(?://+)?(\[[^]]*\]:\d+|[^\s:]+(?::\d+)?)")
_UNREACHED = re.compile(r"failed to connect|errors resolving|DNS resolution failed")
_HANDSHAKE = re.compile(r"handshake|certificate|ssl_error|peer name", re.IGNORECASE)


def connection_error(code: errors.Code, text: str) -> errors.TaskyardError | None:
    """The error of a call that failed without a status of ours; None if it is no matter of the connection."""
    if code == errors.Code.UNIMPLEMENTED:
        return errors.VersionUnsupported()
    if code != errors.Code.UNAVAILABLE or not _UNREACHED.search(text):
        return None
    text = unquote(text)
    found = _ADDRESS.search(text)
    address = found[1] if found else "the address"
    problem = text.rpartition("last error: ")[2]
    problem = problem[found.end() - len(text) + len(problem) :].lstrip(": ") if found else problem
    kind = errors.CertificateUntrusted if _HANDSHAKE.search(text) else errors.ServerUnreachable
    return kind(address, problem or "it cannot be reached")
