"""How the stored rows of a recursion change, by the derivations that a window lost and gained.

UNION: delete and rederive. What lost a derivation goes, with everything that is derived from it. Of that,
what can still be derived from rows that stay comes back. Then everything is added that is derived from what
came.

    gone = lost ∪ (step(gone) ∩ stored)         kept = stored − gone
    new  = (gone ∩ (base ∪ step(kept))) ∪ gained(kept) ∪ (step(new) − kept)
    Δ    = new − gone

UNION ALL: a row counts once for each chain of derivations that leads to it. A lost chain is stored up to its
last lost derivation, and continues with derivations of both ends. A gained chain comes from rows that stay up
to its first gained derivation, and continues with derivations of now. So both are finite if the recursion is.

    gone = lost(stored) + (step − gained)(gone)  kept = stored − gone
    new  = gained(kept) + step(new)              Δ = new − gone

Rows are compared by the hash that the stream table has an index on, and then as records, whose equality is
null-safe. PostgreSQL can join by the hash only. It overestimates the number of derivations, and multiplies
the error in each recursion, so `are_few` lowers the estimate: without it, whole tables would be joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgtrickle.changes.keys import trusted_sql
from pgtrickle.changes.relations import StoredRows, carried_list, change_column
from pgtrickle.model.names import quoted
from pgtrickle.plan.passes.bind.derivations import GONE, KEPT, NEW, ROW
from pgtrickle.plan.reads import WEIGHT, Closure, Read
from pgtrickle.postgres.connection import sql

_UNION = """
with recursive derivation as materialized ({derivations}),
{gone} as (
    select distinct {made}, d.{hash} from derivation as d where d.{change} < 0 and {are_few}
    union
    select {t}, t.{hash} from ({from_gone}) as t where {is_stored}
),
{kept} as not materialized (
    select {t}, t.{hash} from ({stored}) as t where not exists (select from {gone} as g where {g_is_t})
),
back as (
    select g.* from {gone} as g where exists (select from ({base}) as t where {g_equals_t})
    union
    select g.* from {gone} as g where exists (select from ({from_kept}) as t where {g_equals_t})
    union
    select g.* from {gone} as g where ({has_null}) and exists (
        select from (({base}) union all ({from_kept})) as t
        where (select exists (select from {gone} as g where {has_null})) and {g_is_t}
    )
),
{new} as (
    (
        select * from back
        union
        select {t}, t.{hash} from (
            select {made}, d.{hash} from derivation as d left join {gone} as g on {g_is_origin}
            where d.{change} > 0 and (d.{is_first} = 1 or g.{hash} is null) and {are_few}
        ) as t left join {gone} as g on {g_is_t} where g.{hash} is not null or not {is_stored}
    )
    union
    select {t}, t.{hash} from ({from_new}) as t left join {gone} as g on {g_is_t}
    where g.{hash} is not null or not {is_stored}
)
select {t}, -1::bigint as {weight} from {gone} as t where not exists (select from {new} as g where {g_is_t})
union all
select {t}, 1::bigint from {new} as t where not exists (select from {gone} as g where {g_is_t})
"""

_UNION_ALL = """
with recursive derivation as materialized ({derivations}),
gained as materialized (
    select d.*, d.{change} / s.{copies} as {times}, s.{copies} from derivation as d cross join lateral (
        select count(*) as {copies} from ({stored}) as t where t.{hash} = d.{origin_hash} and {t_is_origin}
    ) as s
    where d.{change} > 0 and d.{is_first} = 0 and {are_few}
),
{gone} as (
    select {made}, d.{hash}, -d.{change} as {weight} from derivation as d
    where d.{change} < 0 and {are_few}
    union all
    select {t}, t.{hash}, ({row}.{weight} * (t.{weight} - coalesce(d.{times}, 0)))::bigint
    from {gone} as {row}
    cross join lateral (
        select {t}, t.{hash}, count(*) as {weight} from ({from_gone}) as t group by {t}, t.{hash}
    ) as t
    left join gained as d on d.{origin_hash} = {row}.{hash} and d.{hash} = t.{hash} and {d_makes_t}
    where t.{weight} > coalesce(d.{times}, 0)
),
lost as (select {t}, t.{hash}, sum(t.{weight}) as {copies} from {gone} as t group by {t}, t.{hash}),
{new} as (
    (
        select {made}, d.{hash}, d.{change} as {weight} from derivation as d
        where d.{change} > 0 and d.{is_first} = 1 and {are_few}
        union all
        select {made}, d.{hash}, (d.{times} * (d.{copies} - coalesce(g.{copies}, 0)))::bigint
        from gained as d left join lost as g on {g_is_origin} where d.{copies} > coalesce(g.{copies}, 0)
    )
    union all
    select {t}, t.{hash}, {row}.{weight} from {new} as {row} cross join lateral ({from_new}) as t
)
select {t}, sum(t.{weight})::bigint as {weight} from (
    select {t}, -t.{weight} as {weight} from {gone} as t union all select {t}, t.{weight} from {new} as t
) as t group by {t} having sum(t.{weight}) <> 0
"""

_ARE_FEW = "d.{0} = d.{0} + 0 and d.{1} = d.{1} + 0"
"""Always true. PostgreSQL takes each of these comparisons for one that 1 of 200 rows satisfies."""


def closure_query(read: Read, derivations: sql.Composable, stored: StoredRows) -> sql.Composed:
    """The change of a recursion's rows; `derivations` selects those that changed, with their change."""
    assert read.closure is not None
    parts = _Parts(read.closure, stored)
    change = parts.statement(derivations)
    shown = [sql.Identifier(field.name) for field in read.fields]
    named = sql.SQL("select {}, {} from ({}) as t").format(
        _list(_aliases(parts.names, shown)), parts.weight, change
    )
    return sql.SQL("select {}, t.{} as {} from ({}) as t").format(
        carried_list(read), parts.weight, sql.Identifier(WEIGHT), named
    )


def derived_columns(closure: Closure) -> tuple[str, ...]:
    """The columns of a derivation."""
    return (*closure.made, *closure.origin, closure.is_first)


def change_name(closure: Closure) -> sql.Identifier:
    """The column that tells how much more often a derivation exists now."""
    return change_column(*derived_columns(closure))


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts that a statement is composed of; its relations have the columns of the stream table."""

    closure: Closure
    stored: StoredRows

    @property
    def names(self) -> list[sql.Composable]:
        return [sql.Identifier(name) for name, _ in self.closure.columns]

    @property
    def weight(self) -> sql.Identifier:
        return self._free_name(WEIGHT)

    @property
    def hash(self) -> sql.Identifier:
        return self._free_name("hash of the row")

    @property
    def origin_hash(self) -> sql.Identifier:
        return self._free_name("hash of the origin")

    def _free_name(self, name: str) -> sql.Identifier:
        """A name for a column beside those of the stream table and of derivations."""
        taken = {*(column for column, _ in self.closure.columns), *derived_columns(self.closure)}
        while name in taken:
            name += "'"
        return sql.Identifier(name)

    def statement(self, derivations: sql.Composable) -> sql.Composed:
        """The change of the stored rows."""
        closure = self.closure
        made, origin = _of("d", _identifiers(closure.made)), _of("d", _identifiers(closure.origin))
        steps = [self._term(term) for term in (closure.from_gone, closure.from_kept, closure.from_new)]
        return sql.SQL(_UNION_ALL if closure.is_all else _UNION).format(
            derivations=self._hashed_derivations(derivations, made, origin),
            change=change_name(closure),
            are_few=sql.SQL(_ARE_FEW).format(change_name(closure), sql.Identifier(closure.is_first)),
            is_first=sql.Identifier(closure.is_first),
            weight=self.weight,
            times=self._free_name("times"),
            copies=self._free_name("copies"),
            hash=self.hash,
            origin_hash=self.origin_hash,
            gone=trusted_sql(GONE),
            kept=trusted_sql(KEPT),
            new=trusted_sql(NEW),
            row=trusted_sql(ROW),
            stored=self._stored_rows(),
            base=self._term(closure.base),
            from_gone=steps[0],
            from_kept=steps[1],
            from_new=steps[2],
            made=self._typed(made),
            t=_list(self._of("t")),
            is_stored=self._is_stored(),
            g_is_t=self._is_same("g", self.hash, "t", self._of("t")),
            g_is_origin=self._is_same("g", self.origin_hash, "d", origin),
            t_is_origin=_same(self._of("t"), origin),
            d_makes_t=_same([*origin, *made], [*self._of(ROW), *self._of("t")]),
            g_equals_t=self._equals("g", "t"),
            has_null=sql.SQL(" or ").join(sql.SQL("{} is null").format(name) for name in self._of("g")),
        )

    def _hashed_derivations(
        self, rows: sql.Composable, made: Sequence[sql.Composable], origin: Sequence[sql.Composable]
    ) -> sql.Composed:
        """Derivations with the hashes of both rows."""
        hashes = [self._hashed(sql.SQL("select {}").format(self._typed(row))) for row in (made, origin)]
        return sql.SQL(
            "select d.*, m.{hash}, o.{hash} as {origin_hash} from ({rows}) as d"
            " cross join lateral ({made}) as m cross join lateral ({origin}) as o"
        ).format(rows=rows, made=hashes[0], origin=hashes[1], hash=self.hash, origin_hash=self.origin_hash)

    def _term(self, query: str) -> sql.Composed:
        """A term of the recursion as rows of the stream table."""
        typed = self._typed(_of("t", _identifiers(self.closure.made)))
        return self._hashed(sql.SQL("select {} from ({}) as t").format(typed, trusted_sql(query)))

    def _typed(self, values: Sequence[sql.Composable]) -> sql.Composed:
        """Values as columns of the stream table: both terms of WITH RECURSIVE must have the same types."""
        pairs = zip(values, self.closure.columns, strict=True)
        cast = [sql.SQL("({})::{}").format(value, trusted_sql(kind)) for value, (_, kind) in pairs]
        return _list(_aliases(cast, self.names))

    def _hashed(self, rows: sql.Composable) -> sql.Composed:
        return sql.SQL("select {}, {} as {} from ({}) as t").format(
            _list(self._of("t")), self._row_hash(), self.hash, rows
        )

    def _stored_rows(self) -> sql.Composed:
        return sql.SQL("select {}, {} as {} from only {} as t").format(
            self._typed(self._of("t")), self._row_hash(), self.hash, self.stored.table
        )

    def _row_hash(self) -> sql.Composed:
        """The hash of the stream table's index, over the only relation in scope."""
        return sql.SQL("hash_record_extended(row({}), 0)").format(
            _list(trusted_sql(match) for match in self.stored.match_columns)
        )

    def _is_stored(self) -> sql.Composed:
        """Whether the stream table has the row `t`; OFFSET makes PostgreSQL look it up by the index."""
        found = "exists (select from ({}) as s where s.{hash} = t.{hash} and {} offset 0)"
        return sql.SQL(found).format(self._stored_rows(), _same(self._of("s"), self._of("t")), hash=self.hash)

    def _is_same(
        self, ours: str, their_hash: sql.Identifier, theirs: str, values: Sequence[sql.Composable]
    ) -> sql.Composed:
        return sql.SQL("{}.{} = {}.{} and {}").format(
            trusted_sql(ours), self.hash, trusted_sql(theirs), their_hash, _same(self._of(ours), values)
        )

    def _equals(self, ours: str, theirs: str) -> sql.Composed:
        """Equality that can use any index, and is true only for rows without nulls."""
        triples = zip(self._of(ours), self.closure.equality, self._of(theirs), strict=True)
        return sql.SQL(" and ").join(
            sql.SQL("{} {} {}").format(left, trusted_sql(equals), right) for left, equals, right in triples
        )

    def _of(self, alias: str) -> list[sql.Composable]:
        return _of(alias, self.names)


def _identifiers(names: Sequence[str]) -> list[sql.Composable]:
    return [trusted_sql(quoted(name)) for name in names]


def _of(alias: str, columns: Sequence[sql.Composable]) -> list[sql.Composable]:
    return [sql.SQL("{}.{}").format(trusted_sql(alias), column) for column in columns]


def _same(left: Sequence[sql.Composable], right: Sequence[sql.Composable]) -> sql.Composed:
    """Null-safe equality."""
    return sql.SQL("row({})::record = row({})::record").format(_list(left), _list(right))


def _list(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _aliases(values: Sequence[sql.Composable], names: Sequence[sql.Composable]) -> list[sql.Composed]:
    return [sql.SQL("{} as {}").format(*pair) for pair in zip(values, names, strict=True)]
