"""YAML whose values keep their position, so that errors name line and column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import yaml

Path = tuple[str | int, ...]


class YamlError(ValueError):
    """A mistake in a file, as `file:line:column: problem`."""


@dataclass(frozen=True)
class Document:
    """One YAML document: plain values, and the place of each by its path."""

    file: str
    value: Any
    places: dict[Path, tuple[int, int]] = field(repr=False)

    def error(self, path: Path, problem: str) -> YamlError:
        """The error for the value at this path, or for the nearest one around it."""
        while path not in self.places and path:
            path = path[:-1]
        line, column = self.places.get(path, (1, 1))
        return YamlError(f"{self.file}:{line}:{column}: {problem}")

    def unknown(self, path: Path, allowed: Iterator[str] | list[str]) -> YamlError:
        """The error for an unknown key, with the nearest allowed one."""
        names = sorted(allowed)
        near = get_close_matches(str(path[-1]), names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"use {', '.join(names)}"
        return self.error(path, f"unknown field {str(path[-1])!r}; {hint}")


def documents(text: str, file: str) -> Iterator[Document]:
    """The non-empty documents of a text; raises YamlError if it is not YAML."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            places: dict[Path, tuple[int, int]] = {}
            _locate(node, (), places, file)
            value = loader.construct_document(node)
            if value is not None:
                yield Document(file, value, places)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        problem = " ".join(str(error.problem or error.context or "cannot be read").split())
        raise YamlError(f"{file}:{place}: {problem}") from None
    except yaml.YAMLError as error:
        raise YamlError(f"{file}:1:1: {' '.join(str(error).split())}") from None
    finally:
        loader.dispose()


def _locate(node: Any, path: Path, places: dict[Path, tuple[int, int]], file: str) -> None:
    places.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _locate(item, (*path, index), places, file)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*path, str(key.value))
            if below in places:
                line, column = key.start_mark.line + 1, key.start_mark.column + 1
                raise YamlError(f"{file}:{line}:{column}: {key.value!r} is given twice")
            places[below] = (key.start_mark.line + 1, key.start_mark.column + 1)
            _locate(value, below, places, file)
