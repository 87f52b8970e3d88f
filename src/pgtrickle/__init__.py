"""Stream tables for PostgreSQL: query results that follow their sources, computed on Spark."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgtrickle.interfaces.connect import connect
    from pgtrickle.interfaces.python import Trickle

__all__ = ["Trickle", "__version__", "connect"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load the Python interface when it is first asked for: most of our own modules do not need it."""
    if name in ("Trickle", "connect"):
        return getattr(import_module("pgtrickle.interfaces.connect"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
