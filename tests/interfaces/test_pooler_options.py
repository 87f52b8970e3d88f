"""How people say what stands between pgtrickle and the server, and how many connections it may have."""

from __future__ import annotations

import pytest

import pgtrickle
from pgtrickle.model.errors import CommandRefused, TooFewConnections
from pgtrickle.model.settings import Pooling
from tests.fixtures.databases import TRICKLE


def test_a_stream_table_is_created_and_altered_with_pooler_compatibility(cli, source, admin):
    source("orders(id int primary key)")
    mode = "select pooler_compatibility_mode from pgtrickle.pgt_stream_tables where pgt_name = %s"
    assert cli("create", "a", "--query", "select id from orders", "--pooler-compatibility").exit_code == 0
    assert cli("create", "b", "--query", "select id from orders").exit_code == 0
    assert admin.execute(mode, ("a",)).fetchone() == (True,)
    assert admin.execute(mode, ("b",)).fetchone() == (False,)
    answer = cli("alter", "a", "--no-pooler-compatibility")
    assert answer.out.strip() == "Altered stream table public.a: pooler compatibility mode."
    assert cli("alter", "b", "--schedule", "5s").exit_code == 0
    assert cli("alter", "b", "--pooler-compatibility").exit_code == 0
    assert admin.execute(mode, ("a",)).fetchone() == (False,)
    assert admin.execute(mode, ("b",)).fetchone() == (True,)


@pytest.mark.spark
def test_a_sidecar_with_too_few_connections_does_not_start(cli):
    answer = cli("run", "--max-connections", "2", role=TRICKLE)
    assert answer.exit_code == 2
    assert "2 connections are too few" in answer.err
    assert "at least 5 connections" in answer.err


@pytest.mark.spark
def test_the_environment_says_it_where_nobody_else_does(cli, monkeypatch):
    monkeypatch.setenv("PGTRICKLE_MAX_CONNECTIONS", "3")
    assert "3 connections are too few" in cli("run", role=TRICKLE).err
    monkeypatch.setenv("PGTRICKLE_POOLER", "perhaps")
    assert cli("run", role=TRICKLE).exit_code == 2


def test_python_takes_both_as_arguments_or_from_the_environment(database, monkeypatch):
    dsn = database.dsn(TRICKLE)
    with pgtrickle.connect(dsn, max_connections=7, pooler="yes") as trickle:
        assert (trickle.engine.pool.most, trickle.engine.pool.is_pooled) == (7, True)
    monkeypatch.setenv("PGTRICKLE_MAX_CONNECTIONS", "8")
    monkeypatch.setenv("PGTRICKLE_POOLER", "no")
    with pgtrickle.connect(dsn) as trickle:
        assert (trickle.engine.pool.most, trickle.engine.pooling) == (8, Pooling.NO)
    with pytest.raises(TooFewConnections):
        pgtrickle.connect(dsn, max_connections=4)
    with pytest.raises(CommandRefused, match="pooler cannot be 'perhaps'"):
        pgtrickle.connect(dsn, pooler="perhaps")
