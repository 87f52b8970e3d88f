"""A table breaks no value inside a word: it becomes a list where the terminal is too narrow."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pgtrickle.interfaces.cli.fitting_table import FittingTable

WORDS = ("public.sales", "INITIALIZING", "calculated", "AUTO → not yet known")


def shown(
    width: int,
    *rows: tuple[str, ...],
    headers: tuple[str, ...] = ("name", "status", "when", "mode"),
    spare: tuple[str, ...] = (),
) -> str:
    table = FittingTable(*headers, right=("when",), spare=spare)
    for row in rows:
        table.add_row(*row)
    text = io.StringIO()
    Console(file=text, width=width).print(table)
    return text.getvalue()


def test_a_wide_terminal_shows_rows_side_by_side():
    lines = [line.rstrip() for line in shown(100, WORDS).splitlines()]
    assert lines[0].split() == ["name", "status", "when", "mode"]
    assert lines[2].split("   ")[-1].strip() == "AUTO → not yet known"


def test_a_narrower_one_breaks_between_words():
    text = shown(56, WORDS)
    assert ("INITIALIZING" in text, "not yet known" in text) == (True, False)
    assert max(map(len, text.splitlines())) <= 56


def test_a_narrow_one_lists_labels_and_values():
    assert [line.rstrip() for line in shown(34, WORDS).splitlines()] == [
        "public.sales",
        "  status  INITIALIZING",
        "  when    calculated",
        "  mode    AUTO → not yet known",
    ]


def test_spare_columns_are_left_out_before_that_and_named():
    lines = [line.rstrip() for line in shown(34, WORDS, spare=("mode", "when", "status")).splitlines()]
    assert lines[0].split() == ["name", "status"]
    assert lines[2:] == ["public.sales   INITIALIZING", "Too narrow for: mode, when"]


@pytest.mark.parametrize("width", [20, 40, 80, 120])
@given(rows=st.lists(st.tuples(*[st.text("ab c", min_size=1, max_size=18)] * 4), min_size=1, max_size=4))
def test_no_line_is_too_long_and_no_word_is_broken(width, rows):
    words = [f"w{''.join(part.split())}"[:9] for row in rows for part in row]
    made = [tuple(words[at : at + 4]) for at in range(0, len(words), 4)]
    text = shown(width, *made)
    assert max(map(len, text.splitlines())) <= width
    assert [word for word in words if word not in text.split()] == []
