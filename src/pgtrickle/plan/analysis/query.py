"""One query block after the other: SELECT, UNION and what their FROM clauses name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from pgtrickle.model.names import RelationName
from pgtrickle.model.source import Source
from pgtrickle.plan.analysis.aggregation import aggregated, has_aggregates
from pgtrickle.plan.analysis.context import Context, refuse
from pgtrickle.plan.analysis.joining import join_tree
from pgtrickle.plan.analysis.result import result_column
from pgtrickle.plan.analysis.scope import Scope
from pgtrickle.plan.analysis.settle import Settler
from pgtrickle.plan.carriers import carrier_of, unmodified
from pgtrickle.plan.dialect import parsed, written
from pgtrickle.plan.expressions import Expression, column, conjuncts
from pgtrickle.plan.operators import Column, Distinct, Operator, Project, Scan, ScanColumn, UnionAll

_CUTS = ("limit", "offset", "fetch", "with_")


@dataclass(frozen=True, slots=True)
class Block:
    """A query as an operator, and its output columns as expressions over it."""

    operator: Operator
    outputs: tuple[tuple[str, Expression], ...]


@dataclass(slots=True)
class _From:
    """The relations of a FROM clause, all inner-joined, and the conditions between them."""

    scope: Scope = field(default_factory=Scope)
    leaves: list[Operator] = field(default_factory=list)
    conditions: list[Expression] = field(default_factory=list)


def parse(text: str) -> exp.Expr:
    """PostgreSQL's text as a tree."""
    tree = parsed(text)
    if tree is None:
        raise refuse("SQL that our parser cannot read")
    return tree


def analysed(node: exp.Expr, context: Context) -> Block:
    """The operators of a query."""
    if isinstance(node, exp.Subquery):
        return analysed(node.this, context)
    if node.args.get("with_"):
        raise refuse("WITH")
    if node.args.get("limit") or node.args.get("offset") or node.args.get("fetch"):
        raise refuse("LIMIT")
    if isinstance(node, exp.Select):
        return _select(node, context)
    if isinstance(node, exp.Union):
        return _union(node, context)
    raise refuse(type(node).__name__.upper())


def _select(node: exp.Select, context: Context) -> Block:
    for part, name in (("windows", "WINDOW"), ("qualify", "QUALIFY"), ("locks", "FOR UPDATE")):
        if node.args.get(part):
            raise refuse(name)
    if next(node.find_all(exp.Window), None):
        raise refuse("a window function")
    source = _from(node, context)
    operator = join_tree(source.leaves, source.conditions, context)
    outputs = tuple((item.alias_or_name, source.scope.resolve(item.unalias())) for item in node.expressions)
    if node.args.get("group") or node.args.get("having") or has_aggregates(node, context):
        operator, outputs = aggregated(node, operator, outputs, source.scope, context)
    if distinct := node.args.get("distinct"):
        if distinct.args.get("on"):
            raise refuse("DISTINCT ON")
        return _distinct(Block(operator, outputs), context)
    return Block(operator, outputs)


def _union(node: exp.Union, context: Context) -> Block:
    arms = [projected(analysed(arm, context), context) for arm in _arms(node, node.args["distinct"])]
    widened = tuple(
        _widened(columns, context) for columns in zip(*(arm.columns for arm in arms), strict=True)
    )
    first = Project(arms[0], widened, tuple(column(c.name) for c in arms[0].columns))
    outputs = tuple((name, column(wide.name)) for name, wide in zip(_names(node), widened, strict=True))
    union = Block(UnionAll((first, *arms[1:])), outputs)
    return _distinct(union, context) if node.args["distinct"] else union


def _widened(columns: tuple[Column, ...], context: Context) -> Column:
    """The column that holds the values of all arms: without length or scale where these differ."""
    first = columns[0]
    for other in columns[1:]:
        if (first.carrier.spark, first.carrier.carry) != (other.carrier.spark, other.carrier.carry):
            raise refuse(f"UNION of {first.type.text} with {other.type.text}")
    if len({c.type.text for c in columns}) == 1:
        return Column(context.unique(first.name), first.type, first.carrier)
    wide = unmodified(first.type)
    carrier = replace(first.carrier, pg_type=wide.text, restore=carrier_of(wide).restore)
    return Column(context.unique(first.name), wide, carrier)


def _arms(node: exp.Expr, distinct: bool) -> list[exp.Expr]:
    """The arms of a chain of unions of one kind."""
    bare = node.this if isinstance(node, exp.Subquery) else node
    is_cut = any(part.args.get(clause) for part in (node, bare) for clause in _CUTS)
    if isinstance(bare, exp.Union) and bare.args["distinct"] == distinct and not is_cut:
        return _arms(bare.left, distinct) + _arms(bare.right, distinct)
    return [node]


def _names(node: exp.Expr) -> list[str]:
    while isinstance(node, (exp.Union, exp.Subquery)):
        node = node.this
    return [item.alias_or_name for item in node.expressions]


def _distinct(block: Block, context: Context) -> Block:
    operator = projected(block, context)
    for unequal in (c for c in operator.columns if not c.carrier.equality):
        raise refuse(f"DISTINCT or UNION over a column of type {unequal.type.text}")
    outputs = tuple(
        (name, column(c.name)) for (name, _), c in zip(block.outputs, operator.columns, strict=True)
    )
    return Block(Distinct(operator), outputs)


def projected(block: Block, context: Context) -> Operator:
    """The block's outputs as columns of an operator, in their order."""
    settler = Settler(context, block.operator)
    settled = [settler.in_spark(expression) for _, expression in block.outputs]
    columns = [
        result_column(context, name, expression, settler.operator)
        for (name, _), expression in zip(block.outputs, settled, strict=True)
    ]
    return Project(settler.operator, tuple(columns), tuple(settled))


def _from(node: exp.Select, context: Context) -> _From:
    clause = node.args.get("from_")
    if clause is None:
        raise refuse("a SELECT without FROM")
    found = _From()
    _item(clause.this, found, context)
    for join in node.args.get("joins") or []:
        _join(join, found, context)
    if where := node.args.get("where"):
        found.conditions.extend(conjuncts(found.scope.resolve(where.this)))
    return found


def _item(node: exp.Expr, found: _From, context: Context) -> None:
    if isinstance(node, exp.Subquery) and isinstance(node.this, (exp.Table, exp.Subquery)) and not node.alias:
        _item(node.this, found, context)
    elif isinstance(node, exp.Subquery):
        _offer(node, analysed(node.this, context), found)
    elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        _table(node, found, context)
    else:
        raise refuse(f"{written(node)[:60]} in FROM")
    for join in node.args.get("joins") or []:
        _join(join, found, context)


def _table(node: exp.Table, found: _From, context: Context) -> None:
    if node.args.get("only") or node.args.get("sample"):
        raise refuse("ONLY or TABLESAMPLE")
    name = RelationName(node.db, node.name)
    if view := context.definition.views.get(name):
        _offer(node, analysed(parse(view), context), found)
        return
    source = context.definition.sources.get(name)
    if source is None:
        raise refuse(f"the relation {name}")
    scan = _scan(source, node.alias_or_name, context)
    found.leaves.append(scan)
    offered = tuple(
        (c.name, column(o.column.name)) for c, o in zip(source.columns, scan.outputs, strict=True)
    )
    found.scope.relations[node.alias_or_name] = _renamed(node, offered)


def _scan(source: Source, wish: str, context: Context) -> Scan:
    alias = context.unique(wish)
    given = tuple(context.unique(f"{alias}.{c.name}") for c in source.columns)
    columns = [Column(n, c.type, carrier_of(c.type)) for n, c in zip(given, source.columns, strict=True)]
    return Scan(source, alias, given, tuple(ScanColumn(c, column(c.name)) for c in columns))


def _offer(node: exp.Expr, block: Block, found: _From) -> None:
    found.leaves.append(block.operator)
    found.scope.relations[node.alias_or_name] = _renamed(node, block.outputs)


def _renamed(node: exp.Expr, offered: tuple[tuple[str, Expression], ...]) -> Mapping[str, Expression]:
    """The offered columns under the names of `alias (a, b, …)`."""
    alias = node.args.get("alias")
    given = [name.name for name in alias.columns] if alias else []
    names = given + [name for name, _ in offered[len(given) :]]
    return dict(zip(names, (expression for _, expression in offered), strict=True))


def _join(node: exp.Join, found: _From, context: Context) -> None:
    if node.side or node.kind not in {"", "INNER", "CROSS"} or node.method:
        raise refuse(f"{' '.join(filter(None, (node.method, node.side, node.kind)))} JOIN")
    using = [name.name for name in node.args.get("using") or []]
    # a name joined by before is in several relations, and equal in all of them
    before = {name: found.scope.first(name) for name in using}
    known = set(found.scope.relations)
    _item(node.this, found, context)
    for name in using:
        (joined,) = [
            o[name] for alias, o in found.scope.relations.items() if alias not in known and name in o
        ]
        found.conditions.append(
            Expression(exp.EQ(this=before[name].node.copy(), expression=joined.node.copy()))
        )
    if condition := node.args.get("on"):
        found.conditions.extend(conjuncts(found.scope.resolve(condition)))
