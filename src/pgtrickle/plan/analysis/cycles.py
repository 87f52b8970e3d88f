"""CYCLE: a recursion that keeps the path to each of its rows, and makes nothing of one that met itself."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from pgtrickle.plan.refusals import refuse

_PATH = exp.to_identifier("path of the cycle", quoted=True)
"""No query can name it: the path that PostgreSQL keeps is an array of rows, ours of texts."""

_REFUSED = ("distinct", "group", "having", "limit", "offset", "windows")


def with_cycles(query: exp.CTE, clause: exp.Expr) -> exp.Expr:
    """The recursive query with the columns of its CYCLE clause, spelled out as PostgreSQL would."""
    union: exp.Expr = query.this.copy()
    base, step = union.this, union.expression
    if not isinstance(base, exp.Select) or not isinstance(step, exp.Select):
        raise refuse("CYCLE in a recursion of other than two SELECTs")
    if any(step.args.get(part) for part in _REFUSED):
        raise refuse("CYCLE in a recursion whose second SELECT has groups or a limit")
    if clause.args.get("to"):
        raise refuse("CYCLE with values of its own")
    position, itself = _position(query, clause.this.name), _alias_of(step, query.alias)
    here, there = (_text(term.expressions[position]) for term in (base, step))
    mark, path = (exp.column(name.copy(), itself) for name in (clause.expression, _PATH))
    base.append("expressions", exp.alias_(exp.false(), clause.expression.copy()))
    base.append("expressions", exp.alias_(exp.Array(expressions=[here]), _PATH.copy()))
    step.append("expressions", exp.EQ(this=there, expression=exp.Any(this=exp.Paren(this=path.copy()))))
    step.append("expressions", exp.DPipe(this=path, expression=exp.Array(expressions=[there.copy()])))
    step.where(exp.Not(this=mark), copy=False)
    return union


def _position(query: exp.CTE, name: str) -> int:
    names: Sequence[str] = [column.name for column in query.args["alias"].columns]
    first = query.this.this.expressions
    names = [*names, *(item.alias_or_name for item in first[len(names) :])]
    return names.index(name)


def _alias_of(step: exp.Select, name: str) -> str:
    """Under which name the second SELECT reads the recursion: PostgreSQL wants that in its own FROM."""
    tables = step.find_all(exp.Table)
    return next(table.alias_or_name for table in tables if not table.db and table.name == name)


def _text(item: exp.Expr) -> exp.Expr:
    """A value as text that null has too: rows with null in the same place are the same to PostgreSQL.

    Of a row the output functions write each part; a cast of the value to text may be the user's own.
    """
    row = exp.Anonymous(this="ROW", expressions=[item.unalias().copy()])
    return exp.Paren(this=exp.Cast(this=row, to=exp.DataType.build("text", dialect="postgres")))
