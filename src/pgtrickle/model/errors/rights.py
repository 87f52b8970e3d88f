"""Errors about privileges and trust."""

from __future__ import annotations

from pgtrickle.model.errors.commands import CommandRefused
from pgtrickle.model.errors.error import PgTrickleError


class RightLost(PgTrickleError):
    """The owner of a stream table can no longer read a source of its query.

    Cause: a privilege was revoked, or a view that the query reads changed its owner.
    Remedy: grant the privilege again and run `pgtrickle resume NAME`, or drop the stream table.
    """

    code, sqlstate, http_status, exit_code = "PGT-A001", "TA001", 403, 1


class PermissionDenied(CommandRefused):
    """You, or the role of the sidecar, lack a privilege.

    Cause: a table, function or schema belongs to another role that has not granted access.
    Remedy: run the GRANT in the hint, or connect as the role it names.
    """

    code, sqlstate, http_status, exit_code = "PGT-A002", "42501", 403, 2


class UntrustedCode(CommandRefused):
    """A refresh would run code of another role with the rights of the sidecar.

    Cause: a function, trigger, index expression, constraint or foreign table that an untrusted role owns.
    Remedy: let an administrator take the function over, or remove it.
    """

    code, sqlstate, http_status, exit_code = "PGT-A003", "TA003", 403, 2


class HiddenRows(CommandRefused):
    """Row-level security hides rows that a refresh must see.

    Cause: a policy of a source or of the stream table applies to the role of its owner or of the sidecar.
    Remedy: give that role the attribute BYPASSRLS, or keep the allowed rows in a table of their own.
    """

    code, sqlstate, http_status, exit_code = "PGT-A004", "TA004", 403, 2
