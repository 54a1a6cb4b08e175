"""Servicers made of handlers: one object per concern, each with the dependencies that it declares."""

from __future__ import annotations

from typing import Any, TypeVar

S = TypeVar("S")


class WiringError(Exception):
    """A service whose RPCs do not have exactly one handler each."""


def compose(base: type[S], *handlers: object) -> S:
    """A servicer of a generated base class; each of its RPCs is the method of that name of one handler.

    Raises WiringError for an RPC with no handler or with two. gRPC keeps the bound methods that it finds on
    the servicer, so a call costs no further look-up.
    """
    servicer: Any = base()
    for rpc in rpc_names(base):
        owners = [handler for handler in handlers if hasattr(handler, rpc)]
        if len(owners) != 1:
            found = " and ".join(type(owner).__name__ for owner in owners) or "no handler"
            raise WiringError(f"{base.__name__}.{rpc} needs one handler and has {found}")
        setattr(servicer, rpc, getattr(owners[0], rpc))
    made: S = servicer
    return made


def rpc_names(base: type) -> list[str]:
    """The RPCs of a generated base class."""
    return [name for name in vars(base) if not name.startswith("_")]
