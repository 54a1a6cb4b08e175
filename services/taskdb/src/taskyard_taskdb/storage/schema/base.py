"""What every part of the schema is made with: the metadata, the types, and the forms of columns and indexes.

`doc` is what the committed schema.sql prints as a comment.
"""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import DDL, Column, DateTime, Index, MetaData, Table, Text, event, text
from sqlalchemy.schema import ExecutableDDLElement, SchemaItem

metadata = MetaData()
# Names and ids are compared byte by byte.
key = Text(collation="C")
instant = DateTime(timezone=True)


def table(name: str, doc: str, *items: SchemaItem, **options: Any) -> Table:
    """A table of the metadata."""
    return Table(name, metadata, *items, info={"doc": doc, "after": []}, **options)


def required(name: str, type_: Any, *items: SchemaItem, default: str = "", **options: Any) -> Column[Any]:
    """A column that is never null; `default` is an SQL expression."""
    return _column(name, type_, *items, default=default, nullable=False, **options)


def optional(name: str, type_: Any, *items: SchemaItem, default: str = "", **options: Any) -> Column[Any]:
    """A column that may be null."""
    return _column(name, type_, *items, default=default, nullable=True, **options)


def _column(name: str, type_: Any, *items: SchemaItem, default: str, **options: Any) -> Column[Any]:
    return Column(name, type_, *items, server_default=text(default) if default else None, **options)


def index(name: str, *columns: Any, where: str = "", doc: str = "", **options: Any) -> Index:
    """An index, of the rows that fulfil `where`."""
    predicate = text(where) if where else None
    return Index(name, *columns, postgresql_where=predicate, info={"doc": doc}, **options)


def after(parent: Table, statement: str | ExecutableDDLElement) -> None:
    """Executes a statement once the table and its indexes exist."""
    element = _element(statement)
    event.listen(parent, "after_create", element)
    parent.info["after"].append(element)


def at_the_end(doc: str, statement: str) -> None:
    """Executes a statement once all tables exist: a view, a function."""
    element = _element(statement)
    event.listen(metadata, "after_create", element)
    metadata.info.setdefault("at_the_end", []).append((element, doc))


def functions() -> dict[str, str]:
    """The functions of the schema by name, as they are created."""
    created = (str(element.statement) for element, _ in metadata.info["at_the_end"])
    found = ((re.search(r"CREATE FUNCTION (\w+)", text), text.replace("%%", "%")) for text in created)
    return {match[1]: text.strip() for match, text in found if match}


def _element(statement: str | ExecutableDDLElement) -> ExecutableDDLElement:
    # DDL formats its text with %.
    return DDL(statement.replace("%", "%%")) if isinstance(statement, str) else statement  # type: ignore[no-untyped-call]
