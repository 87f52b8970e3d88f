"""Asks PostgreSQL to describe relations, queries and expressions, so that it does the analysis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pgtrickle.model.errors import Busy, CommandRefused, HiddenRows, SourceChanged
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source, SourceColumn, SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError, set_locally, sql, to_refusal
from pgtrickle.postgres.locking import is_contention
from pgtrickle.postgres.settings import EXACT, Settings, meaning
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class CanonicalQuery:
    """A query as PostgreSQL prints it, with qualified names, and its output columns."""

    query: str
    outputs: tuple[tuple[str, PgType], ...]


def describe_sources(connection: Connection, relations: Sequence[RelationId]) -> dict[RelationId, Source]:
    """Describe the tables with these ids; raise if one was dropped or hides rows from our role."""
    with _empty_search_path(connection):
        found = connection.execute(
            load("pgtrickle.postgres", "sql/describe_relations.sql"), (list(relations),)
        ).fetchall()
        columns = _columns(connection, relations)
    sources: dict[RelationId, Source] = {}
    for relid, schema, name, kind, hides_rows, copy, keys, indexes in found:
        relation = RelationId(relid)
        table = RelationName(schema, name)
        if hides_rows:
            raise HiddenRows(
                f"row-level security hides rows of {table} from the role of the sidecar",
                hint="give the role of the sidecar the attribute BYPASSRLS",
            )
        described = columns.get(relation, [])
        sources[relation] = Source(
            relation=relation,
            name=table,
            kind=SourceKind(kind),
            columns=tuple(_nullable(described) if copy else described),
            keys=tuple(tuple(key) for key in keys),
            indexes=tuple(tuple(index) for index in indexes),
            copy=RelationName(*copy) if copy else None,
        )
    gone = [relation for relation in relations if relation not in sources]
    if gone:
        raise SourceChanged(
            f"a source (relation {gone[0]}) was dropped", hint="alter the query, or drop the stream table"
        )
    return sources


def canonical(connection: Connection, query: str, settings: Settings = ()) -> CanonicalQuery:
    """The query as PostgreSQL prints it. Needs a transaction that may write; leaves nothing behind."""
    with _temporary_view(connection, query, settings) as view:
        row = connection.execute("select pg_get_viewdef(%s::oid)", (view,)).fetchone()
        assert row is not None
        outputs = tuple((c.name, c.type) for c in _columns(connection, [view]).get(view, ()))
    return CanonicalQuery(row[0].strip().removesuffix(";"), outputs)


def expression_types(connection: Connection, from_sql: str, expressions: Sequence[str]) -> list[PgType]:
    """The types of expressions over the given relations, without evaluating them."""
    if not expressions:
        return []
    listed = ", ".join(f"({expression}) as e{number}" for number, expression in enumerate(expressions))
    with _temporary_view(connection, f"select {listed} from {from_sql}", ()) as view:  # noqa: S608
        return [column.type for column in _columns(connection, [view])[view]]


def view_texts(connection: Connection, views: Sequence[RelationId]) -> dict[RelationName, str]:
    """The definitions of views, with qualified names."""
    with _empty_search_path(connection):
        rows = connection.execute(
            "select n.nspname, c.relname, pg_get_viewdef(c.oid) from pg_class c"
            " join pg_namespace n on n.oid = c.relnamespace where c.oid = any (%s::oid[])",
            (list(views),),
        ).fetchall()
    return {RelationName(schema, name): text.strip().removesuffix(";") for schema, name, text in rows}


def reads_back(connection: Connection, view: RelationId) -> bool:
    """Whether the printed text of a view parses back to the same query."""
    with _empty_search_path(connection):
        row = connection.execute("select pg_get_viewdef(%s::oid)", (view,)).fetchone()
    assert row is not None
    try:
        with _temporary_view(connection, row[0].strip().removesuffix(";"), ()) as again:
            same = connection.execute(
                "select pgtrickle_internal.unprinted(%s::oid) = pgtrickle_internal.unprinted(%s::oid)",
                (view, again),
            ).fetchone()
    except CommandRefused:
        return False
    return same is not None and bool(same[0])


def security_barrier(connection: Connection, views: Sequence[RelationId]) -> RelationName | None:
    """One of the views that is a security barrier, or None."""
    row = connection.execute(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where c.oid = any (%s::oid[]) and exists (select from pg_options_to_table(c.reloptions) o"
        " where o.option_name = 'security_barrier' and o.option_value::boolean) order by c.oid limit 1",
        (list(views),),
    ).fetchone()
    return RelationName(*row) if row else None


def virtual_column(connection: Connection, sources: Sequence[RelationId]) -> str | None:
    """A virtual generated column of these tables, or None."""
    row = connection.execute(
        "select quote_ident(a.attname) from pg_attribute a where a.attrelid = any (%s::oid[])"
        " and a.attgenerated = 'v' and not a.attisdropped order by a.attrelid, a.attnum limit 1",
        (list(sources),),
    ).fetchone()
    return row[0] if row else None


def aggregate_names(connection: Connection) -> frozenset[str]:
    """The names of all aggregates, in lower case; outside of pg_catalog, after their schema and a point."""
    return _function_names(connection, is_aggregate=True)


def set_function_names(connection: Connection) -> frozenset[str]:
    """The names of all set-returning functions, written in the same way."""
    return _function_names(connection, is_aggregate=False)


def _function_names(connection: Connection, *, is_aggregate: bool) -> frozenset[str]:
    # another schema may have an aggregate with the name of a built-in function: PostgreSQL prints its schema
    rows = connection.execute(
        "select distinct case when n.nspname <> 'pg_catalog' then n.nspname || '.' else '' end"
        " || lower(p.proname) from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
        " where case when %s then p.prokind = 'a' else p.proretset end",
        (is_aggregate,),
    ).fetchall()
    return frozenset(name for (name,) in rows)


def _nullable(columns: Sequence[SourceColumn]) -> list[SourceColumn]:
    """The columns, all nullable: PostgreSQL does not enforce NOT NULL on a foreign table."""
    return [replace(column, is_nullable=True) for column in columns]


@contextmanager
def _empty_search_path(connection: Connection) -> Iterator[None]:
    """Make PostgreSQL print qualified names, in a transaction that is rolled back."""
    with connection.transaction(force_rollback=True):
        connection.execute("set local search_path = ''")
        yield


@contextmanager
def _temporary_view(connection: Connection, query: str, settings: Settings) -> Iterator[RelationId]:
    """Create the query as a temporary view, and drop it afterwards."""
    view = f"pgtrickle_{uuid4().hex}"
    statement = sql.SQL("create temporary view {} as {}").format(sql.Identifier(view), sql.SQL(query))
    with _empty_search_path(connection):
        if settings:
            set_locally(connection, meaning(settings))
        try:
            with connection.transaction():
                # `binary` selects the extended protocol, which rejects a second statement
                connection.execute(statement, binary=True)
        except DatabaseError as error:
            if is_contention(error):
                raise Busy("a source is locked by another session", hint="try again in a moment") from error
            raise to_refusal(error) from error
        if settings:
            # print constants so that they can be parsed under any settings
            set_locally(connection, EXACT)
        row = connection.execute(
            "select oid::bigint from pg_class where relname = %s and relnamespace = pg_my_temp_schema()",
            (view,),
        ).fetchone()
        assert row is not None
        yield RelationId(row[0])


def _columns(connection: Connection, relations: Sequence[RelationId]) -> dict[RelationId, list[SourceColumn]]:
    statement = load("pgtrickle.postgres", "sql/describe_columns.sql")
    found: dict[RelationId, list[SourceColumn]] = {}
    for relid, name, number, is_not_null, *described in connection.execute(statement, (list(relations),)):
        column = SourceColumn(name, number, _type(described), is_nullable=not is_not_null)
        found.setdefault(RelationId(relid), []).append(column)
    return found


def _type(described: Sequence[Any]) -> PgType:
    return PgType(*described)
