"""A full refresh by PostgreSQL itself: it evaluates the query, and the difference is applied."""

from __future__ import annotations

from typing import Any, cast

from pgtrickle.apply.applying import replace_from_query_staging
from pgtrickle.apply.storage import create_query_staging
from pgtrickle.model.stream_table import StreamTable
from pgtrickle.plan.program import Output
from pgtrickle.postgres.connection import sql
from pgtrickle.refresh.compiling import Compilation
from pgtrickle.refresh.differential import Effect
from pgtrickle.refresh.session import Session, evaluating_query


def recompute(session: Session, table: StreamTable, found: Compilation) -> Effect:
    """Let the stream table hold the query's answer in the session's snapshot."""
    columns = [Output(name, pg_type.text, "", pg_type.domain) for name, pg_type in found.outputs]
    staging = create_query_staging(session.write, table.id, columns)
    target = sql.Identifier(staging.schema, staging.name)
    query = sql.SQL(cast(Any, found.answer.rstrip().removesuffix(";")))
    session.write.execute(sql.SQL("truncate {}").format(target))
    with evaluating_query(session.write, table.settings):
        session.write.execute(sql.SQL("insert into {} {}").format(target, query))
    applied = replace_from_query_staging(session.write, table.name, table.match_columns, columns, staging)
    session.write.execute(sql.SQL("truncate {}").format(target))
    return Effect(applied, applied.inserted + applied.deleted)
