"""Errors of commands: names, options, states, locks."""

from __future__ import annotations

from pgtrickle.model.errors.error import PgTrickleError


class CommandRefused(PgTrickleError):
    """PostgreSQL refused a command for a reason that has no code of its own here.

    Cause: the message and the SQLSTATE are those of PostgreSQL.
    Remedy: look up the SQLSTATE in PostgreSQL's list of error codes.
    """

    code, sqlstate, http_status, exit_code = "PGT-S001", "TS001", 422, 2

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        detail: str | None = None,
        excerpt: str | None = None,
        refused_with: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, detail=detail, excerpt=excerpt)
        self.refused_with = refused_with
        """The SQLSTATE of PostgreSQL, if PostgreSQL refused it."""

    @property
    def reported_sqlstate(self) -> str:
        """The SQLSTATE of PostgreSQL if there is one."""
        return self.refused_with or self.sqlstate


class UnknownStreamTable(PgTrickleError):
    """There is no stream table of that name.

    Cause: the name is misspelt, its schema is not in the search_path, or the stream table was dropped.
    Remedy: `pgtrickle list` shows all of them; write `schema.name`.
    """

    code, sqlstate, http_status, exit_code = "PGT-S002", "TS002", 404, 2


class BadSchedule(CommandRefused):
    """The text is not a valid schedule.

    Cause: it is neither an interval, a cron expression, `calculated` nor `manual`, or it never occurs.
    Remedy: write `1s`, `5m`, `1h30m`, `*/5 * * * *`, `@hourly`, `calculated` or `manual`.
    """

    code, sqlstate, http_status, exit_code = "PGT-S003", "TS003", 422, 2


class Busy(PgTrickleError):
    """Another session holds a lock that is needed.

    Cause: a refresh, a long transaction, a backup or a migration uses the same table.
    Remedy: try again when the other session has finished.
    """

    code, sqlstate, http_status, exit_code = "PGT-S004", "55P03", 409, 4


class CyclicStreamTables(CommandRefused):
    """Stream tables depend on each other in a cycle, so none can be refreshed first.

    Cause: a query was altered so that it reads a stream table that reads it.
    Remedy: change the query of one of them.
    """

    code, sqlstate, http_status, exit_code = "PGT-S005", "42P19", 422, 2


class SourceGated(Busy):
    """A source is gated, so stream tables that depend on it are not refreshed.

    Cause: somebody ran `pgtrickle gate`, usually for a bulk load.
    Remedy: `pgtrickle ungate SOURCE`.
    """

    code, sqlstate, http_status, exit_code = "PGT-S006", "TS006", 409, 4


class Drained(Busy):
    """The database is drained: no refresh starts.

    Cause: somebody ran `pgtrickle drain`, usually before a shutdown or an upgrade.
    Remedy: `pgtrickle undrain`.
    """

    code, sqlstate, http_status, exit_code = "PGT-S007", "TS007", 409, 4


class BadStatement(CommandRefused):
    """A statement about stream tables cannot be parsed.

    Cause: a mistake in CREATE, ALTER, DROP or REFRESH STREAM TABLE, or another kind of statement.
    Remedy: correct it at the place that the message names; send other statements with psql.
    """

    code, sqlstate, http_status, exit_code = "PGT-S008", "TS008", 422, 2


class WaitsForTriggers(Busy):
    """A source has been locked whenever the sidecar tried to create triggers on it.

    Cause: transactions write to the source without a pause.
    Remedy: none is needed, the sidecar keeps trying; the message names the sessions in the way.
    """

    code, sqlstate, http_status, exit_code = "PGT-S009", "TS009", 409, 4


class UnknownRelation(CommandRefused):
    """A table or view does not exist.

    Cause: the name is misspelt, or the schema of the table is not in the search_path.
    Remedy: correct the name, or write `schema.name`.
    """

    code, sqlstate, http_status, exit_code = "PGT-S022", "42P01", 404, 2


class BadOption(CommandRefused):
    """An option does not take this value.

    Cause: a value outside the choices or limits of the option.
    Remedy: the hint lists what is allowed; so does the configuration page.
    """

    code, sqlstate, http_status, exit_code = "PGT-S011", "22023", 422, 2


class BadSetting(CommandRefused):
    """A setting of the process does not take this value.

    Cause: a wrong value on the command line, in an environment variable, or in `pgtrickle.connect`.
    Remedy: the hint says what it must be; the configuration page lists all settings.
    """

    code, sqlstate, http_status, exit_code = "PGT-S012", "TS012", 422, 2


class BadName(CommandRefused):
    """The text is not the name of a table.

    Cause: it has too many parts, is too long, or needs double quotes.
    Remedy: write `name` or `schema.name`, with double quotes around capitals and special characters.
    """

    code, sqlstate, http_status, exit_code = "PGT-S013", "42602", 422, 2


class NameTaken(CommandRefused):
    """A table, view or type of that name exists already.

    Cause: the name is in use in that schema.
    Remedy: choose another name, or replace a stream table with `pgtrickle create --or-replace`.
    """

    code, sqlstate, http_status, exit_code = "PGT-S014", "42P07", 409, 2


class UnknownSchema(CommandRefused):
    """A stream table cannot be created in that schema.

    Cause: the schema does not exist, or belongs to PostgreSQL or pgtrickle.
    Remedy: name a schema of your own.
    """

    code, sqlstate, http_status, exit_code = "PGT-S015", "3F000", 422, 2


class StillInUse(CommandRefused):
    """Something else depends on what is to be dropped.

    Cause: other stream tables or views read it.
    Remedy: drop those first, or drop all with `--cascade`.
    """

    code, sqlstate, http_status, exit_code = "PGT-S016", "2BP01", 409, 2


class WrongKind(CommandRefused):
    """The object is not of the kind that the command works on.

    Cause: for example, a view was gated instead of the tables that it reads.
    Remedy: name an object of the kind that the message asks for.
    """

    code, sqlstate, http_status, exit_code = "PGT-S017", "42809", 422, 2


class WrongState(CommandRefused):
    """An object is not in the state that the command needs.

    Cause: for example, a direct write to a stream table, or a stream table that is suspended or damaged.
    Remedy: the hint names the command that brings it into that state.
    """

    code, sqlstate, http_status, exit_code = "PGT-S018", "55000", 409, 2


class Cancelled(CommandRefused):
    """PostgreSQL canceled a statement.

    Cause: `statement_timeout`, or somebody called `pg_cancel_backend`.
    Remedy: try again, with a longer timeout if the statement needs one.
    """

    code, sqlstate, http_status, exit_code = "PGT-S019", "57014", 504, 2


class BadUsage(CommandRefused):
    """The command line is wrong.

    Cause: an unknown command or option, a missing argument, or options that exclude each other.
    Remedy: `pgtrickle COMMAND --help` shows what the command takes.
    """

    code, sqlstate, http_status, exit_code = "PGT-S020", "TS020", 422, 2


class WrongTransaction(CommandRefused):
    """A function was called in a transaction in which it cannot work.

    Cause: it waits for a sidecar, and the transaction would not see what the sidecar commits.
    Remedy: call it before the transaction begins, or in a transaction with READ COMMITTED.
    """

    code, sqlstate, http_status, exit_code = "PGT-S021", "25001", 409, 2


class ChangesNotKept(CommandRefused):
    """The changes of the stream table are not kept.

    Cause: the option `keep_changes` is off, which is the default.
    Remedy: `pgtrickle alter NAME --keep-changes 1d` keeps them from then on.
    """

    code, sqlstate, http_status, exit_code = "PGT-S023", "TS023", 409, 2


class ChangesGone(CommandRefused):
    """Changes after that point are no longer kept, or it is not a point of this stream table.

    Cause: the reader was away for longer than `keep_changes`, the stream table was created again, its columns
    changed, or its database was restored.
    Remedy: read the stream table again, together with its newest point, and continue from there.
    """

    code, sqlstate, http_status, exit_code = "PGT-S024", "TS024", 410, 2


class Suspended(CommandRefused):
    """The stream table is suspended: it is not refreshed until somebody resumes it.

    Cause: several refreshes failed in a row, or somebody suspended it. Its last error says why.
    Remedy: remove the cause, then run `pgtrickle resume NAME`.
    """

    code, sqlstate, http_status, exit_code = "PGT-S010", "TS010", 409, 1
