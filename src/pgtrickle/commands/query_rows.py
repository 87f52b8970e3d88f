"""Shows some rows of a query that was validated, with the rights of the role that would own it."""

from __future__ import annotations

from typing import Final

from pgtrickle.commands.as_owner import read_rows, reading_as
from pgtrickle.commands.validate import Validation
from pgtrickle.postgres.connection import sql
from pgtrickle.postgres.text_rows import as_text_array, cut

SECONDS: Final = 5.0


def query_rows(
    dsn: str, found: Validation, owner: str | None = None, limit: int = 10, seconds: float = SECONDS
) -> tuple[tuple[str | None, ...], ...]:
    """At most `limit` rows of a valid query, read only and within `seconds`.

    What is evaluated is the text that validation has printed and checked: it calls no volatile function, and
    no function of a role that is not trusted.
    """
    # the text is PostgreSQL's own print of the parsed query, not what a caller wrote
    query = as_text_array(sql.SQL(found.query), len(found.columns), limit)
    with reading_as(dsn, owner, seconds) as connection:
        return cut(read_rows(connection, query))
