"""GROUPING SETS, CUBE and ROLLUP: one aggregate for each set, all in one union."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, product

from sqlglot import exp

from pgtrickle.model.source import PgType
from pgtrickle.plan.analysis.columns import extend, result_column
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.copying import copy_operator
from pgtrickle.plan.analysis.scope import Scope
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.limits import QueryLimits
from pgtrickle.plan.operators import Aggregate, Call, Column, Operator, Project, UnionAll
from pgtrickle.plan.refusals import refuse

BIGINT = PgType("bigint", "bigint", "b", "N")

Set = tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """The sets of keys by which a query groups; `is_plain` if it has an ordinary GROUP BY."""

    sets: tuple[tuple[Expression, ...], ...]
    is_plain: bool

    @property
    def keys(self) -> tuple[Expression, ...]:
        """The keys of all sets."""
        return tuple(dict.fromkeys(key for keys in self.sets for key in keys))


@dataclass(frozen=True, slots=True)
class Bits:
    """A `grouping(…)` call: for each key, first to last, a bit that is set where the key is absent."""

    column: Column
    keys: tuple[str, ...]


def tell_keys_apart(
    group: exp.Group, operator: Operator, scope: Scope, context: Context
) -> tuple[Operator, Scope]:
    """The operator and the scope with a column of its own for each column that the sets name.

    One may stand for a constant, or be part of another: a set that lacks it has nulls for it, and not for
    the constant or the other. Which of two names for one column is null depends on the version of PostgreSQL.
    """
    relations, taken, plain = dict(scope.relations), set[str](), set[str]()
    named = {(scope.relation_of(reference), reference.name) for reference in group.find_all(exp.Column)}
    for relation, name in sorted((relation, name) for relation, name in named if relation is not None):
        value = relations[relation][name]
        if not value.columns <= operator.names:
            continue
        if value.column in plain:
            raise refuse("grouping sets with two names for one column")
        if value.column is not None:
            plain.add(value.column)
        if value.column is None or value.column in taken:
            fresh = result_column(context, name, value, operator)
            operator = extend(operator, fresh, value)
            value = column(fresh.name)
            relations[relation] = {**relations[relation], name: value}
        taken |= value.columns
    return operator, replace(scope, relations=relations)


def require_distinct_keys(group: exp.Group, shown: list[exp.Expr], limits: QueryLimits) -> None:
    """Refuse keys that the text of the query does not tell apart from other values.

    A constant is null where its set is absent if it is the key, and only then; which of two equal columns
    is the key is not in the text either.
    """
    texts = [to_sql(item) for item in shown]
    for item in group.expressions:
        for key in (key for keys in _sets(item, limits) for key in keys):
            if key.find(exp.Column) is None:
                raise refuse("a constant among grouping sets")
            if texts.count(to_sql(key.unnest())) > 1:
                raise refuse("grouping sets with two columns of the same key")


def grouping_sets(
    group: exp.Group, resolve: Callable[[exp.Expr], Expression], limits: QueryLimits
) -> GroupingSets:
    """The sets of a GROUP BY clause, their expressions resolved."""
    items = [_sets(item, limits) for item in group.expressions]
    count = 1
    for sets in items:
        count *= len(sets)
        if count > limits.max_grouping_sets:
            raise limits.limit_error("max_grouping_sets")
    found: list[tuple[Expression, ...]] = []
    for combination in product(*items):
        keys = [resolve(key) for keys in combination for key in keys]
        found.append(tuple(dict.fromkeys(keys)))
    if group.args.get("all") is False:
        found = list({frozenset(keys): keys for keys in found}.values())
    return GroupingSets(tuple(found), is_plain(group))


def is_plain(group: exp.Group) -> bool:
    """Whether it is an ordinary GROUP BY."""
    return group.find(exp.GroupingSets, exp.Rollup, exp.Cube) is None


def _sets(item: exp.Expr, limits: QueryLimits) -> list[Set]:
    if isinstance(item, exp.GroupingSets):
        return [keys for part in item.expressions for keys in _sets(part, limits)]
    if isinstance(item, (exp.Rollup, exp.Cube)):
        parts = [_keys(part) for part in item.expressions]
        if isinstance(item, exp.Cube) and len(parts) > limits.max_grouping_sets.bit_length():
            raise limits.limit_error("max_grouping_sets")
        sizes = range(len(parts), -1, -1)
        if isinstance(item, exp.Rollup):
            chosen = [parts[:size] for size in sizes]
        else:
            chosen = [list(some) for size in sizes for some in combinations(parts, size)]
        return [tuple(key for part in some for key in part) for some in chosen]
    return [_keys(item)]


def _keys(item: exp.Expr) -> Set:
    bare = item.unnest()
    return tuple(bare.expressions) if isinstance(bare, exp.Tuple) else (bare,)


def over_sets(
    aggregate: Aggregate,
    sets: tuple[frozenset[str], ...],
    bits: tuple[Bits, ...],
    shared: frozenset[str],
    context: Context,
) -> Operator:
    """The groups of each set in one union, keys that a set lacks as nulls.

    The union's columns have the names that the aggregate's had. The child is copied for each set, so
    that all scans of the plan stay different; `shared` are keys that every set has besides its own.
    """
    arms: list[Operator] = []
    for number, names in enumerate(sets):
        if shared and not names:
            raise refuse("the empty grouping set in a correlated subquery")
        kept = tuple(key for key in aggregate.keys if key.column.name in names | shared)
        part = Aggregate(aggregate.child, kept, aggregate.calls)
        if not part.columns:
            part = Aggregate(aggregate.child, (), (count_of_rows(context),))
        copy, renamed = copy_operator(part, context)
        values = [column(renamed[c.name]) if c in part.columns else _null(c) for c in aggregate.columns]
        values += [_bits(call, names) for call in bits]
        columns = (*aggregate.columns, *(call.column for call in bits))
        if number:
            columns = tuple(Column(context.unique(c.name), c.type, c.carrier) for c in columns)
        arms.append(Project(copy, columns, tuple(values)))
    return UnionAll(tuple(arms)) if len(arms) > 1 else arms[0]


def count_of_rows(context: Context) -> Call:
    """A count of the rows: an aggregate without keys has to have some column."""
    every = Expression(exp.Count(this=exp.Star(), big_int=True))
    return Call(Column(context.unique("count"), BIGINT, carrier_of(BIGINT)), every, "count")


def _null(own: Column) -> Expression:
    wanted = exp.DataType.build(own.type.text, dialect="postgres", udt=True)
    return Expression(exp.Cast(this=exp.Null(), to=wanted))


def _bits(call: Bits, names: frozenset[str]) -> Expression:
    value = 0
    for key in call.keys:
        value = value * 2 + (key not in names)
    return Expression(exp.Literal.number(value))
