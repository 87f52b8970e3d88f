"""Compiles a query over the tables and views of a test's database, with PostgreSQL as the analyser."""

from __future__ import annotations

import psycopg

from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.context import QueryDefinition
from pgtrickle.plan.compile import Compiled
from pgtrickle.plan.compile import compile_query as compile_definition
from pgtrickle.postgres.introspect import (
    aggregate_names,
    canonical,
    describe_sources,
    expression_types,
    set_function_names,
    view_texts,
)

_RELATIONS = """
select oid::bigint from pg_class
where relnamespace = 'public'::regnamespace and relkind = any (%s) order by relname
"""


def compile_query(
    connection: psycopg.Connection, query: str, auxiliary: AuxiliaryUse = AuxiliaryUse.NEVER
) -> Compiled:
    """The query compiled as a refresh would; every table of the database is a source it may read."""
    given = canonical(connection, _qualified(connection, query))
    sources = describe_sources(connection, _relations(connection, "rp"))
    definition = QueryDefinition(
        query=given.query,
        sources={source.name: source for source in sources.values()},
        views=view_texts(connection, _relations(connection, "v")),
        aggregates=aggregate_names(connection),
        set_functions=set_function_names(connection),
        outputs=given.outputs,
        auxiliary=auxiliary,
        stream_table=1,
    )

    def typer(from_sql, expressions):
        return expression_types(connection, from_sql, expressions)

    return compile_definition(definition, typer)


def _qualified(connection: psycopg.Connection, query: str) -> str:
    """The query with every name in full, as it is kept from the session that created a stream table."""
    with connection.transaction(force_rollback=True):
        connection.execute(f"create temporary view qualified as {query}")
        connection.execute("set local search_path = ''")
        row = connection.execute("select pg_get_viewdef('pg_temp.qualified'::regclass)").fetchone()
    assert row is not None
    return str(row[0]).strip().removesuffix(";")


def _relations(connection: psycopg.Connection, kinds: str) -> list[RelationId]:
    return [RelationId(relation) for (relation,) in connection.execute(_RELATIONS, (list(kinds),))]
