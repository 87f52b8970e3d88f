"""Types of extensions are followed by their own equality and order, wherever their operators are."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest

from pgtrickle.model.stream_table import Action
from tests.end_to_end.conftest import Followed
from tests.fixtures.servers import EMBEDDED, SYSTEM
from tests.fixtures.sources import Source

# the embedded server comes without these extensions
pytestmark = pytest.mark.on_postgres(SYSTEM)


@dataclass(frozen=True, slots=True)
class ExtensionType:
    """A type of an extension, some of its values, and expressions over a column `v` of it."""

    name: str
    values: tuple[str, ...]
    expressions: tuple[str, ...]
    extension: str | None = None

    def __str__(self) -> str:
        return self.name


CITEXT = ExtensionType("citext", ("Ab", "aB", "ab", "", "Zz"), ("lower(v::text)", "v like 'a%'"))
HSTORE = ExtensionType(
    "hstore", ("a=>1", "a=>1, b=>NULL", "", '"k y"=>"v,w"'), ("v -> 'a'", "v ? 'b'", "akeys(v)")
)
LTREE = ExtensionType("ltree", ("Top", "Top.Science", "Top.Hobbies.X"), ("nlevel(v)", "v <@ 'Top'"))
CUBE = ExtensionType("cube", ("(1,2)", "(1,2),(1,2)", "(1,2),(3,4)", "(0)"), ("cube_dim(v)",))
SEG = ExtensionType("seg", ("1 .. 2", "1.0", "1.00", "<3"), ("seg_lower(v)",))
ISBN = ExtensionType("isbn", ("978-0-393-04002-9", "0-306-40615-2", "80-902734-1-6"), ("isbn13(v)",), "isn")
VECTOR = ExtensionType("vector", ("[1,2]", "[1.0,2]", "[3,4]", "[0,0]"), ())

ROWS = (
    "select * from held",
    "select a.id, b.v from held a join held b on a.g = b.g and a.id <> b.id",
    "select a.id, b.id as other, b.v from held a left join held b on b.id = a.g",
)
KEYS = (
    "select a.id, b.id as other from held a join held b on a.v = b.v",
    "select v, count(*) as n, min(id) as first from held group by v",
    "select v, string_agg(id::text, ',' order by id) as ids from held group by v",
    "select distinct v from held where g < 9",
    "select distinct on (v) v, id from held order by v, id",
    "select v from held where g = 1 except all select v from held where g = 2",
    "select id, row_number() over (partition by v order by id) as r from held",
    "select id, v from held order by v desc, id limit 3",
    "select n.v, n.w, count(h.id) as c from names n left join held h on n.v = h.v group by n.v, n.w",
)


def _follow(
    kind: ExtensionType,
    queries: tuple[str, ...],
    admin: psycopg.Connection,
    source: Source,
    followed: Followed,
) -> None:
    admin.execute(f"create extension {kind.extension or kind.name}")
    source(f"held(id int primary key, g int, v {kind.name})")
    source(f"names(v {kind.name} primary key, w int)")
    tables = followed(*queries)
    values = [f"'{value}'" for value in kind.values]
    rows = ", ".join(f"({n}, {n % 3}, {value})" for n, value in enumerate(values * 2))
    tables.after(
        f"insert into held values {rows}",
        "insert into held values (100, 1, null)",
        f"insert into names values ({values[0]}, 1), ({values[-1]}, 2)",
    )
    tables.after(
        f"update held set v = {values[-1]} where id % 2 = 0",
        "update held set g = g + 1 where id % 3 = 0",
        "delete from held where id = 1",
        f"insert into held values (101, 2, {values[0]})",
    )
    tables.after(
        "update held set v = null where g = 2",
        f"update held set v = {values[1]} where id = 100",
        f"update names set v = {values[1]} where w = 1",
    )
    tables.after(f"update held set v = {values[0]} where id = 100", "delete from held where id % 2 = 1")
    tables.after("delete from held")


@pytest.mark.parametrize("kind", [CITEXT, HSTORE, CUBE], ids=str)
def test_values_of_an_extension_type_are_followed_by_their_own_equality(kind, admin, source, followed):
    """Equal values of these types may be written differently."""
    shown = ", ".join(f"{text} as e{number}" for number, text in enumerate(kind.expressions))
    _follow(kind, (f"select id, {shown} from held", *ROWS, *KEYS), admin, source, followed)


@pytest.mark.on_postgres(EMBEDDED)
def test_vectors_are_followed_by_their_own_equality(admin, source, followed):
    """The embedded server comes with pgvector."""
    shown = "v <-> '[0,0]' as distance, vector_dims(v) as dims"
    nearest = "select id, v <-> '[1,1]' as d from held where v is not null order by v <-> '[1,1]', id limit 2"
    _follow(VECTOR, (f"select id, {shown} from held", nearest, *ROWS, *KEYS), admin, source, followed)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [LTREE, SEG, ISBN], ids=str)
def test_more_extension_types_are_followed_by_their_own_equality(kind, admin, source, followed):
    shown = ", ".join(f"{text} as e{number}" for number, text in enumerate(kind.expressions))
    _follow(kind, (f"select id, {shown} from held", *ROWS, *KEYS), admin, source, followed)


def test_a_membership_by_an_operator_of_an_extension_is_recomputed(admin, source, stream_table):
    admin.execute("create extension citext")
    held = source("held(id int primary key, v citext)")
    table = stream_table("select id from held h where v in (select v from held o where o.id > h.id)")
    held.change("insert into held values (1, 'Ab'), (2, 'aB'), (3, 'b')")
    assert table.refresh().action is Action.FULL
    table.equals_its_query()
    held.change("update held set v = 'B' where id = 1")
    table.refresh()
    table.equals_its_query()


@pytest.mark.parametrize("name", ["citext", "ltree"])
@pytest.mark.parametrize(
    "query",
    [
        "select a.id from held a join held b using (v)",
        "select id, nullif(v, 'x') as n from held",
        "select id, case v when 'x' then 1 end as c from held",
        "select id from held where v is distinct from 'x'",
    ],
)
def test_a_comparison_that_loses_its_operator_in_print_is_refused(name, query, admin, app, source):
    """Printed, these do not name the operator: pg_catalog has another one, or none."""
    admin.execute(f"create extension {name}")
    source(f"held(id int primary key, v {name})")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="means more than its text says"):
        app.execute("select pgtrickle.create_stream_table('refused', %s)", (query,))
