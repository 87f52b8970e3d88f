"""Rows are hashed, matched and folded by their typed values; no text is made of a row on the way."""

from __future__ import annotations

import re

import pytest

from pgtrickle.apply.compose import trusted_sql
from pgtrickle.apply.stored_table import StoredColumn, StoredTable
from pgtrickle.apply.write import _steps
from pgtrickle.model.names import RelationName, quoted
from tests.plan.wide import QUERIES, programs

TYPES = (
    "bigint",
    "integer",
    "numeric",
    "numeric(12,2)",
    "text",
    "boolean",
    "date",
    "timestamp with time zone",
    "uuid",
)
# an outer join puts lists of matches together, which are no texts
TEXTS = re.compile(
    r"::text|\|\||concat_ws|concat\((?!matches)|md5|format\(|cast\([^()]* as string\)", re.IGNORECASE
)


def stored(*types: str, key: tuple[str, ...] | None) -> StoredTable:
    columns = tuple(StoredColumn(f"c{n}", pg_type, quoted(f"c{n}")) for n, pg_type in enumerate(types))
    return StoredTable(RelationName("public", "t"), columns, key)


@pytest.mark.parametrize("key", [None, ("c0",)])
def test_a_stream_table_is_written_without_texts_of_its_rows(key):
    steps = [step.as_string() for step in _steps(stored(*TYPES, key=key), trusted_sql("select"))]
    assert sum("hash_record_extended(row(" in step for step in steps) == 2
    assert [step for step in steps if TEXTS.search(step)] == []


def test_equal_decimals_are_told_apart_by_their_scale():
    folded = _steps(stored("bigint", "numeric", "numeric(12,2)", key=("c0",)), trusted_sql("select"))[1]
    assert folded.as_string().count("scale(") == 1


def test_only_what_has_no_other_way_is_told_apart_by_its_text():
    folded = _steps(stored("bigint", "double precision", key=("c0",)), trusted_sql("select"))[1]
    assert TEXTS.findall(folded.as_string()) == ["::text"]


@pytest.mark.parametrize("name", QUERIES)
def test_spark_groups_and_joins_by_typed_values(name):
    texts = [program.spark_sql for program in programs(name, 5)]
    assert texts
    assert [text for text in texts if TEXTS.search(text)] == []
