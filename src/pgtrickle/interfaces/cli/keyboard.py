"""Reads single keys from the terminal, where there is one."""

from __future__ import annotations

import os
import select
import sys
from types import TracebackType
from typing import Any, Final, Self

_SEQUENCES: Final = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1b[1~": "home",
    b"\x1b[F": "end",
    b"\x1b[4~": "end",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1bOH": "home",
    b"\x1bOF": "end",
    b"\x1b": "escape",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
}
_MOST: Final = 64


class Keyboard:
    """Keys as they are pressed, without echo. Without a terminal, no key is ever pressed."""

    def __init__(self) -> None:
        self._file = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        self._before: list[Any] | None = None
        self._unread: list[str] = []

    def __enter__(self) -> Self:
        if self._file is not None:
            # imported here, because Windows has neither
            import termios
            import tty

            self._before = termios.tcgetattr(self._file)
            tty.setcbreak(self._file)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None and self._before is not None:
            import termios

            termios.tcsetattr(self._file, termios.TCSADRAIN, self._before)

    def key(self, seconds: float) -> str | None:
        """The next key, by its name or as the character; None if none is pressed within `seconds`."""
        if self._unread:
            return self._unread.pop(0)
        if self._file is None:
            select.select([], [], [], seconds)
            return None
        ready, _, _ = select.select([self._file], [], [], seconds)
        if not ready:
            return None
        read = os.read(self._file, _MOST)
        if not read:
            # the terminal is gone
            raise EOFError
        self._unread = keys_of(read)
        return self._unread.pop(0) if self._unread else None


def keys_of(read: bytes) -> list[str]:
    """The keys in what a terminal has sent. Sequences that are not known are left out."""
    keys: list[str] = []
    while read:
        known = next((one for one in sorted(_SEQUENCES, key=len, reverse=True) if read.startswith(one)), None)
        if known is not None and not (known == b"\x1b" and len(read) > 1):
            keys.append(_SEQUENCES[known])
            read = read[len(known) :]
        elif read.startswith(b"\x1b"):
            read = b""
        else:
            text = read.partition(b"\x1b")[0]
            shown = text.decode(errors="ignore")
            first = next((index for index, one in enumerate(shown) if one in "\r\n\x7f\x08"), len(shown))
            keys += [one for one in shown[:first] if one.isprintable()]
            read = shown[first:].encode() + read[len(text) :]
    return keys
