"""Statements about stream tables that the pages show can be parsed."""

from __future__ import annotations

from pgtrickle.interfaces.ddl.parser import parse
from tests.docs.pages import PAGES, blocks


def test_statements_about_stream_tables_parse():
    shown = [
        block
        for page in PAGES
        for block in blocks(page)
        if block.text.lower().startswith("create stream table")
    ]
    assert shown
    for block in shown:
        assert parse(block.text), str(block)
