"""What a difference between two states of an object means for a stream table that relies on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgtrickle.model.hints import call

Content = Mapping[str, Any]
TypeName = Callable[[int, int], str]
"""Returns the name of a type, given its OID and modifier."""

GONE = (
    "alter the query or drop the stream table; if it was created again, run select * from pgtrickle.repair()"
)


@dataclass(frozen=True, slots=True)
class Change:
    """What happened, as a sentence without its full stop.

    If it `stops` the stream table, only another change helps. Otherwise the query is analysed again, and the
    table is recomputed if its query can still be tracked.
    """

    what: str
    stops: bool = False
    hint: str | None = None
    is_lost_right: bool = False


def difference(
    kind: str, name: str, stored: Content, present: Content | None, type_name: TypeName
) -> Change | None:
    """How two fingerprints of one dependency differ; None if the difference is irrelevant."""
    noun = kind.replace("_", " ")
    if present is None:
        return Change(f"{noun} {name} was dropped", stops=True, hint=GONE)
    if stored["name"] != present["name"]:
        return Change(f"{noun} {name} is now called {present['name']}")
    if kind in ("view", "function"):
        return Change(f"{noun} {name} was replaced")
    return _table_difference(name, stored, present, type_name)


def ground_difference(
    kind: str, name: str, stored: Content, present: Content | None, type_name: TypeName
) -> Change | None:
    """How two contents of one object in the ground differ; None if the difference is irrelevant."""
    if kind == "itself":
        return _own_difference(name, stored, present, type_name)
    if kind == "source":
        # its dependency, or its parent, reports one that was dropped
        return _source_difference(name, stored, present) if present is not None else None
    if kind == "names":
        return Change("a function with the name of one that the query calls was created, moved or dropped")
    if kind == "view":
        return _view_difference(name, stored, present)
    if kind == "conversions":
        return _conversions_difference(stored, present or {})
    if kind == "text_search":
        return Change("a text search configuration or dictionary was created, altered or dropped")
    if kind == "schema":
        return _schema_difference(name, present)
    return _object_difference(kind, name, stored, present)


def _table_difference(name: str, stored: Content, present: Content, type_name: TypeName) -> Change | None:
    for number, column in stored["columns"].items():
        now = present["columns"].get(number)
        if now is None:
            return Change(f"column {column[0]} of {name} was dropped", stops=True, hint=GONE)
        if now[0] != column[0]:
            return Change(f"column {column[0]} of {name} is now called {now[0]}")
        if now != column:
            return Change(_column_difference(name, column, now, type_name))
    if stored["tree"] != present["tree"]:
        return Change(f"the partitions or children of {name} have changed")
    if stored["row_security"] != present["row_security"]:
        return Change(f"row-level security of {name} was switched")
    # a new key changes nothing, but the plan may rely on one that was dropped
    if any(key not in present["keys"] for key in stored["keys"]):
        return Change(f"{name} has lost a key")
    return None


def _own_difference(
    name: str, stored: Content, present: Content | None, type_name: TypeName
) -> Change | None:
    """Of the stream table itself: others may read it in any way, but only the sidecar may write its rows."""
    if present is None:
        return Change(f"table {name} was dropped", stops=True, hint=f"run {call('drop_stream_table', name)}")
    if present["children"]:
        return Change(
            f"a table inherits from {name}, and its rows are read as rows of the stream table",
            stops=True,
            hint="run alter table … no inherit",
        )
    if present["parents"]:
        return Change(
            f"{name} became a child or a partition of another table",
            stops=True,
            hint="detach it, or run alter table … no inherit",
        )
    if present["rules"]:
        return Change(
            f"{name} has the rule {present['rules'][0]}, which would change what a refresh writes",
            stops=True,
            hint="drop the rule",
        )
    if present["persistence"] != stored["persistence"]:
        return Change(f"{name} is no longer logged", stops=True, hint="run alter table … set logged")
    if present["owner"] != stored["owner"]:
        return Change(f"{name} has another owner")
    for number, column in stored["shape"].items():
        now = present["shape"].get(number)
        if now is None:
            return Change(f"column {column[0]} of {name} was dropped")
        if now[0] != column[0]:
            return Change(f"column {column[0]} of {name} is now called {now[0]}")
        if now != column:
            return Change(_column_difference(name, column, now, type_name), stops=True, hint="change it back")
    if len(present["shape"]) > len(stored["shape"]):
        return Change(f"{name} has a column more than its query")
    if present["guard"] != stored["guard"]:
        return Change(f"the guard of {name} was switched off, replaced or dropped")
    return _rewrite_difference(name, stored, present)


def _column_difference(name: str, before: list[Any], now: list[Any], type_name: TypeName) -> str:
    """What differs between two descriptions of a column: name, type, modifier, collation, expression."""
    column = f"column {before[0]} of {name}"
    if before[1:3] != now[1:3]:
        old, new = (type_name(int(part[1]), int(part[2])) for part in (before, now))
        return f"{column} had type {old} and now has type {new}"
    if before[3] != now[3]:
        return f"{column} has another collation"
    return f"{column} is generated by another expression"


def _source_difference(name: str, stored: Content, present: Content) -> Change | None:
    for part, what in (
        ("kind", f"{name} is another kind of relation now"),
        ("persistence", f"{name} was made logged or unlogged"),
        ("children", f"the partitions or children of {name} have changed"),
        ("parents", f"{name} was attached, detached, or became a child"),
        ("is_subscribed", f"a subscription of {name} was created or dropped"),
    ):
        if stored[part] != present[part]:
            return Change(what)
    for trigger, state in stored["triggers"].items():
        now = present["triggers"].get(trigger)
        if now != state:
            what = "dropped" if now is None else "off" if now[1] == "D" else "switched off, or replaced"
            return Change(f"trigger {trigger} of {name} was {what}: changes may have been missed")
    if stored["triggers"] != present["triggers"]:
        return Change(f"{name} has other capture triggers than before")
    return _rewrite_difference(name, stored, present)


def _rewrite_difference(name: str, stored: Content, present: Content) -> Change | None:
    """A new file alone is VACUUM FULL, CLUSTER or TRUNCATE; with a new row of a column, values may differ."""
    if stored["file"] == present["file"]:
        return None
    for column, version in stored["columns"].items():
        if present["columns"].get(column, version) != version:
            return Change(f"column {column} of {name} was rewritten")
    return None


def _view_difference(name: str, stored: Content, present: Content | None) -> Change | None:
    if present is None:
        # its dependency reports that
        return None
    for number, column in stored["columns"].items():
        now = present["columns"].get(number)
        if now != column:
            return Change(f"column {column} of view {name} is now called {now}")
    # a new column also changes the rule, which is compared as a dependency
    return None


def _conversions_difference(stored: Content, present: Content) -> Change:
    what = {
        "casts": "a cast of a type that the query uses was created or dropped",
        "found": "an operator that the query uses, or one of its name, was created, altered or dropped",
        "classes": "an operator class of a type that the query uses was created or dropped",
    }
    found = (sentence for part, sentence in what.items() if stored[part] != present.get(part))
    return Change(next(found, "casts or operators have changed"))


def _schema_difference(name: str, present: Content | None) -> Change:
    if present is None:
        return Change(f"schema {name} was dropped", stops=True, hint=GONE)
    return Change(f"schema {name} is now called {present['name']}")


def _object_difference(kind: str, name: str, stored: Content, present: Content | None) -> Change:
    noun = "operator family" if kind == "family" else kind
    if present is None:
        return Change(f"{noun} {name} was dropped")
    if kind == "function":
        return Change(f"function {name} was replaced")
    if kind == "collation":
        return Change(f"collation {name} has another version or definition")
    parts = ", ".join(_differing_parts(stored, present))
    return Change(f"{noun} {name} was altered ({parts})")


def _differing_parts(stored: Content, present: Content) -> Iterator[str]:
    for part in sorted(stored.keys() | present.keys()):
        if stored.get(part) != present.get(part):
            yield part
