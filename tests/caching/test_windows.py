"""A window for which nobody has a program yet makes do with that of a larger one, once."""

from __future__ import annotations

from itertools import combinations

import pytest

from pgtrickle.refresh.caching.saved import SavedFollowing
from tests.caching.conftest import compiled_by, counted

JOIN = (
    "select a.id, a.x, b.x as y, c.x as z, d.x as w from a join b on b.id = a.id join c on c.id = b.id"
    " left join d on d.id = c.id"
)


@pytest.fixture
def tables(source):
    rows = [(number, number * 10) for number in range(1, 6)]
    return [source(f"{name}(id int primary key, x int)", rows=rows) for name in "abcd"]


def test_it_finds_the_same_rows_and_others_have_its_program_afterwards(
    tables, stream_table, sidecar, spark, app
):
    first = stream_table(JOIN)
    second = type(first)(first.name, first.query, sidecar(spark), app)
    for round_number, names in enumerate(combinations("abcd", 2)):
        with app.transaction():
            for name in names:
                app.execute(f"update {name} set x = x + 1 where id = {round_number % 5 + 1}")
        assert second.refresh().action.value == "DIFFERENTIAL"
        second.equals_its_query()
    # the first odd window was recalled, the second made the operators known here
    assert counted(second.engine, "compiles") == (1,)
    compiled_by(second.engine, first.name)
    third = compiled_by(sidecar(), first.name)
    assert isinstance(third.compiled, SavedFollowing)
    relations = [source.relation for source in third.sources]
    for pair in combinations(relations, 2):
        third.compiled.program(frozenset(pair))
    assert not third.compiled.missed
