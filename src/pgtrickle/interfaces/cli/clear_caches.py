"""The command `clear-caches`."""

from __future__ import annotations

from pgtrickle.commands import caches
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say


def clear_caches(dsn: Dsn = "", json: Json = False) -> None:
    """Make every sidecar compile every query again."""
    entries = caches.clear_caches(dsn)
    if json:
        print_json({"entries": entries})
        return
    compiled = formatting.counted(entries, "compiled query", "compiled queries")
    say([f"Cleared the caches: {compiled} removed from the catalog."])
