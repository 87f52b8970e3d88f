"""A bounded number of stream tables has series of its own: those that matter most."""

from __future__ import annotations

from pgtrickle.interfaces.metrics.table_labels import OTHER, TableLabels
from pgtrickle.model.names import RelationName


def names(count: int) -> list[RelationName]:
    return [RelationName("public", f"t{number}") for number in range(count)]


def test_every_table_has_its_own_series_while_there_is_room():
    labels = TableLabels(3)
    tables = names(4)
    assert [labels.label(table, 0.1) for table in tables] == ["public.t0", "public.t1", "public.t2", OTHER]
    assert labels.label(tables[0], 0.1) == "public.t0"
    assert set(labels.shown) == set(tables[:3])


def test_a_table_that_fails_takes_the_place_of_one_that_matters_less():
    labels = TableLabels(2)
    busy, idle, failing = names(3)
    labels.label(busy, 5.0)
    labels.label(idle, 0.001)
    assert labels.label(failing, 0.0, is_failure=True) == OTHER
    assert labels.choose({busy, idle, failing}) == {"public.t1"}
    assert labels.label(failing, 0.0) == "public.t2"
    assert labels.label(idle, 0.001) == OTHER


def test_tables_that_matter_alike_keep_their_series():
    labels = TableLabels(2)
    tables = names(4)
    for _ in range(5):
        for table in tables:
            labels.label(table, 1.0)
        assert labels.choose(set(tables)) == set()
    assert set(labels.shown) == set(tables[:2])


def test_the_series_of_a_dropped_table_end_and_make_room():
    labels = TableLabels(2)
    first, second, third = names(3)
    labels.label(first, 1.0)
    labels.label(second, 1.0)
    labels.label(third, 0.5)
    assert labels.choose({second, third}) == {"public.t0"}
    assert set(labels.shown) == {second, third}


def test_what_was_long_ago_counts_less():
    labels = TableLabels(1)
    before, now = names(2)
    labels.label(before, 100.0)
    for _ in range(10):
        labels.label(now, 1.0)
        labels.choose({before, now})
    assert set(labels.shown) == {now}


def test_without_series_of_their_own_all_are_other():
    labels = TableLabels(0)
    assert labels.label(names(1)[0], 1.0) == OTHER
    assert labels.choose(set(names(1))) == set()


def test_names_are_quoted_as_in_sql():
    assert TableLabels(1).label(RelationName("Shop", 'a "b"'), 1.0) == '"Shop"."a ""b"""'
