"""The schema of a database as PostgreSQL's catalogue describes it, without the partitions of months."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

# Relations of the schema, except Alembic's and the partitions of months.
_OURS = """
    c.relnamespace = 'public'::regnamespace AND c.relname NOT LIKE 'alembic%'
    AND c.relname !~ '_[0-9]{4}_[0-9]{2}(_|$)'
"""
_QUERIES = {
    "relations": f"""
        SELECT c.relname, c.relkind::text, c.reloptions, pg_get_partkeydef(c.oid),
            pg_get_expr(c.relpartbound, c.oid), pg_get_viewdef(CASE c.relkind WHEN 'v' THEN c.oid END)
        FROM pg_class c WHERE {_OURS} ORDER BY 1
    """,
    "columns": f"""
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            a.attcollation::regcollation::text, a.attstorage::text, a.attidentity::text, a.attgenerated::text,
            pg_get_expr(d.adbin, d.adrelid)
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE {_OURS} AND c.relkind IN ('r', 'p', 'v') ORDER BY 1, 2
    """,
    "constraints": f"""
        SELECT c.relname, n.conname, pg_get_constraintdef(n.oid)
        FROM pg_class c JOIN pg_constraint n ON n.conrelid = c.oid WHERE {_OURS} ORDER BY 1, 2
    """,
    "indexes": f"""
        SELECT c.relname, pg_get_indexdef(c.oid), i.indisunique, i.indisprimary
        FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE {_OURS} ORDER BY 1
    """,
    "sequences": f"""
        SELECT c.relname, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcache, s.seqcycle
        FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid WHERE {_OURS} ORDER BY 1
    """,
    "functions": """
        SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace ORDER BY 1
    """,
    "triggers": f"""
        SELECT c.relname, t.tgname, pg_get_triggerdef(t.oid)
        FROM pg_class c JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
        WHERE {_OURS} ORDER BY 1, 2
    """,
}


def describe(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every relation, column, constraint, index, sequence, function and trigger with its definition."""
    with psycopg.connect(url) as connection:
        return {what: connection.execute(sql.SQL(query)).fetchall() for what, query in _QUERIES.items()}
