"""Queries over tables as wide as one likes, ready to be compiled without a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pgtrickle.model.names import RelationName
from pgtrickle.model.source import PgType, Source, SourceColumn, SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.context import QueryDefinition
from pgtrickle.plan.compile import compile_query, regenerate
from pgtrickle.plan.program import Program

INTEGER = PgType("integer", "integer", "b", "N")
BIGINT = PgType("bigint", "bigint", "b", "N")
ARRAY = PgType("integer[]", "integer[]", "b", "A")
A, B = RelationId(1001), RelationId(1002)

_Outputs = Sequence[tuple[str, PgType]]


def build(name: str, columns: int) -> int:
    """Compile a query over so many columns, without PostgreSQL's part of it; the length of its programs."""
    regenerate(_definition(name, columns).query)
    return sum(len(program.spark_sql) for program in programs(name, columns))


def programs(name: str, columns: int) -> list[Program]:
    """The programs of the first load, of a change of the first table, and of a change of both."""
    found = compile_query(_definition(name, columns), lambda rows, asked: [INTEGER for _ in asked])
    made = [found.initial(), found.program(frozenset({A})), found.program(frozenset({A, B}))]
    return [program for program in made if program is not None]


def _definition(name: str, columns: int) -> QueryDefinition:
    names = [f"c{number}" for number in range(columns)]
    query, outputs = QUERIES[name](names)
    sources = {source.name: source for source in (_source("a", A, names), _source("b", B, names))}
    return QueryDefinition(query, sources, {}, frozenset({"sum", "count", "array_agg"}), tuple(outputs))


def _source(name: str, relation: RelationId, names: Sequence[str]) -> Source:
    own = (SourceColumn("id", 1, INTEGER, is_nullable=False),)
    wide = tuple(
        SourceColumn(n, number, INTEGER, is_nullable=True) for number, n in enumerate(names, start=2)
    )
    return Source(
        relation, RelationName("public", name), SourceKind.TABLE, own + wide, (("id",),), (("id",),)
    )


def _listed(template: str, names: Sequence[str]) -> str:
    return ", ".join(template.format(name) for name in names)


def _typed(names: Sequence[str], pg_type: PgType = INTEGER) -> list[tuple[str, PgType]]:
    return [(name, pg_type) for name in names]


def _expressions(names: Sequence[str]) -> tuple[str, _Outputs]:
    listed = _listed("(a.{0} + 1) AS {0}", names)
    return f"SELECT a.id, {listed} FROM public.a WHERE (a.c0 > 0)", _typed(["id", *names])


def _joined(kind: str) -> Callable[[Sequence[str]], tuple[str, _Outputs]]:
    def query(names: Sequence[str]) -> tuple[str, _Outputs]:
        listed = f"{_listed('a.{0}', names)}, {_listed('b.{0} AS b{0}', names)}"
        text = f"SELECT a.id, {listed} FROM (public.a {kind} public.b ON ((b.id = a.c0)))"
        return text, _typed(["id", *names, *(f"b{name}" for name in names)])

    return query


def _many_keys(names: Sequence[str]) -> tuple[str, _Outputs]:
    keys, last = _listed("a.{0}", names[:-1]), names[-1]
    text = f"SELECT {keys}, count(*) AS n, sum(a.{last}) AS s FROM public.a GROUP BY {keys}"
    return text, [*_typed(names[:-1]), *_typed(["n", "s"], BIGINT)]


def _aggregated(call: str, pg_type: PgType) -> Callable[[Sequence[str]], tuple[str, _Outputs]]:
    def query(names: Sequence[str]) -> tuple[str, _Outputs]:
        listed = _listed(call + "(a.{0}) AS s{0}", names)
        outputs = [*_typed(["c0"]), *_typed([f"s{name}" for name in names], pg_type)]
        return f"SELECT a.c0, {listed} FROM public.a GROUP BY a.c0", outputs

    return query


def _distinct(names: Sequence[str]) -> tuple[str, _Outputs]:
    return f"SELECT DISTINCT {_listed('a.{0}', names)} FROM public.a", _typed(names)


def _union(names: Sequence[str]) -> tuple[str, _Outputs]:
    arms = [f"SELECT {_listed(one + '.{0}', names)} FROM public.{one}" for one in "ab"]
    return " UNION ALL ".join(arms), _typed(names)


def _window(names: Sequence[str]) -> tuple[str, _Outputs]:
    over = "row_number() OVER (PARTITION BY a.c0 ORDER BY a.id) AS place"
    text = f"SELECT a.id, {_listed('a.{0}', names)}, {over} FROM public.a"
    return text, [*_typed(["id", *names]), ("place", BIGINT)]


QUERIES: Mapping[str, Callable[[Sequence[str]], tuple[str, _Outputs]]] = {
    "expressions of each column": _expressions,
    "all columns of a join": _joined("JOIN"),
    "all columns of an outer join": _joined("LEFT JOIN"),
    "groups by all columns": _many_keys,
    "a sum of each column": _aggregated("sum", BIGINT),
    "an array of each column": _aggregated("array_agg", ARRAY),
    "distinct rows": _distinct,
    "all columns of a union": _union,
    "a window beside all columns": _window,
}
