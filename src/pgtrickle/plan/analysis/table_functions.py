"""Functions that return sets, in FROM and in the select list, and VALUES."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.model.names import quoted
from pgtrickle.plan.analysis.block import Block, Surroundings
from pgtrickle.plan.analysis.context import Context, correlated, refuse
from pgtrickle.plan.analysis.outer_joins import together
from pgtrickle.plan.analysis.relations import Relations
from pgtrickle.plan.analysis.scope import Scope, has_subquery
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.dialect import written
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.lowering.postgres import postgres_sql
from pgtrickle.plan.operators import Column, Operator, TableFunction, Values

ONE_ROW = Values("", ())


def is_function(node: exp.Expr) -> bool:
    """Whether an item of FROM is a call of a function."""
    if isinstance(node, exp.Lateral):
        return not isinstance(node.this, exp.Query)
    if isinstance(node, exp.Table):
        return not isinstance(node.this, (exp.Identifier, exp.Values))
    return isinstance(node, exp.Unnest)


def function_joined(left: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    """The relations joined with the rows of a function, which may read them."""
    context = surroundings.context
    context.count_relation()
    call, names, has_ordinality = _call(node.this)
    if has_subquery(call):
        raise refuse("a subquery in the arguments of a function in FROM")
    resolved = left.scope.resolve(call)
    keeps = node.side == "LEFT" and bool(resolved.columns)
    if node.side and not (keeps and _is_true(node)):
        raise refuse(f"{node.side} JOIN with a function")
    position = _owner(left, resolved, surroundings, keeps_child=keeps)
    child = left.leaves[position] if position is not None else ONE_ROW
    function = table_function(child, resolved, names, context, has_ordinality=has_ordinality)
    function = replace(function, keeps_child=keeps)
    shown = tuple((name, column(c.name)) for name, c in zip(names, function.made, strict=True))
    right = Relations(Scope({node.this.alias_or_name: dict(shown)}, outer=left.scope), visible=shown)
    found = together(left, right, {})
    if position is None:
        found.leaves.append(function)
    else:
        found.leaves[position] = function
    if (on := node.args.get("on")) is not None and not keeps:
        found.add_condition(on)
    return found


def _owner(left: Relations, call: Expression, surroundings: Surroundings, *, keeps_child: bool) -> int | None:
    """Which of the leaves has all columns that the call reads; None if it reads none."""
    if not call.columns:
        return None
    for position, leaf in enumerate(left.leaves):
        if call.columns <= leaf.names and not keeps_child:
            return position
    operator = left.collapse(surroundings)
    if not call.columns <= operator.names:
        raise correlated(f"{call}, which reads a surrounding query,")
    return 0


def _call(item: exp.Expr) -> tuple[exp.Expr, list[str], bool]:
    """The call, the names of its columns, and whether the last of them counts."""
    alias = item.args.get("alias")
    columns = alias.columns if alias else []
    names = [c.name for c in columns]
    has_ordinality = bool(item.args.get("ordinality"))
    if isinstance(item, exp.Table) and item.args.get("rows_from"):
        calls = [_defined(part.this, part.args.get("alias")) for part in item.args["rows_from"]]
        return _rows_from(calls), names, has_ordinality
    call = item.copy() if isinstance(item, exp.Unnest) else item.this.copy()
    if isinstance(item, exp.Table) and item.args.get("db"):
        call = exp.Dot(this=item.args["db"].copy(), expression=call)
    if isinstance(call, exp.Unnest):
        offset = call.args.get("offset")
        if isinstance(offset, exp.Identifier):
            names.append(offset.name)
        has_ordinality = bool(offset)
        call.set("offset", None)
        call.set("alias", None)
    if any(isinstance(c, exp.ColumnDef) for c in columns):
        # there a definition of columns and names for them can both stand
        call = _rows_from([_defined(call, alias)])
    return call, names, has_ordinality


def _rows_from(calls: list[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this="ROWS FROM", expressions=calls)


def _defined(call: exp.Expr, alias: exp.TableAlias | None) -> exp.Expr:
    """A call with the columns that the query defines for it, if it does."""
    defined = exp.Tuple(expressions=[c.copy() for c in alias.columns]) if alias else None
    return exp.Alias(this=call.copy(), alias=defined) if defined is not None else call.copy()


def _is_true(node: exp.Join) -> bool:
    on = node.args.get("on")
    bare = on.unnest() if on is not None else None
    return isinstance(bare, exp.Boolean) and bool(bare.this)


def table_function(
    child: Operator, call: Expression, names: list[str], context: Context, *, has_ordinality: bool = False
) -> TableFunction:
    """The function's rows beside each row of the child, its columns as PostgreSQL types them."""
    if not call.columns <= child.names:
        raise correlated(f"{call}, which reads a surrounding query,")
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
    query = written(rows)
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
