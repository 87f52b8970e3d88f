"""The commands about publications: `publish`, `unpublish`, `publications` `track` and `untrack`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rich.console import RenderableType
from rich.text import Text
from typer import Argument, Option

from pgtrickle.commands import publications as command
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.fitting_table import FittingTable
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import output, print_json, say, warn

PublicationName = Annotated[
    str | None,
    Option(
        "--publication",
        show_default="pgt_pub_ and the name of the stream table",
        metavar="NAME",
        help="The name of the publication.",
    ),
]
Slot = Annotated[
    str, Argument(show_default=False, metavar="SLOT", help="The replication slot of the subscription.")
]


def publish(name: Name, publication: PublicationName = None, dsn: Dsn = "", json: Json = False) -> None:
    """Publish a stream table by logical replication.

    Subscribers receive the rows that each refresh inserts, updates and deletes.
    """
    made = command.publish(dsn, name, publication)
    if json:
        print_json(made)
        return
    for notice in made.notices:
        warn(notice)
    say([f"Published {made.name}: create subscription … publication {made.publication}"])


def unpublish(name: Name, dsn: Dsn = "", json: Json = False) -> None:
    """Drop the publication that publish has created."""
    notices = command.unpublish(dsn, name)
    if json:
        print_json({"name": name, "notices": notices})
        return
    for notice in notices:
        warn(notice)
    say([f"{name} is no longer published by pgtrickle."])


def publications(dsn: Dsn = "", json: Json = False) -> None:
    """Show who receives stream tables and how far they are."""
    found = command.publications(dsn)
    if json:
        print_json(found)
        return
    output().print(_screen(found))


def track(name: Name, slot: Slot, dsn: Dsn = "", json: Json = False) -> None:
    """Track how far a subscriber of a stream table is."""
    command.register_subscriber(dsn, name, slot)
    if json:
        print_json({"name": name, "slot": slot, "is_tracked": True})
        return
    say([f"Slot {slot} reads {name}. `pgtrickle publications` shows how far it is."])


def untrack(name: Name, slot: Slot, dsn: Dsn = "", json: Json = False) -> None:
    """No longer track a subscriber of a stream table."""
    command.unregister_subscriber(dsn, name, slot)
    if json:
        print_json({"name": name, "slot": slot, "is_tracked": False})
        return
    say([f"Slot {slot} is no longer tracked for {name}. The slot itself is unchanged."])


def _screen(found: Sequence[command.PublicationStatus]) -> RenderableType:
    if not found:
        return Text("No stream table is published. Publish one: pgtrickle publish NAME")
    headers = ("stream table", "publication", "slot", "state", "bytes behind", "late since")
    screen = FittingTable(*headers, right=("bytes behind",))
    for one in found:
        screen.add_row(
            Text(one.stream_table),
            Text(one.publication or ""),
            Text(one.slot or ""),
            Text(one.slot_state or "no subscriber known"),
            Text("" if one.lag_bytes is None else formatting.count(one.lag_bytes)),
            Text(formatting.moment(one.since) if one.since else ""),
        )
    return screen
