"""Asking PostgreSQL what relations, queries and expressions are: it is our analyser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pgtrickle.model.errors import Busy, CommandRefused, SourceChanged
from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source, SourceColumn, SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.postgres.connection import Connection, DatabaseError, set_locally, sql, to_refusal
from pgtrickle.postgres.locking import is_contention
from pgtrickle.postgres.settings import EXACT, Settings, meaning
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class Canonical:
    """A query as PostgreSQL prints it, every name in full, and the columns it gives."""

    query: str
    outputs: tuple[tuple[str, PgType], ...]


def describe_sources(connection: Connection, relations: Sequence[RelationId]) -> dict[RelationId, Source]:
    """The tables with these ids; raises if one is gone, or hides rows from us."""
    with _plain(connection):
        found = connection.execute(
            load("pgtrickle.postgres", "sql/describe_relations.sql"), (list(relations),)
        ).fetchall()
        columns = _columns(connection, relations)
    sources: dict[RelationId, Source] = {}
    for relid, schema, name, kind, hides_rows, copy, keys, indexes in found:
        relation = RelationId(relid)
        table = RelationName(schema, name)
        if hides_rows:
            raise CommandRefused(
                f"row-level security hides rows of {table} from us",
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


def canonical(connection: Connection, query: str, settings: Settings = ()) -> Canonical:
    """The query as PostgreSQL understands it; needs a transaction that may write. Nothing is kept."""
    with _as_view(connection, query, settings) as view:
        row = connection.execute("select pg_get_viewdef(%s::oid)", (view,)).fetchone()
        assert row is not None
        outputs = tuple((c.name, c.type) for c in _columns(connection, [view]).get(view, ()))
    return Canonical(row[0].strip().removesuffix(";"), outputs)


def expression_types(connection: Connection, from_sql: str, expressions: Sequence[str]) -> list[PgType]:
    """The types of expressions over the given relations; nothing is evaluated."""
    if not expressions:
        return []
    listed = ", ".join(f"({expression}) as e{number}" for number, expression in enumerate(expressions))
    with _as_view(connection, f"select {listed} from {from_sql}", ()) as view:  # noqa: S608
        return [column.type for column in _columns(connection, [view])[view]]


def view_texts(connection: Connection, views: Sequence[RelationId]) -> dict[RelationName, str]:
    """The definitions of views, every name in full."""
    with _plain(connection):
        rows = connection.execute(
            "select n.nspname, c.relname, pg_get_viewdef(c.oid) from pg_class c"
            " join pg_namespace n on n.oid = c.relnamespace where c.oid = any (%s::oid[])",
            (list(views),),
        ).fetchall()
    return {RelationName(schema, name): text.strip().removesuffix(";") for schema, name, text in rows}


def reads_back(connection: Connection, view: RelationId) -> bool:
    """Whether the text of a view, as PostgreSQL prints it, means what the view does."""
    with _plain(connection):
        row = connection.execute("select pg_get_viewdef(%s::oid)", (view,)).fetchone()
    assert row is not None
    try:
        with _as_view(connection, row[0].strip().removesuffix(";"), ()) as again:
            same = connection.execute(
                "select pgtrickle_internal.unprinted(%s::oid) = pgtrickle_internal.unprinted(%s::oid)",
                (view, again),
            ).fetchone()
    except CommandRefused:
        return False
    return same is not None and bool(same[0])


def security_barrier(connection: Connection, views: Sequence[RelationId]) -> RelationName | None:
    """One of the views that hides rows even from conditions that fail, or None."""
    row = connection.execute(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where c.oid = any (%s::oid[]) and exists (select from pg_options_to_table(c.reloptions) o"
        " where o.option_name = 'security_barrier' and o.option_value::boolean) order by c.oid limit 1",
        (list(views),),
    ).fetchone()
    return RelationName(*row) if row else None


def virtual_column(connection: Connection, sources: Sequence[RelationId]) -> str | None:
    """A column of these tables that is computed whenever it is read, or None."""
    row = connection.execute(
        "select quote_ident(a.attname) from pg_attribute a where a.attrelid = any (%s::oid[])"
        " and a.attgenerated = 'v' and not a.attisdropped order by a.attrelid, a.attnum limit 1",
        (list(sources),),
    ).fetchone()
    return row[0] if row else None


def aggregate_names(connection: Connection) -> frozenset[str]:
    """The names of all aggregates there are, in lower case."""
    rows = connection.execute("select distinct lower(proname) from pg_proc where prokind = 'a'").fetchall()
    return frozenset(name for (name,) in rows)


def set_function_names(connection: Connection) -> frozenset[str]:
    """The names of all functions that return sets, in lower case."""
    rows = connection.execute("select distinct lower(proname) from pg_proc where proretset").fetchall()
    return frozenset(name for (name,) in rows)


def _nullable(columns: Sequence[SourceColumn]) -> list[SourceColumn]:
    """The columns without what they promise: nobody makes a foreign table keep it."""
    return [replace(column, is_nullable=True) for column in columns]


@contextmanager
def _plain(connection: Connection) -> Iterator[None]:
    """Let PostgreSQL print every name in full, and forget that afterwards."""
    with connection.transaction(force_rollback=True):
        connection.execute("set local search_path = ''")
        yield


@contextmanager
def _as_view(connection: Connection, query: str, settings: Settings) -> Iterator[RelationId]:
    """The query as a temporary view, gone afterwards."""
    view = f"pgtrickle_{uuid4().hex}"
    statement = sql.SQL("create temporary view {} as {}").format(sql.Identifier(view), sql.SQL(query))
    with _plain(connection):
        if settings:
            set_locally(connection, meaning(settings))
        try:
            with connection.transaction():
                # the extended protocol, which `binary` asks for, takes no second statement
                connection.execute(statement, binary=True)
        except DatabaseError as error:
            if is_contention(error):
                raise Busy("a source is locked by another session", hint="try again in a moment") from error
            raise to_refusal(error) from error
        if settings:
            # constants are printed so that they can be read under any settings
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
