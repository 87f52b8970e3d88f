"""The shop of the recovery tests, as an installation of version 0.1.0 leaves it."""

from __future__ import annotations

from tests.recovery.conftest import open_shop

__all__ = ["open_shop"]
