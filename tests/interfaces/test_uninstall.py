"""`uninstall` asks, can write the definitions out first, and does not pull the rug from under a sidecar."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.scheduler.service.vitals import Vitals, publish
from tests.fixtures.databases import TRICKLE, Database

DEFINED = """
select pgt_schema, pgt_name, owner, defining_query, schedule, refresh_mode, status, refresh_tier, cdc_mode,
    append_only, pooler_compatibility_mode, refresh_timeout, on_divergence, s.settings, s.initialize,
    s.diamond_consistency, s.diamond_schedule_policy
from pgtrickle.stream_tables_info i
join (select pgt_id, settings, initialize, diamond_consistency, diamond_schedule_policy
    from pgtrickle.pgt_stream_tables) s using (pgt_id)
order by 1, 2
"""


@pytest.fixture
def stream_tables(source, app: psycopg.Connection) -> None:
    source("\"Odd 'orders'\"(id int primary key, note text, at timestamptz)", rows=[(1, "a", "2025-01-01")])
    app.execute("set timezone = 'Europe/Berlin'")
    app.execute("set extra_float_digits = 0")
    app.execute(
        "select pgtrickle.create_stream_table('\"It''s\"', $$ select id, note || '\\n''x' as note, at"
        " from \"Odd 'orders'\" where at > '2024-01-01 12:00' $$, schedule => '1h30m', tier => 'cold',"
        " refresh_timeout => '90s', on_divergence => 'stop', append_only => true,"
        " diamond_consistency => 'none', pooler_compatibility_mode => true, initialize => false)"
    )
    app.execute("reset timezone")
    app.execute(
        "select pgtrickle.create_stream_table('over', $$ select count(*) as n from \"It's\" $$,"
        " schedule => null, refresh_mode => 'FULL', refresh_timeout => 'none',"
        " diamond_schedule_policy => 'slowest', cdc_mode => 'trigger')"
    )
    app.execute("select pgtrickle.alter_stream_table('over', status => 'SUSPENDED')")


@pytest.mark.every_postgres
@pytest.mark.usefixtures("stream_tables")
def test_an_export_creates_the_same_stream_tables_again(cli, admin, tmp_path: Path):
    before = admin.execute(DEFINED).fetchall()
    assert len(before) == 2
    file = tmp_path / "definitions.sql"
    answer = cli("uninstall", "--export", str(file), "--drop-tables", "--yes", role=SUPERUSER)
    assert (answer.exit_code, answer.err) == (0, "")
    assert f"Wrote the definitions to {file}." in answer.out
    assert cli("install", role=TRICKLE).exit_code == 0
    admin.execute(file.read_text())
    assert admin.execute(DEFINED).fetchall() == before


def test_a_name_cannot_smuggle_statements_into_an_export(source, app, cli, admin, tmp_path: Path):
    source("orders(id int primary key)")
    app.execute(
        "select pgtrickle.create_stream_table(%s, 'select id from orders')",
        ('"x\ncreate table smuggled(); --"',),
    )
    file = tmp_path / "definitions.sql"
    cli("uninstall", "--export", str(file), "--drop-tables", "--yes", role=SUPERUSER)
    cli("install", role=TRICKLE)
    admin.execute(file.read_text())
    assert admin.execute("select to_regclass('smuggled')").fetchone() == (None,)
    assert admin.execute("select count(*) from pgtrickle.stream_tables_info").fetchone() == (1,)


@pytest.mark.usefixtures("stream_tables")
def test_an_export_overwrites_nothing(cli, admin, tmp_path: Path):
    file = tmp_path / "definitions.sql"
    file.write_text("precious")
    answer = cli("uninstall", "--export", str(file), role=TRICKLE)
    assert answer.exit_code == 2
    assert "cannot be written" in answer.err
    assert file.read_text() == "precious"
    assert admin.execute("select count(*) from pgtrickle.stream_tables_info").fetchone() == (2,)


@pytest.mark.usefixtures("stream_tables")
def test_a_terminal_is_asked_before_definitions_go(cli, admin, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked = []

    def refuse(question: str, **_: object) -> None:
        asked.append(question)
        raise KeyboardInterrupt

    monkeypatch.setattr("pgtrickle.interfaces.cli.install.confirm", refuse)
    assert cli("uninstall", role=TRICKLE).exit_code != 0
    (question,) = asked
    assert question.startswith("This removes the definitions and the history of public.")
    assert "--export FILE" in question
    assert admin.execute("select to_regnamespace('pgtrickle') is not null").fetchone() == (True,)
    assert cli("uninstall", "--yes", role=TRICKLE).exit_code == 0


def test_a_served_database_is_kept(cli, database: Database, admin):
    with database.connect(autocommit=True) as connection:
        publish(connection, Vitals(), workers=1, busy=0, queued=0, more={})
    answer = cli("uninstall", "--yes", role=TRICKLE)
    assert answer.exit_code == 2
    assert "a sidecar serves this database" in answer.err
    assert "--force" in answer.err
    admin.execute("update pgtrickle.pgt_sidecars set seen_at = now() - interval '20 s'")
    assert cli("uninstall", "--yes", role=TRICKLE).exit_code == 0


def test_force_removes_it_all_the_same(cli, database: Database):
    with database.connect(autocommit=True) as connection:
        publish(connection, Vitals(), workers=1, busy=0, queued=0, more={})
    assert cli("uninstall", "--yes", "--force", role=TRICKLE).exit_code == 0


def test_an_owner_cannot_uninstall_and_is_told_the_grant(cli):
    answer = cli("uninstall", "--yes")
    assert answer.exit_code == 2
    assert "pgt_" not in answer.err
    assert TRICKLE in answer.err
