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
    join_full,
    join_left,
    join_right,
    merged_columns,
    together,
    using_names,
    visible,
)
from pgtrickle.plan.analysis.parsing import parse
from pgtrickle.plan.analysis.recursion import recursion
from pgtrickle.plan.analysis.relations import Relations
from pgtrickle.plan.analysis.scalars import attach_total, given
from pgtrickle.plan.analysis.scope import Scope
from pgtrickle.plan.analysis.table_functions import is_function, join_function
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
        found = _joined(found, exp.Join(this=clause.this), surroundings)
    for join in node.args.get("joins") or []:
        found = _joined(found, join, surroundings)
    return found


def _joined(left: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    """The relations joined with one more item, which may read them if it is lateral."""
    if node.method or node.kind not in {"", "INNER", "CROSS", "OUTER"}:
        raise refuse(f"{' '.join(filter(None, (node.method, node.side, node.kind)))} JOIN")
    item = node.this
    if is_function(item):
        found = join_function(left, node, _sided, surroundings)
    elif isinstance(item, exp.Lateral):
        found = _subquery(left, node, item.this, left.scope, surroundings)
    elif isinstance(item, exp.Values) or isinstance(item.this, exp.Values):
        values = item if isinstance(item, exp.Values) else item.this
        found = _subquery(left, node, values, surroundings.outer, surroundings)
    elif isinstance(item, exp.Subquery) and not isinstance(item.this, _JOINED):
        found = _subquery(left, node, item.this, surroundings.outer, surroundings)
    else:
        found = _sided(left, _item(item, left, surroundings), node, surroundings)
    for join in item.args.get("joins") or []:
        found = _joined(found, join, surroundings)
    return found


def _sided(left: Relations, right: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    join = _SIDES[node.side] if node.side else _inner
    return join(left, right, node, surroundings)


def _inner(left: Relations, right: Relations, node: exp.Join, surroundings: Surroundings) -> Relations:
    merged: dict[str, Expression] = {}
    if using_names(node):
        leaves = [*left.leaves, *right.leaves]
        operator = leaves[0]
        for leaf in leaves[1:]:
            operator = Join(operator, leaf, ())
        merged = merged_columns(left, right, node, operator, surroundings.context)
    found = together(left, right, merged)
    for name in using_names(node):
        own, other = visible(left, name).node.copy(), visible(right, name).node.copy()
        found.conditions.append(Expression(exp.EQ(this=own, expression=other)))
    if on := node.args.get("on"):
        found.add_condition(on)
    return found


def _subquery(
    left: Relations, node: exp.Join, query: exp.Expr, outer: Scope | None, surroundings: Surroundings
) -> Relations:
    """A subquery joined with the relations before it, which it may read if it is lateral."""
    surroundings.context.count_subquery()
    inner = surroundings.inside(outer)
    try:
        return _beside(left, inner.analyse(query, inner), node, surroundings)
    except Correlated as refusal:
        if outer is None or not left.leaves:
            raise
        operator = left.collapse(surroundings)
        block = over_domain(query, operator, outer, surroundings, refusal)
        return _beside(left, block, node, surroundings)


def _beside(left: Relations, block: Block, node: exp.Join, surroundings: Surroundings) -> Relations:
    if not block.is_total:
        return _sided(left, _offered(node.this, block, left.scope), node, surroundings)
    attached = attach_total(left.collapse(surroundings), block, surroundings.context)
    conditions = [attached.is_there] if attached.is_there else []
    right = Relations(_offered(node.this, block, left.scope).scope)
    if (on := node.args.get("on")) is not None:
        conditions += conjuncts(together(left, right, {}).scope.resolve(on))
    outputs = block.outputs
    if node.side:
        # a row that fails the condition is padded: all it shows is null
        is_there = all_of(tuple(c for c in conditions if not isinstance(c.node, exp.Boolean)))
        outputs = tuple((name, given(is_there, expression)) for name, expression in outputs)
        conditions = []
    found = together(left, _offered(node.this, replace(block, outputs=outputs), left.scope), {})
    found.leaves = [attached.operator]
    found.conditions = [*left.conditions, *conditions]
    return found


def _item(node: exp.Expr, left: Relations, surroundings: Surroundings) -> Relations:
    """A table, or a join in parentheses."""
    if not isinstance(node, exp.Subquery):
        return _table(node, left.scope, surroundings)
    found = Relations(Scope(outer=left.scope))
    try:
        return _named(node, _joined(found, exp.Join(this=node.this), surroundings))
    except Correlated:
        domain = left.take_domain()
        if domain is None:
            raise
    # an outer join in the parentheses reads the domain, so that it has to be in there
    found.place(domain)
    return _named(node, _joined(found, exp.Join(this=node.this), surroundings))


def _named(node: exp.Expr, found: Relations) -> Relations:
    """A join under a name of its own, which hides those inside."""
    if not node.alias:
        return found
    found.visible = _renamed(node, found.visible)
    found.scope.relations = {node.alias: dict(found.visible)}
    found.scope.merged = {}
    return found


def _table(node: exp.Expr, before: Scope, surroundings: Surroundings) -> Relations:
    context = surroundings.context
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refuse(f"{to_sql(node)[:60]} in FROM")
    if node.args.get("only") or node.args.get("sample"):
        raise refuse("ONLY or TABLESAMPLE")
    if not node.db and node.name in surroundings.named:
        return _offered(node, _with_query(node.name, surroundings.named[node.name]), before)
    name = RelationName(node.db, node.name)
    if view := context.definition.views.get(name):
        context.count_subquery()
        alone = Surroundings(context, surroundings.analyse)
        return _offered(node, alone.analyse(parse(view, alone.context.limits), alone), before)
    source = context.definition.sources.get(name)
    if source is None:
        raise refuse(f"the relation {name}")
    scan = scan_of(source, node.alias_or_name, context)
    outputs = tuple((c.name, column(given)) for c, given in zip(source.columns, scan.given, strict=True))
    return _offered(node, Block(scan, outputs), before)


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
    return _with_names(block, named.columns)


def scan_of(source: Source, wish: str, context: Context) -> Scan:
    """All rows and columns of a source under fresh names."""
    context.count_relation()
    alias = context.unique(wish)
    given = tuple(context.unique(f"{alias}.{c.name}") for c in source.columns)
    columns = [Column(n, c.type, carrier_of(c.type)) for n, c in zip(given, source.columns, strict=True)]
    return Scan(source, alias, given, tuple(ScanColumn(c, column(c.name)) for c in columns))


def _offered(node: exp.Expr, block: Block, before: Scope) -> Relations:
    """A block as a relation under the name it has in FROM."""
    shown = _renamed(node, block.outputs)
    scope = Scope({node.alias_or_name: dict(shown)}, outer=before)
    return Relations(scope, [block.operator], list(block.correlated), visible=shown, order=block.order)


def _with_names(block: Block, names: tuple[str, ...]) -> Block:
    kept = [name for name, _ in block.outputs[len(names) :]]
    shown = zip([*names, *kept], (e for _, e in block.outputs), strict=True)
    return replace(block, outputs=tuple(shown))


def _renamed(node: exp.Expr, offered: Outputs) -> Outputs:
    """The offered columns under the names of `alias (a, b, …)`."""
    alias = node.args.get("alias")
    given = [name.name for name in alias.columns] if alias else []
    names = given + [name for name, _ in offered[len(given) :]]
    return tuple(zip(names, (expression for _, expression in offered), strict=True))
