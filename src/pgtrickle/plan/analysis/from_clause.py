"""FROM: tables, views, WITH queries, subqueries and the joins between them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.model.names import RelationName
from pgtrickle.model.source import Source
from pgtrickle.plan.analysis.block import Block, Domain, Named, Outputs, Surroundings
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.domains import over_domain
from pgtrickle.plan.analysis.outer_joins import (
    combine,
    join_full,
    join_left,
    join_right,
    merged_columns,
    using_names,
    visible,
)
from pgtrickle.plan.analysis.parsing import parse
from pgtrickle.plan.analysis.recursion import recursion
from pgtrickle.plan.analysis.relations import Relations
from pgtrickle.plan.analysis.scalars import attach_total, null_unless
from pgtrickle.plan.analysis.scope import WHOLE_ROW, Scope
from pgtrickle.plan.analysis.table_functions import is_function, join_function
from pgtrickle.plan.analysis.whole_rows import whole_row_names, with_whole_row
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, all_of, column, conjuncts
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.operators import Column, Join, Scan, ScanColumn
from pgtrickle.plan.refusals import Correlated, refuse, refuse_correlation

_JOINED = (exp.Table, exp.Subquery, exp.Lateral, exp.Values)
"""What parentheses in FROM enclose if they are no subquery."""

_SIDES = {"LEFT": join_left, "RIGHT": join_right, "FULL": join_full}


def relations_of(node: exp.Select, surroundings: Surroundings, domain: Domain | None) -> Relations:
    """The relations of a query's FROM clause, with the conditions of its joins."""
    found = Relations(Scope(outer=surroundings.outer))
    found.place(domain)
    if clause := node.args.get("from_"):
        found = _join_item(found, exp.Join(this=clause.this), surroundings)
    for join in node.args.get("joins") or []:
        found = _join_item(found, join, surroundings)
    return found


def _join_item(left: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    """The relations joined with one more item, which may read them if it is lateral."""
    if node.method or node.kind not in {"", "INNER", "CROSS", "OUTER"}:
        raise refuse(f"{' '.join(filter(None, (node.method, node.side, node.kind)))} JOIN")
    item = node.this
    if is_function(item):
        found = join_function(left, node, _join_side, surroundings)
    elif isinstance(item, exp.Lateral):
        found = _join_subquery(left, node, item.this, left.scope, surroundings)
    elif isinstance(item, exp.Values) or isinstance(item.this, exp.Values):
        values = item if isinstance(item, exp.Values) else item.this
        found = _join_subquery(left, node, values, surroundings.outer, surroundings)
    elif isinstance(item, exp.Subquery) and not isinstance(item.this, _JOINED):
        found = _join_subquery(left, node, item.this, surroundings.outer, surroundings)
    else:
        found = _join_side(left, _relations_of_item(item, left, surroundings), node, surroundings)
    if alias := node.args.get("using_alias"):
        merged = {name: found.scope.merged[name] for name in using_names(node)}
        found.scope.relations = {**found.scope.relations, alias.name: merged}
    for join in item.args.get("joins") or []:
        found = _join_item(found, join, surroundings)
    return found


def _join_side(left: Relations, right: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    join = _SIDES[node.side] if node.side else _join_inner
    return join(left, right, node, surroundings)


def _join_inner(left: Relations, right: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    merged: dict[str, Expression] = {}
    if using_names(node):
        leaves = [*left.leaves, *right.leaves]
        operator = leaves[0]
        for leaf in leaves[1:]:
            operator = Join(operator, leaf, ())
        merged = merged_columns(left, right, node, operator, surroundings.context)
    found = combine(left, right, merged)
    for name in using_names(node):
        own, other = visible(left, name).node.copy(), visible(right, name).node.copy()
        found.conditions.append(Expression(exp.EQ(this=own, expression=other)))
    if on := node.args.get("on"):
        found.add_condition(on)
    return found


def _join_subquery(
    left: Relations, node: exp.Join, query: exp.Expr, outer: Scope | None, surroundings: Surroundings
) -> Relations:
    """A subquery joined with the relations before it, which it may read if it is lateral."""
    surroundings.context.count_subquery()
    inner = surroundings.inside(outer)
    try:
        return _join_block(left, inner.analyse(query, inner), node, surroundings)
    except Correlated as refusal:
        if outer is None or not left.leaves:
            raise
        operator = left.collapse(surroundings)
        block = over_domain(query, operator, outer, surroundings, refusal)
        return _join_block(left, block, node, surroundings)


def _join_block(left: Relations, block: Block, node: exp.Join, surroundings: Surroundings) -> Relations:
    if not block.is_total:
        right = _as_relation(node.this, block, left.scope, surroundings.context)
        return _join_side(left, right, node, surroundings)
    context = surroundings.context
    attached = attach_total(left.collapse(surroundings), block, context)
    conditions = [attached.is_there] if attached.is_there else []
    right = Relations(_as_relation(node.this, block, left.scope, context).scope)
    if (on := node.args.get("on")) is not None:
        conditions += conjuncts(combine(left, right, {}).scope.resolve(on))
    outputs = block.outputs
    is_there: Expression | None = None
    if node.side:
        # a row that fails the condition is padded: all it shows is null
        is_there = all_of(tuple(c for c in conditions if not isinstance(c.node, exp.Boolean)))
        outputs = tuple((name, null_unless(is_there, expression)) for name, expression in outputs)
        conditions = []
    shown = replace(block, outputs=outputs)
    found = combine(left, _as_relation(node.this, shown, left.scope, context, is_there=is_there), {})
    found.leaves = [attached.operator]
    found.conditions = [*left.conditions, *conditions]
    return found


def _relations_of_item(node: exp.Expr, left: Relations, surroundings: Surroundings) -> Relations:
    """A table, or a join in parentheses."""
    if not isinstance(node, exp.Subquery):
        return _table(node, left.scope, surroundings)
    found, inner = Relations(Scope(outer=left.scope)), exp.Join(this=node.this)
    try:
        return _name_join(node, _join_item(found, inner, surroundings), surroundings.context)
    except Correlated:
        domain = left.take_domain()
        if domain is None:
            raise
    # an outer join in the parentheses reads the domain, so that it has to be in there
    found.place(domain)
    return _name_join(node, _join_item(found, inner, surroundings), surroundings.context)


def _name_join(node: exp.Expr, found: Relations, context: Context) -> Relations:
    """A join under a name of its own, which hides those inside."""
    if not node.alias:
        return found
    found.visible = _rename_outputs(node, found.visible)
    offered = dict(found.visible)
    is_whole = node.alias in context.whole_rows
    found.scope.relations = {node.alias: with_whole_row(offered, None) if is_whole else offered}
    found.scope.merged = {}
    return found


def _table(node: exp.Expr, before: Scope, surroundings: Surroundings) -> Relations:
    context = surroundings.context
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refuse(f"{to_sql(node)[:60]} in FROM")
    if node.args.get("sample"):
        raise refuse("TABLESAMPLE")
    if not node.db and node.name in surroundings.named:
        return _as_relation(node, _with_query(node.name, surroundings.named[node.name]), before, context)
    name = RelationName(node.db, node.name)
    if view := context.definition.views.get(name):
        context.count_subquery()
        alone = Surroundings(context, surroundings.analyse)
        tree = parse(view, context.limits)
        context.whole_rows |= whole_row_names(tree)
        return _as_relation(node, alone.analyse(tree, alone), before, context, type_name=name.sql)
    source = context.definition.sources.get(name)
    if source is None:
        raise refuse(f"the relation {name}")
    scan = scan_of(source, node.alias_or_name, context)
    outputs = tuple((c.name, column(given)) for c, given in zip(source.columns, scan.given, strict=True))
    return _as_relation(node, Block(scan, outputs), before, context, type_name=name.sql)


def _with_query(name: str, named: Named) -> Block:
    """The rows of a WITH query under the names of its columns."""
    if named.given is not None:
        return named.given
    named.surroundings.context.count_subquery()
    if named.is_recursive:
        return recursion(name, named)
    block = named.surroundings.analyse(named.query, named.surroundings)
    if block.is_total:
        raise refuse_correlation("a correlated aggregate in WITH")
    return _name_outputs(block, named.columns)


def scan_of(source: Source, wish: str, context: Context) -> Scan:
    """All rows and columns of a source under fresh names."""
    context.count_relation()
    alias = context.unique(wish)
    given = tuple(context.unique(f"{alias}.{c.name}") for c in source.columns)
    columns = [Column(n, c.type, carrier_of(c.type)) for n, c in zip(given, source.columns, strict=True)]
    return Scan(source, alias, given, tuple(ScanColumn(c, column(c.name)) for c in columns))


def _as_relation(
    node: exp.Expr,
    block: Block,
    before: Scope,
    context: Context,
    *,
    type_name: str | None = None,
    is_there: Expression | None = None,
) -> Relations:
    """A block as a relation under the name it has in FROM; its row has a type, or is a record."""
    shown = _rename_outputs(node, block.outputs)
    offered = dict(shown)
    if node.alias_or_name in context.whole_rows:
        # an alias may rename columns, and not those of the type
        named = dict(block.outputs) if type_name else offered
        offered[WHOLE_ROW] = with_whole_row(named, type_name, is_there)[WHOLE_ROW]
    scope = Scope({node.alias_or_name: offered}, outer=before)
    return Relations(scope, [block.operator], list(block.correlated), visible=shown, order=block.order)


def _name_outputs(block: Block, names: tuple[str, ...]) -> Block:
    kept = [name for name, _ in block.outputs[len(names) :]]
    shown = zip([*names, *kept], (e for _, e in block.outputs), strict=True)
    return replace(block, outputs=tuple(shown))


def _rename_outputs(node: exp.Expr, offered: Outputs) -> Outputs:
    """The offered columns under the names of `alias (a, b, …)`."""
    alias = node.args.get("alias")
    given = [name.name for name in alias.columns] if alias else []
    names = given + [name for name, _ in offered[len(given) :]]
    return tuple(zip(names, (expression for _, expression in offered), strict=True))
