"""WITH: the names that a block gives to queries."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pgtrickle.plan.analysis.block import Named, Surroundings
from pgtrickle.plan.analysis.cycles import with_cycles
from pgtrickle.plan.refusals import refuse


def with_names(clause: exp.With, surroundings: Surroundings) -> Surroundings:
    """The surroundings with the WITH queries of a block, each of which knows those before it."""
    cycle = clause.args.get("search")
    if clause.args.get("cycle") or (cycle is not None and cycle.args["kind"] != "CYCLE"):
        raise refuse("SEARCH")
    may_recurse = bool(clause.args.get("recursive"))
    for query in clause.expressions:
        columns = tuple(name.name for name in query.args["alias"].columns)
        around = surroundings.inside(surroundings.outer)
        is_recursive = may_recurse and _names_itself(query)
        named = Named(query.this, columns, around, is_recursive)
        if cycle is not None and query is clause.expressions[-1]:
            named = replace(named, query=with_cycles(query, cycle), met_by=cycle.this.name)
        surroundings = replace(surroundings, named={**surroundings.named, query.alias: named})
    return surroundings


def _names_itself(query: exp.CTE) -> bool:
    """Whether the query reads its own name: PostgreSQL writes tables with their schema, and only those."""
    return any(not table.db and table.name == query.alias for table in query.this.find_all(exp.Table))
