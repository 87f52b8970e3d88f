"""One statement that writes weighted rows into a stream table, and nothing else of it.

Rows are folded first: what nets to zero is not written. A row to be removed is found through the
index on the hash of the whole row and decided by null-safe equality. Where rows have a key, one
that leaves and one that comes under the same key become an update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgtrickle.apply.composing import aliased, identifier, listed, numbered, relation, same, trusted
from pgtrickle.apply.finals import step, typed
from pgtrickle.model.errors import Diverged
from pgtrickle.model.names import RelationName
from pgtrickle.postgres.connection import Connection, sql

_SHOWN = 3
_VALUE_TEXT = "pgtrickle_internal.value_text("

# the input function of the type reads the text; a cast from text may be somebody's own
_READ = (
    "(select j.v[1] from json_to_record(json_build_object('v', textin(array_out(array[{}])))) as j(v {}[]))"
)
_READ_ARRAY = "(select j.v from json_to_record(json_build_object('v', {})) as j(v {}))"

_ALIKE_WHEN_EQUAL = frozenset(
    {"boolean", "smallint", "integer", "bigint", "text", "date", "uuid", "bytea"}
    | {"timestamp without time zone", "timestamp with time zone"}
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream table; `match` is the SQL by which its index hashes and compares it.

    That is the name itself, or the value's text where values of the type cannot be hashed.
    `domain` is what the column is declared by, if that is not `pg_type` itself.
    """

    name: str
    pg_type: str
    match: str
    domain: str | None = None

    @property
    def is_matched_by_text(self) -> bool:
        return self.match.endswith(")::text") or self.match.startswith(_VALUE_TEXT)

    @property
    def is_alike_when_equal(self) -> bool:
        """Whether values that are matched are the same to every reader; decimals of a fixed scale are."""
        is_fixed = self.pg_type.startswith("numeric(")
        return is_fixed or self.is_matched_by_text or self.pg_type in _ALIKE_WHEN_EQUAL

    def value(self, matched: sql.Composable) -> sql.Composable:
        """The column's value from what it is matched by."""
        if not self.is_matched_by_text:
            return matched
        if self.pg_type == "xml":
            return sql.SQL("xmlparse(content {})").format(matched)
        if not self.match.startswith(_VALUE_TEXT):
            return typed(matched, self.pg_type)
        return sql.SQL(_READ_ARRAY if self.pg_type.endswith("[]") else _READ).format(
            matched, trusted(self.pg_type)
        )


@dataclass(frozen=True, slots=True)
class Stored:
    """A stream table as it is written: its columns, and the names of those that are a key."""

    name: RelationName
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None

    @property
    def names(self) -> list[sql.SQL]:
        return [identifier(column.name) for column in self.columns]

    @property
    def matches(self) -> list[sql.SQL]:
        return [trusted(column.match) for column in self.columns]

    @property
    def compared(self) -> list[sql.Composable]:
        """The same without domains: operators of enums, arrays and ranges do not take one with its base."""
        pairs = zip(self.columns, self.matches, strict=True)
        return [
            typed(match, column.pg_type) if column.domain and not column.is_matched_by_text else match
            for column, match in pairs
        ]

    @property
    def rows(self) -> sql.Composed:
        """Everything it holds, as rows to be taken away."""
        return sql.SQL("select {}, -1 as weight from only {}").format(
            listed(aliased(self.names, numbered("o", len(self.columns)))), relation(self.name)
        )

    def values(self, letter: str, alias: str) -> list[sql.Composable]:
        """The columns' values from what a relation matches them by."""
        matched = numbered(letter, len(self.columns), alias)
        return [
            self._declared(column, column.value(part))
            for column, part in zip(self.columns, matched, strict=True)
        ]

    def _declared(self, column: Column, value: sql.Composable) -> sql.Composable:
        """The value as what the column is declared by.

        A query may give a null of a domain that allows none: an outer join does. PostgreSQL stores it (as in
        CREATE TABLE AS), but would refuse it in a cast. Only a null that has the type already is not checked.
        """
        if column.domain is None:
            return value
        return sql.SQL(
            "case when {value} is not distinct from null"
            " then (null::{table}).{name} else {value}::{domain} end"
        ).format(
            value=sql.SQL("({})").format(value),
            table=relation(self.name),
            name=identifier(column.name),
            domain=trusted(column.domain),
        )


@dataclass(frozen=True, slots=True)
class Applied:
    """How many rows came and went; an update is both."""

    inserted: int
    deleted: int


def write(
    connection: Connection,
    stored: Stored,
    steps: Sequence[sql.Composable],
    weighted: sql.Composable,
    problems: sql.Composable | None,
    parameters: Mapping[str, object],
) -> Applied:
    """Write the rows that `weighted` selects as `o1 … on, weight`; raise Diverged if they do not fit."""
    statement = sql.SQL(
        "with {steps} select (select count(*) from inserted), (select count(*) from updated),"
        " (select count(*) from deleted), coalesce(sum(greatest(n, 0)), 0), coalesce(-sum(least(n, 0)), 0),"
        " (select array_agg(problem) from (select problem from problems limit {shown}) p) from delta"
    ).format(
        steps=listed([*steps, *_steps(stored, weighted), step("problems", _problems(stored, problems))]),
        shown=_SHOWN,
    )
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None
    inserted, updated, deleted, came, went, found = row
    if found or (inserted + updated, deleted + updated) != (came, went):
        raise diverged(stored.name, found)
    return Applied(inserted + updated, deleted + updated)


def diverged(table: RelationName, problems: list[str] | None) -> Diverged:
    """The error for a table that does not fit the change of it."""
    if not problems:
        return Diverged(
            f"{table} did not take every row",
            hint=f"a trigger of its own suppresses rows: drop it, then run: pgtrickle repair {table}",
        )
    return Diverged(
        f"{table} does not hold what its changes say: {'; '.join(problems)}",
        hint=f"have it loaded anew: pgtrickle repair {table}",
        rows=problems,
    )


def _steps(stored: Stored, weighted: sql.Composable) -> list[sql.Composed]:
    """What is to change, then the writes.

    Nothing is joined to `found` but by the place of its row: how many rows it will have the planner
    cannot guess, and a nested loop would be quadratic.
    """
    return [
        step("weighted", weighted),
        step("folded", _folded(stored)),
        step("delta", _delta(stored)),
        step("found", _found(stored)),
        # each write waits for the one before it, so that a unique index never sees the new row first
        step("deleted", _deleted(stored)),
        step("updated", _updated(stored)),
        step("inserted", _inserted(stored)),
    ]


def _folded(stored: Stored) -> sql.Composed:
    """The net weight of each row, by what its columns are matched by."""
    count = len(stored.columns)
    values = numbered("o", count, "w")
    group_by: list[sql.Composable] = list(numbered("m", count, "x"))
    if stored.key is not None:
        # 1.0 and 1.00 are equal, yet a reader sees which of them stands there
        pairs = zip(stored.columns, values, strict=True)
        group_by += [_look(column).format(value) for column, value in pairs if not column.is_alike_when_equal]
    # in the innermost scope only the table's own names are seen, so theirs cannot meet ours
    return sql.SQL(
        "select {matched}, sum(w.weight)::bigint as n from weighted w"
        " cross join lateral (select {matches} from (select {named}) t) x"
        " group by {group_by} having sum(w.weight) <> 0"
    ).format(
        matched=listed(numbered("m", count, "x")),
        matches=listed(aliased(stored.matches, numbered("m", count))),
        named=listed(aliased(values, stored.names)),
        group_by=listed(group_by),
    )


def _look(column: Column) -> sql.SQL:
    """What tells equal values apart that a reader sees the difference of; a text only where it must be."""
    return sql.SQL("scale({})" if column.pg_type == "numeric" else "row({})::text")


def _delta(stored: Stored) -> sql.Composed:
    """The net rows; where one leaves and one comes under the same key, each `is_paired`.

    The leaving one of a pair has the values of the coming one in `x1 … xn`.
    """
    count = len(stored.columns)
    hashed = sql.SQL("hash_record_extended(row({}), 0) as h").format(listed(numbered("m", count)))
    columns = [sql.SQL("row_number() over () as id, n"), hashed, *numbered("m", count)]
    if stored.key is None:
        columns.append(sql.SQL("false as is_paired"))
        return sql.SQL("select {} from folded").format(listed(columns))
    alone = "count(*) over k = 2 and min(n) over k = -1 and max(n) over k = 1 as is_paired"
    coming = [sql.SQL("lead({}) over (k order by n)").format(matched) for matched in numbered("m", count)]
    columns += [sql.SQL(alone), *aliased(coming, numbered("x", count))]
    keys = [trusted(f"m{n}") for n, column in enumerate(stored.columns, start=1) if column.name in stored.key]
    by = sql.SQL("partition by {}").format(listed(keys)) if keys else sql.SQL("")
    return sql.SQL("select {} from folded window k as ({})").format(listed(columns), by)


def _found(stored: Stored) -> sql.Composed:
    """Each row that has to go, once with every stored copy of it, or once without any."""
    count = len(stored.columns)
    columns = [
        "-d.n as wanted, d.is_paired, t.tid",
        "row_number() over c as copy",
        "count(t.tid) over c as copies",
    ]
    coming = [] if stored.key is None else numbered("x", count, "d")
    return sql.SQL(
        "select {columns} from delta d left join (select ctid as tid,"
        " hash_record_extended(row({matches}), 0) as h, {named} from only {table}) t"
        " on t.h = d.h and {same} where d.n < 0 window c as (partition by d.id)"
    ).format(
        columns=listed([*map(trusted, columns), *numbered("m", count, "d"), *coming]),
        matches=listed(stored.matches),
        named=listed(aliased(stored.compared, numbered("m", count))),
        table=relation(stored.name),
        same=same(numbered("m", count, "t"), numbered("m", count, "d")),
    )


def _deleted(stored: Stored) -> sql.Composed:
    return sql.SQL(
        "delete from only {} t using found f"
        " where t.ctid = f.tid and f.copy <= f.wanted and not f.is_paired returning 1"
    ).format(relation(stored.name))


def _updated(stored: Stored) -> sql.Composable:
    if stored.key is None:
        return sql.SQL("select 1 where false")
    return sql.SQL(
        "update only {} t set ({}) = row({}) from found f where t.ctid = f.tid and f.copy = 1"
        " and f.is_paired and (select count(*) from deleted) >= 0 returning 1"
    ).format(relation(stored.name), listed(stored.names), listed(stored.values("x", "f")))


def _inserted(stored: Stored) -> sql.Composed:
    return sql.SQL(
        "insert into {} ({}) select {} from delta d cross join lateral generate_series(1, d.n)"
        " where d.n > 0 and not d.is_paired and (select count(*) from deleted) >= 0"
        " and (select count(*) from updated) >= 0 returning 1"
    ).format(relation(stored.name), listed(stored.names), listed(stored.values("m", "d")))


def _problems(stored: Stored, others: sql.Composable | None) -> sql.Composed:
    """A text for each row that should have been there to be removed, and what else is wrong."""
    missing = sql.SQL(
        "select f.wanted || ' x ' || left(row({})::text, 1000) || ' expected, found ' || f.copies as problem"
        " from found f where f.copies < f.wanted and f.copy = 1"
    ).format(listed(numbered("m", len(stored.columns), "f")))
    return sql.SQL("{} union all {}").format(missing, others) if others else missing
