"""Shows the same result again and again: on a terminal in place, otherwise one after the other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.poller import Polled, Poller
from pgtrickle.interfaces.cli.printing import output, print_json_line, warn
from pgtrickle.postgres.connection import Connection

T = TypeVar("T")

_KEY_SECONDS: Final = 0.25


def watch(
    dsn: str,
    read: Callable[[Connection], T],
    draw: Callable[[T], RenderableType],
    interval: float,
    *,
    is_json: bool,
) -> None:
    """Read and show until Ctrl-C; on a terminal, until q too. Go on if the database is away for a while."""
    poller: Poller[T] = Poller(dsn, read, interval)
    try:
        if is_json or not (output().is_terminal and sys.stdin.isatty()):
            _print_each(poller, draw, is_json)
        else:
            _redraw(poller, draw)
    except (KeyboardInterrupt, EOFError):
        return
    finally:
        poller.stop()


def _print_each(poller: Poller[T], draw: Callable[[T], RenderableType], is_json: bool) -> None:
    number, is_away = 0, False
    while True:
        polled = poller.latest()
        if polled.number == number:
            poller.wait(number, 1.0)
            continue
        number = polled.number
        if polled.trouble is not None:
            # said once, not at every attempt
            if not is_away:
                warn(polled.trouble)
            is_away = True
            continue
        is_away = False
        if polled.value is None:
            continue
        if is_json:
            print_json_line(polled.value)
        else:
            console = output()
            console.print(Text(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}", style="dim"))
            console.print(draw(polled.value))
            console.file.flush()


def _redraw(poller: Poller[T], draw: Callable[[T], RenderableType]) -> None:
    from rich.live import Live

    from pgtrickle.interfaces.cli.keyboard import Keyboard

    while (polled := poller.latest()).value is None:
        poller.wait(polled.number, _KEY_SECONDS)
    with Keyboard() as keyboard, Live(console=output(), screen=True, auto_refresh=False) as display:
        while True:
            polled = poller.latest()
            assert polled.value is not None
            display.update(Group(_head(polled), draw(polled.value)), refresh=True)
            if keyboard.key(_KEY_SECONDS) == "q":
                return


def _head(polled: Polled[T]) -> Text:
    now = Text(f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}  q quit", style="dim")
    if polled.trouble is not None:
        away = formatting.age(polled.away_seconds)
        now.append(f"  away for {away}, trying again: {polled.trouble}", style="bold red")
    return now
