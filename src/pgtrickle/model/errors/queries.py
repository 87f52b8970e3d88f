"""Errors about queries."""

from __future__ import annotations

from pgtrickle.model.errors.commands import CommandRefused
from pgtrickle.model.errors.error import PgTrickleError


class PlanError(PgTrickleError):
    """A query cannot be planned.

    Cause: a query that pgtrickle reads differently from PostgreSQL.
    Remedy: none; pgtrickle recomputes such a query in full.
    """

    code, sqlstate, http_status, exit_code = "PGT-P001", "TP001", 422, 2


class UnsupportedQuery(PlanError):
    """The query has a part that cannot be maintained incrementally.

    Cause: the mode is DIFFERENTIAL, and the query has the part that the message names.
    Remedy: use the mode AUTO or FULL, or write that part in another way.
    """

    code, sqlstate, http_status, exit_code = "PGT-P002", "TP002", 422, 2


class BadQuery(CommandRefused):
    """PostgreSQL does not accept the query.

    Cause: a syntax error, an unknown column or function, or types that do not fit.
    Remedy: correct the query; psql shows the same error for it.
    """

    code, sqlstate, http_status, exit_code = "PGT-P003", "42601", 422, 2


class UnfitQuery(CommandRefused):
    """The query is valid, but cannot define a stream table in any mode.

    Cause: its result does not follow from the rows of its sources: a volatile function, a system catalog,
    a temporary table, and so on.
    Remedy: remove the part that the message names.
    """

    code, sqlstate, http_status, exit_code = "PGT-P004", "0A000", 422, 2


class OtherColumns(CommandRefused):
    """The query of a stream table no longer has the columns of its table.

    Cause: a source was altered, and with it the name or type of a column of the result.
    Remedy: run `pgtrickle alter NAME --query …` with the query; the table then gets the columns of the query.
    """

    code, sqlstate, http_status, exit_code = "PGT-P005", "TP005", 422, 2


class NotDeclared(CommandRefused):
    """The query reads a table of an attached database that is not known here.

    Cause: the table was not declared, or the sidecar has not created its stand-in, or could not.
    Remedy: run `select pgtrickle.declare_source(alias, schema, table)` as the owner of pgtrickle, while a
    sidecar is running.
    """

    code, sqlstate, http_status, exit_code = "PGT-P007", "TP007", 422, 2


class TooManyColumns(CommandRefused):
    """The query uses more columns of one table than can be captured.

    Cause: PostgreSQL limits the number of columns of a table.
    Remedy: use fewer columns.
    """

    code, sqlstate, http_status, exit_code = "PGT-P006", "54011", 422, 2
