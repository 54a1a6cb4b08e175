"""Update masks: which fields of a resource a request changes, and how they are copied."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from taskyard.errors import FieldImmutable, FieldInvalid

Path = tuple[str, ...]


def chosen_paths(mask: Iterable[str], given: Message, mutable: Collection[str], what: str) -> list[Path]:
    """The fields to change: those in the mask or, without a mask, those that are set.

    Raises FieldInvalid for a path that is not a field of `what`, FieldImmutable for a field that is fixed.
    """
    texts = list(mask)
    if not texts:
        return [(field.name,) for field, _ in given.ListFields() if field.name in mutable]
    paths: list[Path] = []
    for text in texts:
        if text == "*":
            paths += [(name,) for name in mutable]
            continue
        path = tuple(text.split("."))
        check_path(given.DESCRIPTOR, path, what)
        if path[0] not in mutable:
            raise FieldImmutable.of("update_mask", f"{text} cannot be changed", "field_mask")
        paths.append(path)
    return paths


def check_path(of: Any, path: Path, what: str) -> None:
    """Raises FieldInvalid for a path that is not a field of `what`."""
    descriptor: Descriptor | None = of
    for depth, name in enumerate(path):
        field = descriptor.fields_by_name.get(name) if descriptor is not None else None
        last = depth == len(path) - 1
        if field is None or (not last and (field.is_repeated or field.message_type is None)):
            raise FieldInvalid.of("update_mask", f"{'.'.join(path)!r} is not a field of {what}", "field_mask")
        descriptor = field.message_type


def copy(source: Message, target: Message, path: Path) -> None:
    """Copy the field from `source` to `target`; a field that is unset in `source` is cleared."""
    name = path[0]
    field: Any = source.DESCRIPTOR.fields_by_name[name]
    if len(path) > 1:
        copy(getattr(source, name), getattr(target, name), path[1:])
        return
    target.ClearField(name)
    if field.is_repeated:
        getattr(target, name).MergeFrom(getattr(source, name))
    elif not field.has_presence:
        setattr(target, name, getattr(source, name))
    elif source.HasField(name):
        if field.message_type is not None:
            getattr(target, name).CopyFrom(getattr(source, name))
        else:
            setattr(target, name, getattr(source, name))
