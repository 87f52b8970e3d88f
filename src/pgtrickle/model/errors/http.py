"""Errors of the HTTP server: how it is reached, and who may do what."""

from __future__ import annotations

from pgtrickle.model.errors.error import PgTrickleError


class HttpUnavailable(PgTrickleError):
    """The HTTP server cannot start.

    Cause: its packages are not installed, or another process listens on its port.
    Remedy: `pip install 'pgtrickle[http]'`, or give `--http` another port.
    """

    code, sqlstate, http_status, exit_code = "PGT-H001", "TH001", 503, 3


class TokenNeeded(PgTrickleError):
    """The request needs the token of the HTTP server, and has none or a wrong one.

    Cause: no `Authorization: Bearer …` header and no session, or a session that has expired.
    Remedy: send the token, or sign in on the page. `pgtrickle run` prints where the token is.
    """

    code, sqlstate, http_status, exit_code = "PGT-H002", "TH002", 401, 3


class RequestRefused(PgTrickleError):
    """The request comes from another site, or names a host that the server does not answer for.

    Cause: a page of another origin sent it, or the name in the address is not one of the server.
    Remedy: open the address that `pgtrickle run` prints. Allow other names with `--http-host`.
    """

    code, sqlstate, http_status, exit_code = "PGT-H003", "TH003", 403, 3


class TooManyAttempts(PgTrickleError):
    """Too many wrong tokens came from one address.

    Cause: a client uses an old token, or somebody guesses.
    Remedy: wait a minute, then use the right token.
    """

    code, sqlstate, http_status, exit_code = "PGT-H004", "TH004", 429, 3


class RequestTooLarge(PgTrickleError):
    """The body of the request is larger than the server accepts.

    Cause: the body has more than 1 MB.
    Remedy: send less, or use the command line.
    """

    code, sqlstate, http_status, exit_code = "PGT-H005", "TH005", 413, 2


class UnknownAddress(PgTrickleError):
    """The HTTP server has nothing at this address.

    Cause: the path is misspelt, or a name in it is not URL-encoded.
    Remedy: `/api/v1/openapi.json` lists all paths.
    """

    code, sqlstate, http_status, exit_code = "PGT-H006", "TH006", 404, 2


class WrongMethod(PgTrickleError):
    """The address exists, but not for this method.

    Cause: a GET for something that needs a POST, or the reverse.
    Remedy: `/api/v1/openapi.json` lists the methods of each path.
    """

    code, sqlstate, http_status, exit_code = "PGT-H007", "TH007", 405, 2


class BadRequest(PgTrickleError):
    """The body or a parameter of the request is not what the address takes.

    Cause: a field is missing, unknown or of another type, or the body is not JSON.
    Remedy: correct the fields that the error names; `/api/v1/openapi.json` describes each of them.
    """

    code, sqlstate, http_status, exit_code = "PGT-H008", "TH008", 422, 2


class ServerBusy(PgTrickleError):
    """The HTTP server carries out as many commands as it can, and no more can wait.

    Cause: many long commands, or a database that answers slowly.
    Remedy: try again in a moment.
    """

    code, sqlstate, http_status, exit_code = "PGT-H009", "TH009", 503, 4


class AnswerTimedOut(PgTrickleError):
    """The command takes longer than the HTTP server waits. It goes on.

    Cause: a large stream table, or a lock that another session holds.
    Remedy: look at the status later, or use the command line, which waits longer.
    """

    code, sqlstate, http_status, exit_code = "PGT-H010", "TH010", 504, 4
