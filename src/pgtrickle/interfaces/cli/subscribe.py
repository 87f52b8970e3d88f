"""The commands `subscribe`, `unsubscribe` and `subscriptions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from rich.console import RenderableType
from rich.text import Text
from typer import Argument

from pgtrickle.commands import subscriptions as command
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.fitting_table import FittingTable
from pgtrickle.interfaces.cli.options import Dsn, Json, Name
from pgtrickle.interfaces.cli.printing import output, print_json, say

Channel = Annotated[
    str, Argument(show_default=False, metavar="CHANNEL", help="The channel, exactly as you give it.")
]


def subscribe(name: Name, channel: Channel, dsn: Dsn = "", json: Json = False) -> None:
    """Notify a channel when a refresh changes a stream table.

    Programs receive the notifications with LISTEN. They tell how many rows were inserted and deleted.
    """
    command.subscribe(dsn, name, channel)
    if json:
        print_json({"name": name, "channel": channel, "is_subscribed": True})
        return
    say([f"Refreshes that change {name} notify the channel {channel}."])


def unsubscribe(name: Name, channel: Channel, dsn: Dsn = "", json: Json = False) -> None:
    """No longer notify a channel of refreshes."""
    command.unsubscribe(dsn, name, channel)
    if json:
        print_json({"name": name, "channel": channel, "is_subscribed": False})
        return
    say([f"Refreshes of {name} no longer notify the channel {channel}."])


def subscriptions(dsn: Dsn = "", json: Json = False) -> None:
    """Show the channels that refreshes notify."""
    found = command.subscriptions(dsn)
    if json:
        print_json(found)
        return
    output().print(_screen(found))


def _screen(found: Sequence[command.Subscription]) -> RenderableType:
    if not found:
        return Text("No channels. Subscribe one: pgtrickle subscribe NAME CHANNEL")
    screen = FittingTable("stream table", "channel", "subscribed by", "since", "notified")
    for one in found:
        screen.add_row(
            Text(one.stream_table),
            Text(one.channel),
            Text(one.subscribed_by),
            Text(formatting.moment(one.subscribed_at)),
            Text("yes" if one.is_notified else "no: the role may not read it"),
        )
    return screen
