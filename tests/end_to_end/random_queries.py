"""Queries drawn at random: joins, filters, groups, distinct rows, unions, and all of these nested in FROM."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

TABLES = {
    "alpha": {"id": "int", "k": "int", "v": "num", "s": "text", "b": "bool"},
    "beta": {"id": "int", "k": "int", "w": "big", "d": "date"},
    "gamma": {"k": "int", "x": "int", "s": "text"},
    "delta": {"k": "int", "g": "text", "p": "wide", "b": "bool"},
}
"""The tables and their columns: two with a primary key `id`, two that hold duplicates."""

LITERALS = {
    "int": ["0", "1", "2", "3"],
    "big": ["1", "2", "9000000000"],
    "num": ["0.5", "1.25", "2.00", "-3.10"],
    "wide": ["0.5", "1.250", "10"],
    "text": ["'a'", "'b'", "''"],
    "bool": ["true", "false"],
    "date": ["date '2024-01-01'", "date '2024-02-29'"],
}


@dataclass(frozen=True, slots=True)
class Query:
    """A query, the kinds of its columns, and whether it has to be followed differentially."""

    sql: str
    columns: dict[str, str]
    is_differential: bool


@dataclass(frozen=True, slots=True)
class _Relations:
    """A FROM clause with its conditions; columns are known by their qualified names."""

    sql: str
    columns: dict[str, str]
    is_differential: bool
    has_only_tables: bool
    has_only_equalities: bool
    compared: dict[str, str]
    """The columns that conditions may read: Spark compares no decimals and dates with constants."""


def query(draw: Random, depth: int = 2) -> Query:
    """Any query; `depth` bounds how far queries nest."""
    shape = draw.choice([_rows, _rows, _groups, _groups, _groups, _distinct, _union])
    return shape(draw, depth)


def _rows(draw: Random, depth: int) -> Query:
    source = _relations(draw, depth)
    names = draw.sample(list(source.columns), min(len(source.columns), draw.randint(1, 4)))
    outputs = {f"c{n}": _shown(draw, name, source.columns[name]) for n, name in enumerate(names)}
    # a function of what groups below compute is left to PostgreSQL
    calls = any("upper(" in expression for expression, _ in outputs.values())
    return Query(
        f"select {_listed(outputs)} from {source.sql}",
        {alias: kind for alias, (_, kind) in outputs.items()},
        source.is_differential and (source.has_only_tables or not calls),
    )


def _shown(draw: Random, name: str, kind: str) -> tuple[str, str]:
    """A column, or something computed of it."""
    if draw.random() < 0.75:
        return name, kind
    if kind in {"int", "big"}:
        return f"{name} * 2 + 1", kind
    if kind == "text":
        return f"upper({name}) || '!'", "text"
    return f"{name} is null", "bool"


def _distinct(draw: Random, depth: int) -> Query:
    inner = _rows(draw, depth)
    return Query("select distinct" + inner.sql.removeprefix("select"), inner.columns, inner.is_differential)


def _union(draw: Random, depth: int) -> Query:
    first = _rows(draw, depth)
    kinds = list(first.columns.values())
    arms = [first.sql]
    arms += [_arm(draw, kinds) for _ in range(draw.randint(1, 2))]
    # a NULL among decimals is not followed
    is_differential = first.is_differential and not any("null::numeric" in arm for arm in arms)
    word = draw.choice([" union ", " union all ", " union all "])
    return Query(word.join(arms), first.columns, is_differential)


def _arm(draw: Random, kinds: list[str]) -> str:
    """Rows of one table with columns of these kinds, and NULLs where it has none."""
    name = draw.choice(list(TABLES))
    casts = {
        "int": "int",
        "big": "bigint",
        "num": "numeric(8,2)",
        "wide": "numeric",
        "text": "text",
        "bool": "bool",
        "date": "date",
    }
    columns = []
    for kind in kinds:
        fitting = [column for column, own in TABLES[name].items() if own == kind]
        value = draw.choice(fitting) if fitting else f"null::{casts[kind]}"
        columns.append(value)
    condition = ""
    if draw.random() < 0.5:
        condition = " where " + _condition(draw, TABLES[name])
    return f"select {', '.join(columns)} from {name}{condition}"


def _groups(draw: Random, depth: int) -> Query:
    source = _relations(draw, depth)
    count = draw.choice([0, 1, 1, 1, 2])
    keys = draw.sample(list(source.columns), min(len(source.columns), count))
    outputs = {f"c{n}": (name, source.columns[name]) for n, name in enumerate(keys)}
    if keys and draw.random() < 0.15:
        del outputs[f"c{len(keys) - 1}"]
    is_exact = True
    for _ in range(draw.randint(1, 3)):
        call, kind, is_merged = _aggregate(draw, source)
        outputs[f"c{len(outputs) + 5}"] = (call, kind)
        is_exact &= is_merged
    grouped = f" group by {', '.join(keys)}" if keys else ""
    having = ""
    if draw.random() < 0.3:
        having = draw.choice([" having count(*) > 1", " having count(*) < 3", " having count(*) <> 2"])
    owners = {name.split(".")[0] for name in keys}
    # the groups that a change touches have to be known before PostgreSQL evaluates them
    can_be_replaced = len(owners) == 1 and source.has_only_tables and source.has_only_equalities
    return Query(
        f"select {_listed(outputs)} from {source.sql}{grouped}{having}",
        {alias: kind for alias, (_, kind) in outputs.items()},
        source.is_differential and (is_exact or (can_be_replaced and depth == 2)),
    )


def _aggregate(draw: Random, source: _Relations) -> tuple[str, str, bool]:
    """A call, the kind of its value, and whether its state can be merged."""
    name = draw.choice(list(source.columns))
    kind = source.columns[name]
    calls = [("count(*)", "big", True), (f"count({name})", "big", kind != "wide")]
    if kind == "int":
        calls += [(f"min({name})", "int", True), (f"max({name})", "int", True), (f"sum({name})", "big", True)]
        calls += [(f"avg({name})", "wide", True), (f"stddev({name})", "wide", False)]
    elif kind == "big":
        calls += [
            (f"min({name})", "big", True),
            (f"max({name})", "big", True),
            (f"sum({name})", "wide", True),
        ]
    elif kind == "num":
        calls += [
            (f"sum({name})", "wide", True),
            (f"max({name})", "wide", True),
            (f"avg({name})", "wide", True),
        ]
        calls += [(f"sum(distinct {name})", "wide", False)]
    elif kind == "wide":
        calls += [(f"sum({name})", "wide", False), (f"max({name})", "wide", False)]
    elif kind == "date":
        calls += [(f"min({name})", "date", True), (f"max({name})", "date", True)]
    elif kind == "bool":
        calls += [(f"bool_and({name})", "bool", True), (f"bool_or({name})", "bool", True)]
    else:
        calls += [(f"string_agg({name}, ',' order by {name})", "text", False)]
    calls += [(f"count(distinct {name})", "big", False)]
    call, result, is_merged = draw.choice(calls)
    if draw.random() < 0.25 and "distinct" not in call:
        call += f" filter (where {_condition(draw, source.compared, simple=True)})"
    return call, result, is_merged


def _relations(draw: Random, depth: int) -> _Relations:
    """One to four relations, joined."""
    count = draw.choice([1, 1, 2, 2, 2, 3, 3, 4])
    sql, columns, compared = "", dict[str, str](), dict[str, str]()
    is_differential, has_only_tables, has_only_equalities = True, True, True
    for number in range(count):
        alias = f"r{number}{depth}"
        item, kinds, follows, is_table = _item(draw, depth)
        own = {f"{alias}.{name}": kind for name, kind in kinds.items()}
        is_differential &= follows
        joined = _joined(draw, columns, own, f"{item} {alias}") if number else f"{item} {alias}"
        has_only_tables &= is_table
        has_only_equalities &= number == 0 or " = " in joined
        sql = f"{sql} {joined}".strip()
        columns |= own
        compared |= {
            name: kind for name, kind in own.items() if is_table or kind in {"int", "big", "text", "bool"}
        }
    compared = compared or columns
    if draw.random() < 0.4:
        sql += " where " + _condition(draw, compared)
    return _Relations(sql, columns, is_differential, has_only_tables, has_only_equalities, compared)


def _item(draw: Random, depth: int) -> tuple[str, dict[str, str], bool, bool]:
    if depth == 0 or draw.random() < 0.7:
        name = draw.choice(list(TABLES))
        return name, TABLES[name], True, True
    shape = draw.choice([_rows, _groups, _groups, _distinct, _union])
    inner = shape(draw, depth - 1 if shape is not _groups else 0)
    return f"({inner.sql})", inner.columns, inner.is_differential, False


def _joined(draw: Random, left: dict[str, str], right: dict[str, str], item: str) -> str:
    families = {"int": "int", "big": "int", "text": "text", "date": "date"}
    pairs = [
        (a, b, families[kind])
        for a, kind in left.items()
        for b, other in right.items()
        if kind in families and families[kind] == families.get(other)
    ]
    if not pairs or draw.random() < 0.05:
        return f"cross join {item}"
    a, b, kind = draw.choice(pairs)
    condition = f"{a} = {b}"
    if kind == "int" and draw.random() < 0.1:
        condition = f"{a} > {b}"
    elif kind == "int" and draw.random() < 0.15:
        condition = f"{a} + 1 = {b}"
    if draw.random() < 0.15:
        a, b, kind = draw.choice(pairs)
        condition += f" and {a} {'<>' if kind == 'text' else '<='} {b}"
    return f"join {item} on {condition}"


def _condition(draw: Random, columns: dict[str, str], *, simple: bool = False) -> str:
    name = draw.choice(list(columns))
    kind = columns[name]
    options = [f"{name} is not null", f"{name} is null"] if not simple else [f"{name} is not null"]
    if kind == "bool":
        options += [name, f"not {name}", f"{name} is not true"]
    elif kind in LITERALS:
        operator = draw.choice(["=", "<>", "<", ">="] if kind != "text" else ["=", "<>"])
        options += [f"{name} {operator} {draw.choice(LITERALS[kind])}"] * 4
        if kind in {"int", "big"}:
            options += [f"{name} in (1, 2)", f"coalesce({name}, 0) < 2"]
    condition = draw.choice(options)
    if draw.random() < 0.2 and not simple:
        other = _condition(draw, columns, simple=True)
        condition = f"({condition} {draw.choice(['or', 'and'])} {other})"
    return condition


def _listed(outputs: dict[str, tuple[str, str]]) -> str:
    return ", ".join(f"{expression} as {alias}" for alias, (expression, _) in outputs.items())
