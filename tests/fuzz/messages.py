"""Random messages from descriptors: filled at random, mutated from valid ones, or damaged as bytes."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.message import Message

from tests.fuzz.values import Values

_DEPTH = 6
_VALUE = "google.protobuf.Value"
_TIMES = ("google.protobuf.Timestamp", "google.protobuf.Duration")


class Mutator:
    """Changes messages in place."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._rng = values.rng

    def fill(self, message: Message, share: float, depth: int = 0) -> None:
        """Set about this share of the fields, recursively."""
        for field in message.DESCRIPTOR.fields:
            if self._rng.random() < share:
                self._set(message, field, share, depth)

    def mutate(self, message: Message, changes: int) -> None:
        """Replace a few fields anywhere in the message; a mask names what it replaced."""
        for _ in range(changes):
            part, depth = self._rng.choice(_all_parts(message))
            if part.DESCRIPTOR.full_name == _VALUE:
                self._fill_value(part, depth)
            elif part.DESCRIPTOR.fields:
                self._set(part, self._rng.choice(part.DESCRIPTOR.fields), 0.3, depth)
        if "update_mask" in message.DESCRIPTOR.fields_by_name and self._rng.random() < 0.5:
            self._update(message)

    def damage(self, data: bytes) -> bytes:
        """The bytes of a message, cut, repeated or with some replaced."""
        rng, made = self._rng, bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(len(made) + 1)
            match rng.randrange(4):
                case 0:
                    del made[at:]
                case 1:
                    made[at:at] = rng.randbytes(rng.choice((1, 4, 40)))
                case 2:
                    made[at : at + 1] = bytes([rng.randrange(256)])
                case _:
                    made += made[:at]
        return bytes(made[:100_000])

    def _update(self, message: Any) -> None:
        """Change one field of the resource and name it in the mask."""
        resource = next(f for f in message.DESCRIPTOR.fields if f.message_type and f.name != "update_mask")
        part, path = getattr(message, resource.name), ""
        while True:
            field = self._rng.choice(part.DESCRIPTOR.fields)
            path = f"{path}.{field.name}".lstrip(".")
            nested = field.message_type is not None and not field.is_repeated
            if nested and field.message_type.full_name not in _TIMES and self._rng.random() < 0.7:
                part = getattr(part, field.name)
                if part.DESCRIPTOR.fields:
                    continue
            break
        if part.DESCRIPTOR.fields_by_name.get(field.name) is field:
            self._set(part, field, 0.3, 2)
        message.update_mask.paths[:] = [path]

    def _set(self, message: Any, field: Any, share: float, depth: int) -> None:
        message.ClearField(field.name)
        value = getattr(message, field.name)
        kind = field.message_type
        count = self._rng.choice((0, 1, 1, 2, 5))
        if kind is not None and kind.GetOptions().map_entry:
            self._set_entries(value, kind.fields_by_name["key"], kind.fields_by_name["value"], depth, count)
        elif field.is_repeated:
            for _ in range(count):
                if kind is None:
                    value.append(self._values.scalar(field))
                elif depth < _DEPTH:
                    self._fill_inner(value.add(), field, share, depth)
        elif kind is None:
            setattr(message, field.name, self._values.scalar(field))
        elif depth < _DEPTH:
            value.SetInParent()
            self._fill_inner(value, field, share, depth)

    def _set_entries(self, entries: Any, key: Any, value: Any, depth: int, count: int) -> None:
        for _ in range(count):
            name = self._values.scalar(key)
            if value.message_type is None:
                entries[name] = self._values.scalar(value)
            elif depth < _DEPTH:
                self._fill_inner(entries[name], value, 0.3, depth)

    def _fill_value(self, message: Any, depth: int) -> None:
        """Set a JSON value: a number as often as all else, a list or struct only near the top."""
        fields = message.DESCRIPTOR.fields
        chosen = self._rng.choice(fields[: 6 if depth < _DEPTH - 1 else 4])
        if self._rng.random() < 0.5:
            chosen = message.DESCRIPTOR.fields_by_name["number_value"]
        self._set(message, chosen, 0.5, depth + 1)

    def _fill_inner(self, message: Any, field: Any, share: float, depth: int) -> None:
        kind = message.DESCRIPTOR.full_name
        if kind in _TIMES:
            self._values.fill_time(message, field)
        elif kind == _VALUE:
            self._fill_value(message, depth)
        elif kind == "google.protobuf.Struct":
            self._set(message, message.DESCRIPTOR.fields[0], 0.5, depth + 1)
        else:
            self.fill(message, share, depth + 1)


def _inner(message: Message) -> list[Message]:
    """The messages in a message, those in lists and maps included."""
    found: list[Message] = []
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                found += list(value.values())
        elif field.is_repeated:
            found += list(value)
        else:
            found.append(value)
    return found


def _all_parts(message: Message, depth: int = 0) -> list[tuple[Message, int]]:
    """The message and all messages in it with their depths: deep ones are as likely as those above."""
    # The values of JSON documents, which are poisoned in many ways, count thrice.
    found = [(message, depth)] * (3 if message.DESCRIPTOR.full_name == _VALUE else 1)
    for inner in _inner(message):
        found += _all_parts(inner, depth + 1)
    return found


def seeded(seed: int, part: str) -> random.Random:
    """A generator of its own for one part of a run."""
    return random.Random(f"{seed}/{part}")
