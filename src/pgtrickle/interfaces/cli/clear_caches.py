"""The command `clear-caches`."""

from __future__ import annotations

from pgtrickle.commands import caches
from pgtrickle.interfaces.cli import formatting
from pgtrickle.interfaces.cli.options import Dsn, Json
from pgtrickle.interfaces.cli.printing import print_json, say


def clear_caches(dsn: Dsn = "", json: Json = False) -> None:
    """Have every sidecar of the database compile every query anew, from its next tick or refresh on."""
    entries = caches.clear_caches(dsn)
    if json:
        print_json({"entries": entries})
        return
    noun = "query" if entries == 1 else "queries"
    say([f"Emptied the caches: the catalog had {formatting.count(entries)} compiled {noun}."])
