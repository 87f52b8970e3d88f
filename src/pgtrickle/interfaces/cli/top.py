"""`pgtrickle top`."""

from __future__ import annotations

import sys
from typing import Annotated

from typer import Option

from pgtrickle.commands import top as command
from pgtrickle.commands.top import Activity, Order, arrange, read_activity
from pgtrickle.interfaces.cli import top_screen
from pgtrickle.interfaces.cli.options import Dsn, Interval, Json
from pgtrickle.interfaces.cli.printing import output, print_json
from pgtrickle.interfaces.cli.top_view import TopView

_KEY_SECONDS = 0.25
"""How soon the screen shows that time passes, or that the database has answered."""

Once = Annotated[bool, Option("--once", help="Print once and exit, as without a terminal.")]
Sort = Annotated[
    Order,
    Option("--sort", "-s", metavar="|".join(order.value for order in Order), help="What to sort by."),
]
Pattern = Annotated[
    str | None,
    Option(
        "--filter",
        show_default=False,
        metavar="TEXT",
        help="Only stream tables whose name contains this text.",
    ),
]


def top(
    sort: Sort = Order.PROBLEMS,
    pattern: Pattern = None,
    interval: Interval = 1.0,
    once: Once = False,
    dsn: Dsn = "",
    json: Json = False,
) -> None:
    """Watch stream tables and sidecars live, problems first.

    Keys: q quits, the arrows and PgUp/PgDn select a row, s changes the order, / filters by name, Esc clears
    the filter, space polls at once. The line below the table describes the problem of the
    selected row. If the database goes away, the screen says so and resumes when it is back.
    """
    console = output()
    if json or once or not (console.is_terminal and sys.stdin.isatty()):
        activity = command.top(dsn, sort.value, pattern)
        if json:
            print_json(activity)
            return
        # the first lines at once: a thousand rows take a moment to lay out
        console.print(top_screen.head(activity))
        console.print(top_screen.whole(activity, console.width))
        return
    _watch(dsn, TopView(sort, pattern or ""), interval)


def _watch(dsn: str, view: TopView, interval: float) -> None:
    """Show the live screen until q or Ctrl-C."""
    from rich.live import Live

    from pgtrickle.interfaces.cli.keyboard import Keyboard
    from pgtrickle.interfaces.cli.poller import Poller

    console = output()
    poller: Poller[Activity] = Poller(dsn, read_activity, interval)
    try:
        # wrong addresses and missing installations end here, before the screen is taken
        while (polled := poller.latest()).value is None:
            poller.wait(polled.number, _KEY_SECONDS)
        with Keyboard() as keyboard, Live(console=console, screen=True, auto_refresh=False) as display:
            while not view.is_over:
                polled = poller.latest()
                assert polled.value is not None
                arranged = arrange(polled.value, view.order, view.pattern)
                width, height = console.size
                shown = top_screen.page(polled, arranged, view, width, height)
                display.update(shown, refresh=True)
                key = keyboard.key(_KEY_SECONDS)
                if key == " " and view.typing is None:
                    poller.poll_now()
                elif key is not None:
                    view = view.press(key, count=len(arranged.tables), page=height - top_screen.AROUND)
    except (KeyboardInterrupt, EOFError):
        return
    finally:
        poller.stop()
