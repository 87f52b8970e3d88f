"""Analyses queries over three small tables, and evaluates both the query and its operators on them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgtrickle.model.names import RelationName
from pgtrickle.model.source import Source
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.context import Context, QueryDefinition
from pgtrickle.plan.analysis.query import Block, analyse, parse
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.passes.prune import prune_as_written
from pgtrickle.postgres.introspect import (
    aggregate_names,
    canonical,
    describe_sources,
    expression_types,
    set_function_names,
    view_texts,
)

SETUP = """
create table t(id int primary key, k int, x int, s text, n numeric(10,2), arr int[], j jsonb, d date);
create table u(k int, y int, s text, n numeric(12,4), b boolean);
create table w(k int not null, z bigint not null, v text);
create view small as select id, k, x from t where x < 3;
create view counted(k, c) as select k, count(*) from u group by k;
create function twice(value int) returns int language sql immutable as 'select value * 2';
create function several(value int) returns setof int language sql immutable
    as 'select generate_series(1, value)';
create aggregate total(int) (sfunc = int4pl, stype = int, initcond = '0');
create view in_order as select id, k, x from t order by x desc, id;
create function the_latter(int, int) returns int language sql immutable as 'select $2';
create aggregate last_one(int) (sfunc = the_latter, stype = int);
create operator === (leftarg = int, rightarg = int, function = int4eq);
create type pair as (a int, b text);
create function pairs(value int) returns setof pair language sql immutable
    as 'select n, n::text from generate_series(1, value) as n';
"""

_RELATIONS = """
select oid::bigint from pg_class where relnamespace = 'public'::regnamespace and relkind = %s order by relname
"""
_ARRAYS: tuple[list[int | None] | None, ...] = (None, [], [1, None, 2], [3])
_DOCUMENTS = (
    None,
    '{"a": [1, 2, null], "r": [{"a": 1, "b": "x"}, {}]}',
    '{"a": [], "r": []}',
    '{"b": 1, "r": [{"a": 2}]}',
)


@dataclass(frozen=True, slots=True)
class Analyst:
    """One database with the tables, and what PostgreSQL says of it."""

    connection: psycopg.Connection

    def block(self, query: str) -> Block:
        """The operators of a query as somebody would write it."""
        given = canonical(self.connection, self._qualified(query))
        sources = describe_sources(self.connection, self._relations("r") + self._relations("p"))
        definition = QueryDefinition(
            query=given.query,
            sources=_by_name(sources),
            views=view_texts(self.connection, self._relations("v")),
            aggregates=aggregate_names(self.connection),
            outputs=given.outputs,
            set_functions=set_function_names(self.connection),
        )
        return analyse(parse(definition.query), Context(definition, self._types))

    def canonical(self, query: str) -> str:
        """The text that PostgreSQL has of a query."""
        return canonical(self.connection, self._qualified(query)).query

    def rows(self, query: str) -> list[str]:
        """The rows of a query as PostgreSQL writes them, in some order that depends on nothing else."""
        with self.connection.cursor() as cursor:
            cursor.execute(query, prepare=False)
            names = [f"c{number}" for number in range(len(cursor.description or ()))]
            listed = ", ".join(names)
            shown = f"row({listed})::text" if names else "'()'"
            aliases = f"q({listed})" if names else "q"
            cursor.execute(f"select {shown} from ({query}) as {aliases}", prepare=False)
            return sorted(row for (row,) in cursor)

    def fill(self, seed: int) -> None:
        """Other rows for the tables: few, with duplicates and nulls, and sometimes none."""
        draw = random.Random(seed)
        few = (None, 0, 1, 2, 3)
        t = [
            (
                number + 1,
                draw.choice(few),
                draw.choice(few),
                draw.choice((None, "a", "B", "ab", "%")),
                draw.choice((None, "1", "2.5", "0.30")),
                draw.choice(_ARRAYS),
                draw.choice(_DOCUMENTS),
                draw.choice((None, "2024-01-01", "2024-02-01")),
            )
            for number in range(draw.randint(3, 9) if seed % 4 else draw.randint(0, 2))
        ]
        u = [
            (
                draw.choice(few),
                draw.choice(few),
                draw.choice((None, "a", "b", "ab", "%b")),
                draw.choice((None, "1", "2.5", "0.3")),
                draw.choice((None, True, False)),
            )
            for _ in range(draw.randint(0, 8))
        ]
        w = [
            (draw.randint(0, 3), draw.randint(0, 3), draw.choice((None, "a", "b")))
            for _ in range(draw.randint(0, 7))
        ]
        for table, rows in (("t", t), ("u", u), ("w", w)):
            self.put(table, rows)

    def put(self, table: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Let the table have these rows and no others."""
        with self.connection.cursor() as cursor:
            cursor.execute(f"delete from {table}")
            if rows:
                listed = ", ".join(f"({', '.join(['%s'] * len(row))})" for row in rows)
                values = [value for row in rows for value in row]
                cursor.execute(f"insert into {table} values {listed}", values)

    def _types(self, from_sql, expressions):
        return expression_types(self.connection, from_sql, expressions)

    def _relations(self, kind: str) -> list[RelationId]:
        return [RelationId(relation) for (relation,) in self.connection.execute(_RELATIONS, (kind,))]

    def _qualified(self, query: str) -> str:
        with self.connection.transaction(force_rollback=True):
            self.connection.execute(f"create temporary view qualified as {query}")
            self.connection.execute("set local search_path = ''")
            row = self.connection.execute("select pg_get_viewdef('pg_temp.qualified'::regclass)").fetchone()
        assert row is not None
        return str(row[0]).strip().removesuffix(";")


def evaluated(block: Block) -> str:
    """The outputs of a block as a query for PostgreSQL."""
    assert not block.correlated
    assert not block.is_total
    listed = ", ".join(f"({expression.sql})" for _, expression in block.outputs)
    needed = {name for _, expression in block.outputs for name in expression.columns}
    return f"select {listed} from ({postgres_sql(prune_as_written(block.operator, needed))}) as t"


def named_queries(directory: Path) -> dict[str, str]:
    """The queries of all files of a directory, each by the comment before it."""
    found: dict[str, str] = {}
    for path in sorted(directory.glob("*.sql")):
        for case in path.read_text().split("\n\n"):
            title, _, query = case.strip().partition("\n")
            found[f"{path.stem}: {title.removeprefix('-- ')}"] = query.strip().removesuffix(";")
    return found


def _by_name(sources: dict[RelationId, Source]) -> dict[RelationName, Source]:
    return {source.name: source for source in sources.values()}
