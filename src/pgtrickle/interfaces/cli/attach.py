"""The commands `attach`, `detach`, `declare` and `attached`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rich.console import RenderableType
from rich.text import Text
from typer import Argument, Option

from pgtrickle.commands import attached as command
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.fitting_table import FittingTable
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import output, print_json, say

Alias = Annotated[
    str, Argument(show_default=False, metavar="ALIAS", help="What the database is called here.")
]
Reference = Annotated[
    str,
    Argument(
        show_default=False,
        metavar="REFERENCE",
        help="The name of the database in the configuration of the sidecar.",
    ),
]
CdcMode = Annotated[
    str,
    Option(
        "--cdc-mode",
        metavar="MODE",
        help="How its changes are captured: trigger, or wal. With wal, nothing is installed there.",
    ),
]
Schema = Annotated[
    str, Argument(show_default=False, metavar="SCHEMA", help="The schema of the table in that database.")
]
Table = Annotated[str, Argument(show_default=False, metavar="TABLE", help="The name of the table there.")]


def attach(
    alias: Alias, reference: Reference, cdc_mode: CdcMode = "trigger", dsn: Dsn = "", json: Json = False
) -> None:
    """Attach another database by an alias.

    Queries then name its tables as alias.schema.table. The sidecar must know its address.
    """
    command.attach(dsn, alias, reference, cdc_mode)
    if json:
        print_json({"alias": alias, "reference": reference, "cdc_mode": cdc_mode, "is_attached": True})
        return
    say([f"Queries can read tables of {reference} as {alias}.schema.table."])


def detach(alias: Alias, dsn: Dsn = "", json: Json = False) -> None:
    """Forget an attached database."""
    command.detach(dsn, alias)
    if json:
        print_json({"alias": alias, "is_attached": False})
        return
    say([f"{alias} is no longer attached."])


def declare(alias: Alias, schema: Schema, table: Table, dsn: Dsn = "", json: Json = False) -> None:
    """Let queries read a table of an attached database.

    It prints the name of the stand-in, on which other roles need SELECT. `pgtrickle create` declares the
    tables that it needs, if you may.
    """
    stand_in = command.declare(dsn, alias, schema, table)
    if json:
        print_json({"alias": alias, "schema": schema, "table": table, "stand_in": stand_in})
        return
    say([f"{alias}.{schema}.{table} is declared. Others need: grant select on {stand_in} to ROLE"])


def attached(dsn: Dsn = "", json: Json = False) -> None:
    """Show the attached databases."""
    found = command.attached(dsn)
    if json:
        print_json(found)
        return
    output().print(_screen(found))


def _screen(found: Sequence[command.AttachedDatabaseStatus]) -> RenderableType:
    if not found:
        return Text("No attached databases. Attach one: pgtrickle attach ALIAS REFERENCE")
    screen = FittingTable("alias", "database", "capture", "tables", "followed until", "problem")
    for one in found:
        since = "" if one.failing_since is None else f"since {formatting.moment(one.failing_since)}"
        screen.add_row(
            Text(one.alias),
            Text(one.reference),
            Text(one.cdc_mode),
            Text(str(one.tables)),
            Text("" if one.followed_at is None else formatting.moment(one.followed_at)),
            Text(one.last_error or since),
        )
    return screen
