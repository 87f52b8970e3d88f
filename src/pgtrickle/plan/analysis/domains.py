"""A subquery evaluated for all values that the surrounding query asks it with.

Where a correlation is no equality that could be a key, the distinct values of the outer columns are
joined into the subquery. They are its keys then, and each outer row finds its answer by its own values.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.model.source import PgType
from pgtrickle.plan.analysis.block import Block, Domain, Surroundings
from pgtrickle.plan.analysis.columns import result_column
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.copying import copy_operator, rename_columns
from pgtrickle.plan.analysis.scalars import attach_total
from pgtrickle.plan.analysis.scope import Scope
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import Column, Distinct, Filter, Operator, Project
from pgtrickle.plan.properties import is_nullable, narrowest
from pgtrickle.plan.refusals import Correlated, refuse_correlation

PLAIN = frozenset(
    {
        "boolean", "smallint", "integer", "bigint", "text", "character varying", "uuid", "date", "bytea",
        "name", "timestamp without time zone", "timestamp with time zone", "time without time zone", "oid",
    }
)  # fmt: skip
"""Types whose equal values cannot be told apart."""

_WRITTEN_ALIKE = frozenset({"numeric", "character", "jsonb", "inet", "cidr", "time with time zone"})
"""Other types that are written alike under any settings."""


def over_domain(
    query: exp.Expr, operator: Operator, scope: Scope, surroundings: Surroundings, refusal: Correlated
) -> Block:
    """The block of a query that reads columns of the operator; raises the refusal if it reads none."""
    context = surroundings.context
    names = _outer_names(query, operator, scope)
    if not names:
        raise refusal
    domain = _domain(narrowest(operator, set(names)), names, context)
    inner = replace(surroundings, outer=scope, domain=domain)
    return inner.analyse(query, inner)


def _outer_names(query: exp.Expr, operator: Operator, scope: Scope) -> tuple[str, ...]:
    """The columns of the operator that the query reads; names of tables differ between the queries."""
    found: dict[str, None] = {}
    for reference in query.find_all(exp.Column):
        meant = scope.find_named(reference)
        for name in sorted(meant.columns & operator.names) if meant else ():
            found[name] = None
    return tuple(found)


def _domain(operator: Operator, names: tuple[str, ...], context: Context) -> Domain:
    copy, fresh_names = copy_operator(operator, context)
    values: list[Expression] = []
    columns: list[Column] = []
    pairs: list[tuple[str, str]] = []
    conditions: list[Expression] = []
    for name in names:
        own = copy.column(fresh_names[name])
        if not own.type.has_equality:
            raise refuse_correlation(f"a correlation by {own.name} of type {own.type.text}")
        fresh = Column(context.unique(own.name), own.type, own.carrier)
        columns.append(fresh)
        values.append(column(own.name))
        pairs.append((name, fresh.name))
        outer, inner = column(name), column(fresh.name)
        if own.type.base not in PLAIN or is_nullable(copy, own.name):
            # as text, which null has too here, and 1.0 and 1.00 not the same
            values.append(_text(column(own.name), own.type))
            columns.append(result_column(context, f"{own.name} as text", values[-1], copy))
            outer, inner = _text(outer, own.type), column(columns[-1].name)
        conditions.append(Expression(exp.EQ(this=inner.node, expression=outer.node)))
    distinct = Distinct(Project(copy, tuple(columns), tuple(values)))
    return Domain(distinct, tuple(pairs), tuple(conditions))


def place_domain(domain: Domain, scope: Scope, context: Context) -> tuple[Domain, Scope]:
    """The domain as a relation of one block, and the outer scope as that block sees it."""
    operator, names = copy_operator(domain.operator, context)
    columns = tuple((outer, names[own]) for outer, own in domain.columns)
    conditions = tuple(rename_columns(condition, names) for condition in domain.conditions)
    known = {outer: column(own) for outer, own in columns}
    before = scope.translate

    def translate_column(expression: Expression) -> Expression:
        return (before(expression) if before else expression).substitute(known)

    outer = Scope(scope.relations, scope.merged, scope.outer, translate_column)
    return Domain(operator, columns, conditions), outer


def total_over_domain(block: Block, surroundings: Surroundings) -> Block:
    """An aggregate without GROUP BY with its row for each value that it is asked with, matched or not."""
    if surroundings.domain is None or surroundings.outer is None:
        raise refuse_correlation("a correlated aggregate in a set operation")
    context = surroundings.context
    own, _ = place_domain(surroundings.domain, surroundings.outer, context)
    known = {outer: column(name) for outer, name in own.columns}
    asked = replace(block, correlated=tuple(c.substitute(known) for c in block.correlated))
    attached = attach_total(own.operator, asked, context)
    operator = attached.operator
    if attached.is_there is not None:
        operator = Filter(operator, attached.is_there.substitute(known))
    outputs = tuple((name, e.substitute(known)) for name, e in attached.outputs)
    return Block(operator, outputs, own.conditions)


def _text(value: Expression, pg_type: PgType) -> Expression:
    text: exp.Expr = exp.Paren(this=value.node.copy())
    if pg_type.base in PLAIN | _WRITTEN_ALIKE:
        text = exp.Cast(this=text, to=exp.DataType.build("text", dialect="postgres"))
    else:
        # other types may have a cast to text of their own, or as many digits as a setting says
        function = exp.Anonymous(this="value_text", expressions=[text])
        text = exp.Dot(this=exp.to_identifier("pgtrickle_internal"), expression=function)
    filled = exp.DPipe(this=exp.Literal.string("="), expression=text)
    return Expression(exp.Coalesce(this=filled, expressions=[exp.Literal.string("")]))
