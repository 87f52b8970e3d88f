"""Simpler forms of a query: parts left out, or replaced by parts of themselves.

They need not mean the same, nor be valid: PostgreSQL refuses those that are not. What an order is made
of stays, since without it a query would have more than one answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

_OPTIONAL: Final = ("where", "having", "group", "distinct", "with_", "with", "side", "kind", "ordinality")
_LISTS: Final = ("expressions", "joins", "ifs", "grouping_sets", "cube", "rollup", "windows", "partition_by")
_VALUES: Final = (exp.Condition, exp.Query)


class What(Enum):
    """What is done to a node."""

    BECOMES = "it becomes one of its own parts"
    LOSES = "it loses an argument"
    LOSES_ONE = "it loses one of a list of arguments"
    UNLIMITED = "it shows all its rows"
    ALONE = "it becomes the whole query"
    ANY = "it joins all rows"
    GONE = "it goes, and its columns are NULL"


@dataclass(frozen=True, slots=True)
class _Change:
    """A change to the node at a place of the tree, and how many nodes that leaves out."""

    what: What
    place: int
    argument: str
    number: int
    leaves_out: int


def simpler(query: str) -> Iterator[str]:
    """Forms of the query that are shorter, those that leave out most first."""
    try:
        tree = parse_one(query, read="postgres")
        length = len(tree.sql(dialect="postgres"))
    except SqlglotError:
        return
    seen = set[str]()
    for change in sorted(_changes(tree), key=lambda change: -change.leaves_out):
        text = _changed(tree, change)
        if text and len(text) < length and text not in seen:
            seen.add(text)
            yield text


def _changes(tree: exp.Expr) -> Iterator[_Change]:
    for place, node in enumerate(tree.walk()):
        if not isinstance(node, exp.Order) and node.find_ancestor(exp.Order) is None:
            yield from _changes_of(node, place)
        if place and isinstance(node, exp.Select):
            yield _Change(What.ALONE, place, "", 0, _size(tree) - _size(node))


def _changes_of(node: exp.Expr, place: int) -> Iterator[_Change]:
    for name, argument in node.args.items():
        parts = argument if isinstance(argument, list) else [argument]
        for number, part in enumerate(parts):
            if isinstance(node, _VALUES) and isinstance(part, _VALUES):
                yield _Change(What.BECOMES, place, name, number, _size(node) - _size(part))
            if isinstance(argument, list) and name in _LISTS:
                yield _Change(What.LOSES_ONE, place, name, number, _size(part))
        if argument and name in _OPTIONAL:
            yield _Change(What.LOSES, place, name, 0, sum(_size(part) for part in parts))
    if isinstance(node, exp.Query) and node.args.get("limit"):
        yield _Change(What.UNLIMITED, place, "", 0, 2)
    if isinstance(node, exp.Join):
        yield _Change(What.GONE, place, "", 0, _size(node))
        yield _Change(What.ANY, place, "", 0, _size(node.args.get("on")))
    if isinstance(node, exp.Filter):
        yield _Change(What.BECOMES, place, "this", 0, _size(node.expression))


def _size(part: object) -> int:
    return sum(1 for _ in part.walk()) if isinstance(part, exp.Expr) else 1


def _changed(tree: exp.Expr, change: _Change) -> str | None:
    """The text of the tree with one node changed; nothing where that makes no tree."""
    copy = tree.copy()
    node = next(found for number, found in enumerate(copy.walk()) if number == change.place)
    try:
        if change.what is What.LOSES:
            node.set(change.argument, None)
        elif change.what is What.LOSES_ONE:
            node.args[change.argument].pop(change.number)
        elif change.what is What.UNLIMITED:
            for name in ("limit", "offset", "order"):
                node.set(name, None)
        elif change.what is What.ANY:
            node.set("on", exp.true())
        elif change.what is What.GONE:
            _remove(copy, node)
        elif change.what is What.ALONE:
            copy = _alone(copy, node)
        else:
            copy = _become(copy, node, change)
        return copy.sql(dialect="postgres")
    except (SqlglotError, ValueError, AttributeError, TypeError, IndexError):
        return None


def _alone(tree: exp.Expr, node: exp.Expr) -> exp.Expr:
    """One of the queries in the tree, with the common table expressions of the whole."""
    for name in ("with_", "with"):
        if tree.args.get(name) and not node.args.get(name):
            node.set(name, tree.args[name].copy())
    return node


def _remove(tree: exp.Expr, join: exp.Expr) -> None:
    alias = join.this.alias_or_name
    join.pop()
    for column in list(tree.find_all(exp.Column)):
        if column.table == alias:
            column.replace(exp.null())


def _become(tree: exp.Expr, node: exp.Expr, change: _Change) -> exp.Expr:
    argument = node.args[change.argument]
    part = (argument[change.number] if isinstance(argument, list) else argument).copy()
    if node is tree:
        return part if isinstance(part, exp.Expr) else tree
    node.replace(part)
    return tree
