"""Browser sessions: a browser that sends the token gets a cookie, which does not contain it."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Final

SESSION_SECONDS: Final = 12 * 3600
MOST_SESSIONS: Final = 100
"""With one more, the oldest ends."""
LOGIN_SECONDS: Final = 600
MOST_LOGINS: Final = 20


class Sessions:
    """Sessions and one-time codes, by the hash of their secret. Used in one thread, except `new_code`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ends: OrderedDict[bytes, float] = OrderedDict()
        self._codes: OrderedDict[bytes, float] = OrderedDict()

    def begin(self) -> str:
        """Begin a session; return its secret."""
        secret = secrets.token_urlsafe(32)
        _keep(self._ends, _hash(secret), self._clock() + SESSION_SECONDS, MOST_SESSIONS)
        return secret

    def is_open(self, secret: str) -> bool:
        """Whether this is the secret of a session that has not ended."""
        key = _hash(secret)
        end = self._ends.get(key)
        if end is None:
            return False
        if end <= self._clock():
            self._ends.pop(key, None)
            return False
        return True

    def end(self, secret: str) -> None:
        """End a session."""
        self._ends.pop(_hash(secret), None)

    def new_code(self) -> str:
        """A code that begins one session, within a few minutes."""
        code = secrets.token_urlsafe(32)
        _keep(self._codes, _hash(code), self._clock() + LOGIN_SECONDS, MOST_LOGINS)
        return code

    def use_code(self, code: str) -> bool:
        """Whether this code was valid. It is not any more."""
        end = self._codes.pop(_hash(code), None)
        return end is not None and end > self._clock()


def _keep(kept: OrderedDict[bytes, float], key: bytes, end: float, most: int) -> None:
    kept[key] = end
    while len(kept) > most:
        kept.popitem(last=False)


def _hash(secret: str) -> bytes:
    # a lookup by hash takes no time that depends on how much of the secret is right
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
