"""Lines of the log have date, zone and level; an outage is one line at its start and one at its end."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from pgtrickle.commands.run import RefreshEvent
from pgtrickle.interfaces.cli.error_reporting import wants_json
from pgtrickle.interfaces.cli.log_lines import SidecarLog
from pgtrickle.interfaces.event_log import LOG, LoggedEvents, visible_log
from pgtrickle.model.errors import ConnectionFailed, Diverged, RefreshFailed, SparkFailed, SparkLost
from pgtrickle.model.names import RelationName
from pgtrickle.model.settings import LogFormat, LogLevel
from pgtrickle.model.stream_table import Action, RefreshOutcome
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.refresh.faults import explained_error

AT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SALES = RelationName("public", "sales")
NOBODY = RelationName("", "")
HEAD = r"2026-01-3[01] \d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d "


def test_a_refresh_is_a_line_with_date_zone_and_level(capsys):
    outcome = RefreshOutcome(SALES, Action.DIFFERENTIAL, 3, 1, 12.0, "3 changed rows")
    SidecarLog()(RefreshEvent(SALES, AT, outcome=outcome))
    line = capsys.readouterr().out
    assert re.fullmatch(HEAD + r"INFO +public\.sales +DIFFERENTIAL +\+3 +−1 +12 ms +3 changed rows\n", line)


def test_an_error_is_a_line_with_its_hint_as_a_command(capsys):
    error = RefreshFailed("it failed", hint="run select pgtrickle.resume_stream_table('sales')")
    SidecarLog()(RefreshEvent(SALES, AT, error=error))
    line = capsys.readouterr().out
    said = r"error PGT-R003: it failed\. Hint: Run `pgtrickle resume sales`\.\n"
    assert re.fullmatch(HEAD + r"ERROR +public\.sales +" + said, line)


def test_as_json_an_error_has_everything_a_program_needs(capsys):
    error = RefreshFailed("it failed", hint="run select pgtrickle.undrain()", detail="Why.")
    SidecarLog(format=LogFormat.JSON)(RefreshEvent(SALES, AT, error=error))
    found = json.loads(capsys.readouterr().out)
    assert (found["at"], found["level"], found["name"]) == (AT.isoformat(), "ERROR", "public.sales")
    assert found["error"] == {
        "code": "PGT-R003",
        "sqlstate": "38000",
        "message": "it failed",
        "detail": "Why.",
        "hint": "run `pgtrickle undrain`",
        "excerpt": None,
    }


def test_an_outage_of_spark_is_one_line_until_it_is_over(capsys):
    log = SidecarLog(format=LogFormat.JSON)
    for why in ("it was killed", "it cannot be started", "it cannot be started"):
        log(RefreshEvent(NOBODY, AT, error=SparkLost(f"Spark has ended: {why}"), subject="Spark"))
    log(RefreshEvent(NOBODY, AT, note="Spark is back after 3.0 s", subject="Spark"))
    log(RefreshEvent(NOBODY, AT, error=SparkLost("Spark has ended: again"), subject="Spark"))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["note"] or line["error"]["message"] for line in lines] == [
        "Spark has ended: it was killed",
        "Spark is back after 3.0 s",
        "Spark has ended: again",
    ]


@pytest.mark.parametrize("log_format", list(LogFormat))
def test_what_the_sidecar_says_of_itself_goes_to_standard_error(capsys, log_format):
    SidecarLog(format=log_format).announce("Stopped.", LogLevel.WARNING)
    out, err = capsys.readouterr()
    assert out == ""
    if log_format is LogFormat.JSON:
        found = json.loads(err)
        assert (found["level"], found["message"], "at" in found) == ("WARNING", "Stopped.", True)
    else:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d .* WARNING +Stopped\.\n", err)


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        (LogLevel.DEBUG, ["NO_DATA", "FULL", "it failed"]),
        (LogLevel.INFO, ["FULL", "it failed"]),
        (LogLevel.WARNING, ["it failed"]),
        (LogLevel.ERROR, ["it failed"]),
    ],
)
def test_the_level_says_how_much_is_shown(capsys, level, shown):
    log = SidecarLog(level, LogFormat.JSON)
    for action in (Action.NO_DATA, Action.FULL):
        log(RefreshEvent(SALES, AT, outcome=RefreshOutcome(SALES, action, 0, 0, 1.0, "why")))
    log(RefreshEvent(SALES, AT, error=RefreshFailed("it failed")))
    log.announce("Serving.")
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["action"] or line["error"]["message"] for line in lines] == shown
    assert bool(err) == (level in (LogLevel.DEBUG, LogLevel.INFO))


def test_as_json_a_refresh_has_its_kind_and_its_phases(capsys):
    outcome = RefreshOutcome(
        SALES, Action.FULL, 3, 1, 12.0, "why", read_ms=1.0, compute_ms=2.0, apply_ms=3.0, wait_ms=4.0
    )
    SidecarLog(format=LogFormat.JSON)(RefreshEvent(SALES, AT, outcome=outcome))
    found = json.loads(capsys.readouterr().out)
    assert (found["event"], found["level"], found["subject"]) == ("refresh", "INFO", None)
    assert [found[f"{phase}_ms"] for phase in ("wait", "read", "compute", "apply", "commit")] == [
        4.0,
        1.0,
        2.0,
        3.0,
        None,
    ]


def test_an_outage_says_how_long_it_lasted_and_is_told_by_python_once_too(caplog):
    log = LoggedEvents()
    with caplog.at_level("INFO", "pgtrickle"):
        for why in ("it was killed", "it cannot be started"):
            log(RefreshEvent(NOBODY, AT, error=SparkLost(f"Spark has ended: {why}"), subject="Spark"))
        log(RefreshEvent(NOBODY, AT, error=ConnectionFailed("no route"), subject="database"))
        log(RefreshEvent(NOBODY, AT, note="Spark is back after 3.0 s", subject="Spark", seconds=3.0))
    assert [record.getMessage() for record in caplog.records] == [
        "Spark: PGT-J003: Spark has ended: it was killed.",
        "database: PGT-C001: no route.",
        "Spark: Spark is back after 3.0 s",
    ]
    values = [record.pgtrickle for record in caplog.records]
    assert [value["event"] for value in values] == ["outage", "outage", "recovery"]
    assert (values[2]["subject"], values[2]["seconds"]) == ("Spark", 3.0)


def test_python_shows_json_if_asked_to(capsys, monkeypatch):
    monkeypatch.setattr(LOG, "propagate", False)
    with visible_log(LogLevel.WARNING, LogFormat.JSON):
        LoggedEvents()(RefreshEvent(SALES, AT, error=RefreshFailed("it failed")))
        LOG.info("not shown")
        LOG.warning("shown")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (first["name"], first["error"]["code"]) == ("public.sales", "PGT-R003")
    assert (second["level"], second["message"]) == ("WARNING", "shown")
    assert datetime.fromisoformat(second["at"]).tzinfo is not None


@pytest.mark.parametrize("log_format", list(LogFormat))
def test_values_of_rows_are_not_logged(capsys, connection, log_format):
    statements = {
        "select 'the secret'::int": 'invalid input syntax for type integer: "…"',
        "select ('{\"a\": 1}'::jsonb -> 'a')::text::date": 'invalid input syntax for type date: "…"',
        "select 1 / 0": "division by zero",
        "do $$ begin raise 'the secret'; end $$": "a function of the query raised an error",
        'select * from "the table"': 'relation "the table" does not exist',
    }
    log, table = SidecarLog(format=log_format), Mock()
    for statement, shown in statements.items():
        with pytest.raises(DatabaseError) as found, connection.transaction():
            connection.execute(statement)
        log(RefreshEvent(SALES, AT, error=explained_error(table, found.value)))
        line = capsys.readouterr().out
        assert "secret" not in line
        assert shown in line.replace('\\"', '"')


def test_rows_of_a_diverged_table_and_texts_of_spark_are_not_logged(capsys):
    log = SidecarLog()
    rows = ("missing (1, 'secret')", "extra (2, 'secret')")
    error = Diverged(
        f"public.sales does not hold the rows that its changes expect: {'; '.join(rows)}", rows=rows
    )
    log(RefreshEvent(SALES, AT, error=error))
    log(RefreshEvent(SALES, AT, error=SparkFailed("a program failed in Spark: cannot cast 'secret' to int")))
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("the rows that its changes expect: pgtrickle.visible_repairs has them.")
    assert second.endswith("cannot cast '…' to int.")


@pytest.mark.parametrize(
    ("arguments", "variable", "expected"),
    [
        (["run"], "", False),
        (["run", "--json"], "", True),
        (["run", "--log-format", "json"], "", True),
        (["run", "--log-format=JSON"], "", True),
        (["run"], "json", True),
        (["run", "--log-format", "text"], "json", False),
        (["list"], "json", False),
        (["list", "--json"], "", True),
    ],
)
def test_the_error_that_ends_a_sidecar_is_written_like_its_log(arguments, variable, expected, monkeypatch):
    monkeypatch.setenv("PGTRICKLE_LOG_FORMAT", variable)
    assert wants_json(arguments) is expected
