"""The methods of `Trickle` for databases whose tables stream tables read."""

from __future__ import annotations

from pgtrickle.commands import attached
from pgtrickle.commands.attached import AttachedDatabaseStatus
from pgtrickle.model.records import Records


class Attached:
    """Attached databases, and the tables that were declared of them."""

    _dsn: str

    def attach(self, alias: str, reference: str, cdc_mode: str = "trigger") -> None:
        """Make another database known by an alias; queries read its tables as `alias.schema.table`.

        `reference` is the name of the database in the configuration of the sidecar. With the `cdc_mode` wal,
        its changes are decoded from its log, and nothing is installed there.

        >>> trickle.attach("crm", "customers")
        """
        attached.attach(self._dsn, alias, reference, cdc_mode)

    def detach(self, alias: str) -> None:
        """Forget an attached database. Refused while a stream table reads one of its tables.

        >>> trickle.detach("crm")
        """
        attached.detach(self._dsn, alias)

    def declare(self, alias: str, schema: str, table: str) -> str:
        """Let queries read a table of an attached database; return the name of its stand-in.

        `create` declares the tables that a query names, if you may. Other roles need SELECT on the stand-in.
        A sidecar must be running, since it creates the stand-in.
        """
        return attached.declare(self._dsn, alias, schema, table)

    def attached(self) -> Records[AttachedDatabaseStatus]:
        """The attached databases, and up to where each has been followed.

        >>> late = [one.alias for one in trickle.attached() if one.failing_since]
        """
        return Records(AttachedDatabaseStatus, attached.attached(self._dsn))

    # the names of the SQL functions and of the view
    attach_database = attach
    detach_database = detach
    declare_source = declare
    attached_databases = attached
