"""Results are frozen values that people can read, in a terminal and in a notebook, and load into pandas."""

from __future__ import annotations

import inspect
import re
from dataclasses import FrozenInstanceError, dataclass, fields
from datetime import UTC, datetime
from typing import ClassVar

import pandas
import pytest

import pgtrickle
from pgtrickle.commands.explain import Explanation
from pgtrickle.commands.top import Activity
from pgtrickle.model.errors import Busy
from pgtrickle.model.names import RelationName
from pgtrickle.model.records import MOST_ROWS, Record, Records
from pgtrickle.model.stream_table import Action, RefreshMode, RefreshOutcome


@dataclass(frozen=True, slots=True, repr=False)
class Visit(Record):
    """A record with a value of every kind."""

    table_columns: ClassVar = ("name", "action", "took")

    name: RelationName
    action: Action | None
    took: float
    at: datetime | None
    labels: tuple[str, ...]
    details: dict[str, object]
    error: Busy | None
    note: str = ""


AT = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SALES = Visit(
    RelationName("public", "sales"), Action.FULL, 12.345, AT, ("a", "b"), {"x": 1.0}, None, "two\nlines"
)
ODD = Visit(RelationName("public", "<b>Odd & co"), None, 0.5, None, (), {}, Busy("<i>locked</i>"))
OUTCOME = RefreshOutcome(RelationName("public", "sales"), Action.FULL, 2, 0, 12.3456, "first load")


def test_repr_is_one_line_of_the_fields_that_matter():
    assert repr(SALES) == "Visit(name='public.sales', action='FULL', took=12.3, …)"
    assert repr(OUTCOME) == (
        "RefreshOutcome(name='public.sales', action='FULL', rows_inserted=2, rows_deleted=0,"
        " milliseconds=12.3, reason='first load', …)"
    )


def test_print_shows_a_line_for_each_field():
    local = AT.astimezone().isoformat(" ", "seconds")
    assert str(SALES).splitlines() == [
        "name     public.sales",
        "action   FULL",
        "took     12.3",
        f"at       {local}",
        "labels   a, b",
        "details  x: 1",
        "error",
        "note     two",
        "         lines",
    ]


def test_records_print_as_a_table():
    assert repr(Records(Visit, [SALES, ODD])).splitlines() == [
        "name                  action  took",
        "────────────────────  ──────  ────",
        "public.sales          FULL    12.3",
        'public."<b>Odd & co"          0.5',
        "(2 rows)",
    ]
    assert repr(Records(Visit, [])).splitlines() == ["name  action  took", "────  ──────  ────", "(0 rows)"]


def test_a_long_table_is_cut_and_says_so():
    many = Records(Visit, [SALES] * (MOST_ROWS + 1))
    assert len(repr(many).splitlines()) == MOST_ROWS + 3
    assert repr(many).endswith(f"({MOST_ROWS + 1} rows, the first {MOST_ROWS} shown)")
    assert many._repr_html_().count("<tr>") == MOST_ROWS + 1


def test_html_escapes_everything():
    explanation = Explanation(ODD.name, RefreshMode.AUTO, RefreshMode.FULL, "", "filter (a < b) & <script>")
    for html in (ODD._repr_html_(), Records(Visit, [ODD])._repr_html_(), explanation._repr_html_()):
        for tag in ("<b>", "<i>", "<script>", " & "):
            assert tag not in html
    assert "&lt;b&gt;Odd &amp; co" in ODD._repr_html_()
    assert "two<br>lines" in SALES._repr_html_()


def test_records_are_a_sequence_that_does_not_change():
    records = Records(Visit, [SALES, ODD])
    assert (len(records), records[1], list(records), SALES in records) == (2, ODD, [SALES, ODD], True)
    assert isinstance(records[:1], Records)
    assert records[:1] == [SALES]
    assert Records(Visit, []) == []
    assert not Records(Visit, [])
    assert records != [SALES]
    with pytest.raises(TypeError):
        records[0] = ODD  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        SALES.took = 1.0  # type: ignore[misc]


def test_a_frame_has_every_field_with_names_as_text_and_times_in_utc():
    frame = Records(Visit, [SALES, ODD]).to_pandas()
    assert list(frame.columns) == [field.name for field in fields(Visit)]
    assert list(frame["name"]) == ["public.sales", 'public."<b>Odd & co"']
    assert list(frame["action"]) == ["FULL", None]
    assert str(frame["at"].dtype) == "datetime64[ns, UTC]"
    assert pandas.isna(frame["at"][1])
    assert list(frame["labels"]) == [("a", "b"), ()]
    assert frame["took"].dtype == float
    assert frame["error"][1] == str(ODD.error)


def test_one_record_is_a_frame_of_one_row_and_no_records_a_frame_with_columns():
    assert OUTCOME.to_pandas().to_dict("records") == [
        {
            "name": "public.sales",
            "action": "FULL",
            "rows_inserted": 2,
            "rows_deleted": 0,
            "milliseconds": 12.3456,
            "reason": "first load",
            "read_ms": None,
            "compute_ms": None,
            "apply_ms": None,
            "wait_ms": None,
            "commit_ms": None,
        }
    ]
    empty = Records(Visit, []).to_pandas()
    assert (len(empty), str(empty["at"].dtype)) == (0, "datetime64[ns, UTC]")


def test_every_exported_record_has_only_columns_that_are_fields():
    exported = [getattr(pgtrickle, name) for name in dir(pgtrickle)]
    kinds = [value for value in exported if _is_record(value)]
    assert len(kinds) > 5
    for kind in kinds:
        assert set(kind.table_columns) <= {field.name for field in fields(kind)}
        assert "__repr__" not in vars(kind) or kind in (Activity, Explanation), (
            "the dataclass needs repr=False"
        )


def test_every_result_of_python_is_a_record_or_a_plain_value():
    plain = {"None", "int", "str", "list[str]", "Self", "Engine", "BackgroundRun"}
    methods = {
        name: value
        for name, value in inspect.getmembers(pgtrickle.Trickle, inspect.isfunction)
        if not name.startswith("_")
    }
    assert len(methods) > 20
    kinds = {name for name in dir(pgtrickle) if _is_record(getattr(pgtrickle, name))}
    for name, method in methods.items():
        returned = str(inspect.signature(method).return_annotation)
        parts = {part.strip() for part in re.split(r"\|", returned)}
        for part in parts - plain:
            kind = re.sub(r"^(?:Records|Iterator)\[(\w+)\]$", r"\1", part)
            assert kind in kinds, f"{name} returns {returned}"


def test_every_exported_record_is_shown_in_a_notebook_and_becomes_a_frame():
    for name in dir(pgtrickle):
        kind = getattr(pgtrickle, name)
        if not _is_record(kind):
            continue
        empty = Records(kind, [])
        values = {"tables": empty, "sidecars": empty, "text": ""} if kind in (Activity, Explanation) else {}
        record = kind(**{field.name: values.get(field.name) for field in fields(kind)})
        assert record._repr_html_().startswith("<"), name
        assert len(record.to_pandas()) == (0 if kind is Activity else 1), name
        assert "<table>" in Records(kind, [record])._repr_html_(), name
        assert repr(record) is not None
        assert str(record) is not None


def _is_record(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Record) and value is not Record
