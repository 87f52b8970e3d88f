"""ONLY of a table without children is the table, until it has one."""

from __future__ import annotations

import pytest

from pgtrickle.model.errors import PgTrickleError


def test_only_of_a_table_without_children_is_followed(source, stream_table):
    animals = source("animals(id int primary key, legs int)", rows=[(1, 4), (2, 2)])
    table = stream_table("select id, legs from only animals", mode="DIFFERENTIAL")
    animals.change("update animals set legs = 6 where id = 1", "insert into animals values (3, 0)")
    assert table.refresh().action.value == "DIFFERENTIAL"
    table.equals_its_query()


def test_only_of_a_table_that_gets_a_child_shows_no_row_of_the_child(source, stream_table, app):
    animals = source("animals(id int primary key, legs int)", rows=[(1, 4), (2, 2)])
    table = stream_table("select id, legs from only animals")
    app.execute("create table dogs(breed text) inherits (animals)")
    app.execute("grant select, trigger on dogs to trickle")
    animals.change("insert into dogs values (7, 4, 'pug')", "insert into animals values (3, 0)")
    before = table.rows()
    with pytest.raises(PgTrickleError, match="ONLY"):
        table.refresh()
    assert table.rows() == before
