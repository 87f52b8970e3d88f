"""The way of one changed row, as docs/ARCHITECTURE.md lists it, is the way that a refresh takes."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import pgtrickle
from pgtrickle.model.stream_table import Action

SOURCE = Path(pgtrickle.__file__).parent
DOCUMENT = SOURCE.parents[1] / "docs" / "ARCHITECTURE.md"
STEP = re.compile(r"^\| \d+ \| `([\w.…()]+)` \| `([\w/.]+)` \|", re.MULTILINE)
MOST_FUNCTIONS, MOST_FILES = 35, 25

Step = tuple[str, str]


@pytest.fixture(scope="module")
def documented_way() -> list[Step]:
    """Each function with its file, in the order of the document."""
    return STEP.findall(DOCUMENT.read_text(encoding="utf-8"))


def test_the_way_of_a_row_is_short(documented_way):
    files = {file for _, file in documented_way}
    assert 30 <= len(documented_way) <= MOST_FUNCTIONS
    assert len(files) <= MOST_FILES
    assert f"These are {len(documented_way)} functions in {len(files)} files." in DOCUMENT.read_text("utf-8")


def test_no_function_is_on_the_way_twice(documented_way):
    assert len(set(documented_way)) == len(documented_way)


def test_each_function_of_the_way_is_in_its_file(documented_way):
    missing = [(name, file) for name, file in documented_way if not _defines(SOURCE / file, name)]
    assert missing == []


def test_a_refresh_takes_the_way_in_its_order(documented_way, source, stream_table):
    orders = source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 5)])
    table = stream_table("select id, amount from orders where amount > 1", mode="DIFFERENTIAL")
    orders.change("update orders set amount = 7 where id = 1")
    entered: dict[Step, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(SOURCE):
            entered[frame.f_code.co_qualname, str(file.relative_to(SOURCE))] = None

    sys.setprofile(note)
    try:
        outcome = table.refresh()
    finally:
        sys.setprofile(None)
    assert outcome.action is Action.DIFFERENTIAL
    in_a_refresh = documented_way[documented_way.index(("refresh_all", "refresh/story.py")) :]
    assert [step for step in entered if step in in_a_refresh] == in_a_refresh
    table.equals_its_query()


def _defines(file: Path, name: str) -> bool:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".sql":
        # the functions of triggers are generated, one for each source
        schema, _, function = name.removesuffix("…()").rpartition(".")
        return f"function {schema}." in text and function in text
    return name in set(_definitions(ast.parse(text), ""))


def _definitions(node: ast.AST, prefix: str) -> Iterator[str]:
    """The functions of a module, methods with their class."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name
        elif isinstance(child, ast.ClassDef):
            yield from _definitions(child, f"{child.name}.")
