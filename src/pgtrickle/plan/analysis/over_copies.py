"""A query as PostgreSQL is to evaluate it: over our copies of the sources that are compared with one.

What is read twice may have changed in between, and the copy is what the stream table has followed.
"""

from __future__ import annotations

from sqlglot import exp

from pgtrickle.model.names import RelationName, quoted
from pgtrickle.model.source import Source
from pgtrickle.plan.analysis.context import QueryDefinition
from pgtrickle.plan.analysis.parsing import parse
from pgtrickle.plan.expressions.dialect import to_sql
from pgtrickle.plan.limits import QueryLimits


def over_copies(definition: QueryDefinition, limits: QueryLimits) -> str:
    """The query, with copies in the place of their sources, also below views."""
    return to_sql(_replace_sources(definition.query, definition, limits) or parse(definition.query, limits))


def _replace_sources(text: str, definition: QueryDefinition, limits: QueryLimits) -> exp.Expr | None:
    """The text as a tree over copies; None if it reads none."""
    tree = parse(text, limits)
    has_copies = False
    for node in list(tree.find_all(exp.Table)):
        rows = _rows(RelationName(node.db, node.name), definition, limits)
        if rows is not None:
            has_copies = True
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
            node.replace(exp.Subquery(this=rows, alias=alias, joins=node.args.get("joins")))
    return tree if has_copies else None


def _rows(name: RelationName, definition: QueryDefinition, limits: QueryLimits) -> exp.Expr | None:
    source = definition.sources.get(name)
    if source is not None:
        return parse(_select_copy(source), limits) if source.copy else None
    view = definition.views.get(name)
    return _replace_sources(view, definition, limits) if view else None


def _select_copy(source: Source) -> str:
    """All columns of the source, in its own order, from its copy."""
    columns = ", ".join(f"c.{quoted(column.name)}" for column in source.columns)
    return f"select {columns} from {source.table.sql} as c"
