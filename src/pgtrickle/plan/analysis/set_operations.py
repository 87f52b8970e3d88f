"""UNION, INTERSECT and EXCEPT, with and without ALL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.model.names import quoted
from pgtrickle.model.source import PgType
from pgtrickle.plan.analysis.block import Block, Surroundings
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.correlation import CorrelationKeys, correlation_keys
from pgtrickle.plan.analysis.domains import total_over_domain
from pgtrickle.plan.analysis.ordering import project_with
from pgtrickle.plan.analysis.row_order import order_of_several
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import Column, Distinct, Operator, Project, SetKind, SetOperation, UnionAll
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.refusals import refuse, refuse_correlation

_CUTS = ("limit", "offset", "fetch", "with_", "order")


def set_operation(node: exp.SetOperation, surroundings: Surroundings) -> Block:
    """The rows of a set operation; its own ORDER BY and LIMIT are not looked at."""
    context = surroundings.context
    is_distinct = bool(node.args["distinct"])
    if isinstance(node, exp.Union):
        nodes = _arms(node.left, is_distinct) + _arms(node.right, is_distinct)
    else:
        nodes = [node.left, node.right]
    blocks = [_arm(arm, replace(surroundings, is_outermost=False)) for arm in nodes]
    if not blocks[0].outputs:
        raise refuse("a set operation of rows without columns")
    arms, conditions = _project_arms(blocks, context)
    same = _cast_arms(arms, context)
    operator: Operator
    if isinstance(node, exp.Union):
        operator = Distinct(UnionAll(same)) if is_distinct else UnionAll(same)
    else:
        kind = SetKind.INTERSECT if isinstance(node, exp.Intersect) else SetKind.EXCEPT
        operator = SetOperation(same[0], same[1], kind, not is_distinct)
    shown = zip(_names(node), operator.columns, strict=False)
    outputs = tuple((name, column(c.name)) for name, c in shown)
    renamed = {old.name: new.name for old, new in zip(arms[0].columns, operator.columns, strict=True)}
    own = tuple(
        condition.substitute({old: column(new) for old, new in renamed.items()}) for condition in conditions
    )
    return Block(operator, outputs, own, order=order_of_several([block.order for block in blocks]))


def _arm(node: exp.Expr, surroundings: Surroundings) -> Block:
    block = surroundings.analyse(node, surroundings)
    return total_over_domain(block, surroundings) if block.is_total else block


def _project_arms(blocks: list[Block], context: Context) -> tuple[list[Project], tuple[Expression, ...]]:
    """The arms as operators whose columns are the outputs and the keys of the correlation."""
    found = [
        correlation_keys(block.operator, block.correlated, "a set operation", context) for block in blocks
    ]
    if len({tuple(sorted(_outer_sides(own))) for own in found}) > 1:
        raise refuse_correlation("a set operation whose arms are correlated differently")
    arms: list[Project] = []
    conditions: tuple[Expression, ...] = ()
    for block, own in zip(blocks, found, strict=True):
        names = tuple(name for _, name in sorted(zip(_outer_sides(own), own.names, strict=True)))
        arm, renamed = project_with(replace(block, operator=own.operator), names, context)
        if not arms:
            conditions = own.renamed_conditions(renamed)
        arms.append(arm)
    return arms, conditions


def _outer_sides(own: CorrelationKeys) -> list[str]:
    """For each key the text of what it is equal to; conditions of the outer query alone differ per arm."""
    if len(own.names) != len(own.conditions):
        raise refuse_correlation("a set operation over such a correlation")
    return [f"{type(condition.node).__name__} {condition.node.expression}" for condition in own.conditions]


def _cast_arms(arms: list[Project], context: Context) -> tuple[Operator, ...]:
    """The arms with columns of the same types and forms, as PostgreSQL would cast them."""
    types: list[PgType] = []
    numbers = range(len(arms[0].columns))
    if all(len({arm.columns[n].type.text for arm in arms}) == 1 for n in numbers):
        types = [c.type for c in arms[0].columns]
    else:
        rows = " union all ".join(f"({_positional(arm)})" for arm in arms)
        types = context.types_of(f"({rows}) as t", [f"t.c{n}" for n in numbers])
    widened = [_common_column([arm.columns[n] for arm in arms], types[n], context) for n in numbers]
    return tuple(_cast(arm, widened, context, is_first=arm is arms[0]) for arm in arms)


def _positional(arm: Operator) -> str:
    listed = ", ".join(f"{quoted(c.name)} as c{n}" for n, c in enumerate(arm.columns))
    return f"select {listed} from ({postgres_sql(arm)}) as t"


def _common_column(columns: list[Column], pg_type: PgType, context: Context) -> Column:
    """The column that holds the values of all arms."""
    first = columns[0]
    name = context.unique(first.name)
    forms = {(c.carrier.spark, c.carrier.carry) for c in columns}
    if len(forms) == 1:
        back = carrier_of(pg_type) if pg_type.text != first.type.text else first.carrier
        carrier = replace(
            first.carrier, pg_type=pg_type.text, restore=back.restore, input_type=back.input_type
        )
        return Column(name, pg_type, carrier)
    return Column(name, pg_type, carrier_of(pg_type))


def _cast(arm: Project, wide: list[Column], context: Context, *, is_first: bool) -> Operator:
    values = []
    for own, wanted in zip(arm.columns, wide, strict=True):
        is_same = own.type.text == wanted.type.text and _form(own) == _form(wanted)
        is_wider = own.type.base == wanted.type.base and _form(own) == _form(wanted)
        cast = exp.Cast(
            this=column(own.name).node,
            to=exp.DataType.build(wanted.type.text, dialect="postgres", udt=True),
        )
        values.append(column(own.name) if is_same or is_wider else Expression(cast))
    if not is_first and all(value.column is not None for value in values):
        return arm
    names = wide if is_first else [replace(c, name=context.unique(c.name)) for c in wide]
    return Project(arm, tuple(names), tuple(values))


def _form(own: Column) -> tuple[str, str]:
    return own.carrier.spark, own.carrier.carry


def _arms(node: exp.Expr, distinct: bool) -> list[exp.Expr]:
    """The arms of a chain of unions of one kind."""
    bare = node.this if isinstance(node, exp.Subquery) else node
    is_cut = any(part.args.get(clause) for part in (node, bare) for clause in _CUTS)
    if isinstance(bare, exp.Union) and bool(bare.args["distinct"]) == distinct and not is_cut:
        return _arms(bare.left, distinct) + _arms(bare.right, distinct)
    return [node]


def _names(node: exp.Expr) -> list[str]:
    while isinstance(node, (exp.SetOperation, exp.Subquery)):
        node = node.this
    if isinstance(node, exp.Values):
        return [f"column{n + 1}" for n in range(len(node.expressions[0].expressions))]
    return [item.alias_or_name for item in node.expressions]
