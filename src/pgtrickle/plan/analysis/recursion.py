"""WITH RECURSIVE: a query that reads its own rows."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.plan.analysis.block import Block, Named, Outputs, Surroundings
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.domains import PLAIN
from pgtrickle.plan.analysis.ordering import project_outputs
from pgtrickle.plan.analysis.with_clause import with_names
from pgtrickle.plan.carriers import carrier_of
from pgtrickle.plan.expressions import column
from pgtrickle.plan.operators import Column, Itself, Operator, Project, Recursive
from pgtrickle.plan.refusals import Correlated, refuse


def recursion(name: str, named: Named) -> Block:
    """The rows of a recursive WITH query; its own name stands for the rows of the step before."""
    query, around = named.query, named.surroundings
    if clause := query.args.get("with_"):
        around = with_names(clause, around)
    if not isinstance(query, exp.Union):
        raise refuse("a recursion that is no union")
    context = around.context
    first = _analyse_term(query.left, around)
    names = [*named.columns, *(own for own, _ in first.outputs[len(named.columns) :])]
    base = _name_columns(first, names, context)
    if named.met_by is not None:
        _require_plain(base.columns[names.index(named.met_by)])
    itself = Itself(context.unique(name), _columns(names, base, context))
    given = replace(named, given=Block(itself, _outputs(names, itself)))
    step = _name_columns(
        _analyse_term(query.right, replace(around, named={**around.named, name: given})), names, context
    )
    is_all = not query.args["distinct"]
    _require_evaluable(step, itself, is_all=is_all)
    operator = Recursive(base, step, itself.name, _columns(names, base, context), is_all)
    return Block(operator, _outputs(names, operator))


def _analyse_term(node: exp.Expr, around: Surroundings) -> Block:
    """A term of the recursion, which must not read a surrounding query."""
    refusal = refuse("a recursive WITH query that reads a surrounding query")
    try:
        block = around.analyse(node, around)
    except Correlated:
        raise refusal from None
    is_alone = all(expression.columns <= block.operator.names for _, expression in block.outputs)
    if block.correlated or block.is_total or not is_alone:
        raise refusal
    return block


def _name_columns(block: Block, names: list[str], context: Context) -> Project:
    """A term under the names of the recursion's columns: PostgreSQL gives those of a step no names."""
    shown = zip(names, (expression for _, expression in block.outputs), strict=True)
    return project_outputs(replace(block, outputs=tuple(shown)), context)


def _columns(names: list[str], base: Operator, context: Context) -> tuple[Column, ...]:
    """PostgreSQL lets the first term decide on the types."""
    pairs = zip(names, base.columns, strict=True)
    return tuple(Column(context.unique(name), own.type, carrier_of(own.type)) for name, own in pairs)


def _outputs(names: list[str], operator: Operator) -> Outputs:
    return tuple((name, column(own.name)) for name, own in zip(names, operator.columns, strict=True))


def _require_plain(met_by: Column) -> None:
    """Refuse to tell by its text whether a value has been met, if equal values can have several."""
    if met_by.type.base not in PLAIN or not met_by.type.deterministic:
        raise refuse(f"CYCLE by {met_by.name} of type {met_by.type.text}")


def _require_evaluable(step: Operator, itself: Itself, *, is_all: bool) -> None:
    """Refuse what PostgreSQL would refuse in the form that we write, or never finish."""
    found = [part for part in step.walk() if isinstance(part, Itself) and part.name == itself.name]
    if len(found) > 1:
        raise refuse("a correlated subquery of this kind in a recursive term")
    if is_all and all(isinstance(part, (Project, Itself)) for part in step.walk()):
        raise refuse("a recursion without an end")
