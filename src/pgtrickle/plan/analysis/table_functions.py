"""Functions that return sets, in FROM and in the select list, and VALUES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.model.names import quoted
from pgtrickle.plan.analysis.block import Block, Surroundings
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.disjunctions import is_true
from pgtrickle.plan.analysis.outer_joins import combine, equalities, merged_columns, on_parts
from pgtrickle.plan.analysis.relations import Relations
from pgtrickle.plan.analysis.scope import Scope, has_subquery
from pgtrickle.plan.analysis.subqueries import Attachments
from pgtrickle.plan.analysis.whole_rows import with_whole_row
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, all_of, column
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.expressions.syntax import WordedCall
from pgtrickle.plan.operators import Column, Join, Operator, TableFunction, Values
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.refusals import refuse, refuse_correlation

ONE_ROW = Values("", ())

Sided = Callable[[Relations, Relations, exp.Join, Surroundings], Relations]
"""Joins relations with others, on the side that the join names."""


def is_function(node: exp.Expr) -> bool:
    """Whether an item of FROM is a call of a function."""
    if isinstance(node, exp.Lateral):
        return not isinstance(node.this, exp.Query)
    if isinstance(node, exp.Table):
        return not isinstance(node.this, (exp.Identifier, exp.Values))
    return isinstance(node, exp.Unnest)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call in FROM, the names of its columns, and whether the last of them counts."""

    call: Expression
    names: list[str]
    has_ordinality: bool


def join_function(left: Relations, node: exp.Join, join: Sided, surroundings: Surroundings) -> Relations:
    """The relations joined with the rows of a function; by `join` if it reads none of them."""
    context = surroundings.context
    context.count_relation()
    call, names, has_ordinality = _call(node.this)
    made = _Call(_over_rows(left, call, surroundings), names, has_ordinality)
    if made.call.columns:
        return _join_owner(left, node, made, surroundings)
    function = _function(ONE_ROW, made, context)
    right = replace(_as_relation(left, node, made, function, context), leaves=[function])
    return join(left, right, node, surroundings)


def _over_rows(left: Relations, call: exp.Expr, surroundings: Surroundings) -> Expression:
    """The call over the relations; subqueries in its arguments are put beside them."""
    if not has_subquery(call):
        return left.scope.resolve(call)
    attachments = Attachments(left.collapse(surroundings), left.scope, surroundings)
    arguments = attachments.value(call)
    left.leaves = [attachments.operator]
    return arguments


def _join_owner(left: Relations, node: exp.Join, made: _Call, surroundings: Surroundings) -> Relations:
    """The relations with the rows that a function makes of theirs."""
    if node.side in {"RIGHT", "FULL"}:
        raise refuse(f"{node.side} JOIN with a function that reads the other side")
    keeps = node.side == "LEFT"
    position = _owner(left, made.call, surroundings, keeps_child=keeps)
    function = _function(left.leaves[position], made, surroundings.context)
    left.leaves[position] = function
    right = _as_relation(left, node, made, function, surroundings.context)
    whole = reduce(lambda before, leaf: Join(before, leaf, ()), left.leaves)
    found = combine(left, right, merged_columns(left, right, node, whole, surroundings.context))
    pairs = equalities(left, right, node)
    if keeps:
        condition = _condition(node, pairs, found.scope, function)
        found.leaves[position] = replace(function, keeps_child=True, condition=condition)
        return found
    found.conditions += pairs
    if (on := node.args.get("on")) is not None:
        found.add_condition(on)
    return found


def _condition(
    node: exp.Join, pairs: list[Expression], scope: Scope, function: TableFunction
) -> Expression | None:
    """What the rows of a function must satisfy beside the row they are made of; None if nothing."""
    conditions = list(pairs)
    for part in on_parts(node):
        if has_subquery(part):
            raise refuse("a subquery in the condition of a LEFT JOIN with a function")
        conditions.append(scope.resolve(part))
    told = tuple(condition for condition in conditions if not is_true(condition))
    for condition in told:
        if not condition.columns <= function.names:
            raise refuse_correlation(f"{condition}, which reads a surrounding query,")
    return all_of(told) if told else None


def _as_relation(
    left: Relations, node: exp.Join, made: _Call, function: TableFunction, context: Context
) -> Relations:
    shown = tuple((name, column(c.name)) for name, c in zip(made.names, function.made, strict=True))
    alias, offered = node.this.alias_or_name, dict(shown)
    # in a LEFT JOIN it is not known whether the function made the row or the join padded it
    if alias in context.whole_rows and not (made.call.columns and node.side):
        offered = with_whole_row(offered, _row_type(function, made, context))
    return Relations(Scope({alias: offered}, outer=left.scope), visible=shown)


def _row_type(function: TableFunction, made: _Call, context: Context) -> str | None:
    """The type of a function's row; None for a record."""
    if made.has_ordinality:
        return None
    over = made.call.over(lambda name: "t." + quoted(name))
    rows = f"({postgres_sql(function.child)}) as t cross join lateral {over} as f"
    try:
        found = context.type(rows, "f")
    except UnsupportedQuery:
        return None
    return found.text if found.kind == "c" else None


def _function(child: Operator, made: _Call, context: Context) -> TableFunction:
    return table_function(child, made.call, made.names, context, has_ordinality=made.has_ordinality)


def _owner(left: Relations, call: Expression, surroundings: Surroundings, *, keeps_child: bool) -> int:
    """Which of the leaves has all columns that the call reads; the join of all if none has them."""
    for position, leaf in enumerate(left.leaves):
        if call.columns <= leaf.names and not keeps_child:
            return position
    operator = left.collapse(surroundings)
    if not call.columns <= operator.names:
        raise refuse_correlation(f"{call}, which reads a surrounding query,")
    return 0


def _call(item: exp.Expr) -> tuple[exp.Expr, list[str], bool]:
    """The call, the names of its columns, and whether the last of them counts."""
    alias = item.args.get("alias")
    columns = alias.columns if alias else []
    names = [c.name for c in columns]
    has_ordinality = bool(item.args.get("ordinality"))
    if isinstance(item, exp.Table) and item.args.get("rows_from"):
        calls = [
            _call_with_columns(_qualified_call(part), part.args.get("alias"))
            for part in item.args["rows_from"]
        ]
        return rows_from(calls), names, has_ordinality
    call = _qualified_call(item)
    if isinstance(call, WordedCall):
        return call, [*names, *call.output_names[len(names) :]], has_ordinality
    if isinstance(call, exp.Unnest):
        offset = call.args.get("offset")
        if isinstance(offset, exp.Identifier):
            names.append(offset.name)
        has_ordinality = bool(offset)
        call.set("offset", None)
        call.set("alias", None)
    if any(isinstance(c, exp.ColumnDef) for c in columns):
        # there a definition of columns and names for them can both stand
        call = rows_from([_call_with_columns(call, alias)])
    return call, names, has_ordinality


def _qualified_call(item: exp.Expr) -> exp.Expr:
    """The call of an item of FROM, with the schema of its function."""
    call = item.copy() if isinstance(item, exp.Unnest) else item.this.copy()
    if isinstance(item, exp.Table) and item.args.get("db"):
        return exp.Dot(this=item.args["db"].copy(), expression=call)
    return call


def rows_from(calls: list[exp.Expr]) -> exp.Expr:
    """Calls whose rows stand side by side."""
    return exp.Anonymous(this="ROWS FROM", expressions=[call.copy() for call in calls])


def _call_with_columns(call: exp.Expr, alias: exp.TableAlias | None) -> exp.Expr:
    """A call with the columns that the query defines for it, if it does."""
    defined = exp.Tuple(expressions=[c.copy() for c in alias.columns]) if alias else None
    return exp.Alias(this=call.copy(), alias=defined) if defined is not None else call.copy()


def table_function(
    child: Operator, call: Expression, names: list[str], context: Context, *, has_ordinality: bool = False
) -> TableFunction:
    """The function's rows beside each row of the child, its columns as PostgreSQL types them."""
    if not call.columns <= child.names:
        raise refuse_correlation(f"{call}, which reads a surrounding query,")
    listed = ", ".join(f"c{number}" for number in range(len(names)))
    ordinality = " with ordinality" if has_ordinality else ""
    over = call.over(lambda name: "t." + quoted(name))
    rows = f"({postgres_sql(child)}) as t cross join lateral {over}{ordinality} as f({listed})"
    types = context.types_of(rows, [f"f.c{number}" for number in range(len(names))])
    made = tuple(
        Column(context.unique(name), pg_type, carrier_of(pg_type))
        for name, pg_type in zip(names, types, strict=True)
    )
    return TableFunction(child, call, made, has_ordinality)


def values_block(node: exp.Values, surroundings: Surroundings) -> Block:
    """Rows that the query spells out."""
    context = surroundings.context
    rows = node.copy()
    rows.set("alias", None)
    width = len(node.expressions[0].expressions)
    is_constant = not any(isinstance(part, (exp.Column, exp.Select)) for part in rows.walk())
    if surroundings.domain is not None or not is_constant:
        return surroundings.analyse(_as_union(node), surroundings)
    query = to_sql(rows)
    listed = ", ".join(f"c{number}" for number in range(width))
    types = context.types_of(f"({query}) as t({listed})", [f"t.c{number}" for number in range(width)])
    columns = tuple(
        Column(context.unique(f"column{number + 1}"), pg_type, carrier_of(pg_type))
        for number, pg_type in enumerate(types)
    )
    outputs = tuple((f"column{number + 1}", column(c.name)) for number, c in enumerate(columns))
    return Block(Values(query, columns), outputs)


def _as_union(node: exp.Values) -> exp.Expr:
    """VALUES whose rows are no constants, as a union of selects."""
    selects: list[exp.Expr] = []
    for row in node.expressions:
        items = [
            exp.Alias(this=value.copy(), alias=exp.to_identifier(f"column{number + 1}"))
            for number, value in enumerate(row.expressions)
        ]
        selects.append(exp.Select(expressions=items))
    whole = selects[0]
    for select in selects[1:]:
        whole = exp.Union(this=whole, expression=select, distinct=False)
    return whole
