"""The command `alerts`."""

from __future__ import annotations

import json as json_text
from contextlib import suppress
from typing import Annotated

from typer import Option

from pgtrickle.commands import alerts as command
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import output, print_json, print_json_line

Since = Annotated[
    str | None,
    Option(
        "--since",
        show_default="one hour ago; with --follow, now",
        metavar="TIME",
        help="The moment to start from: a time such as '2026-05-01 12:00', or how long ago, such as 10min.",
    ),
]
Follow = Annotated[
    bool, Option("--follow", help="Keep printing new alerts until Ctrl-C. With --json, one line for each.")
]


def alerts(since: Since = None, follow: Follow = False, dsn: Dsn = "", json: Json = False) -> None:
    """Show the alerts of stream tables, oldest first.

    They are kept for a week, for programs that receive no notifications.
    """
    start = None if since is None else command.moment(dsn, since)
    if follow:
        with suppress(KeyboardInterrupt):
            for alert in command.follow_alerts(dsn, start):
                (print_json_line if json else _print)(alert)
        return
    found = command.alerts(dsn, start)
    if json:
        print_json(found)
        return
    for alert in found:
        _print(alert)
    if not found:
        output().print("No alerts.")


def _print(alert: command.Alert) -> None:
    details = " ".join(f"{name}={_text(value)}" for name, value in alert.details.items() if value is not None)
    line = f"{formatting.moment(alert.at)}  {alert.event}  {alert.stream_table or ''}  {details}"
    output().print(line.rstrip(), soft_wrap=True)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text.dumps(value, ensure_ascii=False)
