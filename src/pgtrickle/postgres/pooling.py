"""What stands between us and the server."""

from __future__ import annotations

from enum import Enum


class Pooling(Enum):
    """What is known of the way to the server before anybody looks; AUTO looks."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"
