"""How people say how much data the refreshes of a process may hold."""

from __future__ import annotations

import pytest

import pgtrickle
from pgtrickle.changes.memory import LEAST, SHARE
from pgtrickle.model.errors import CommandRefused
from pgtrickle.model.settings import MEMORY_LIMIT
from tests.fixtures.databases import TRICKLE


@pytest.mark.parametrize(
    ("text", "size"), [("512MB", 512 << 20), ("2g", 2 << 30), (" 64 MiB ", 64 << 20), (3_000_000, 3_000_000)]
)
def test_a_size_has_a_unit_or_is_in_bytes(text, size):
    assert MEMORY_LIMIT.value(str(text)) == size


@pytest.mark.parametrize("text", ["much", "-1", "0", "500kB", "1.5GB", "2 GB of it"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(CommandRefused, match="memory_limit cannot be") as refusal:
        MEMORY_LIMIT.value(text)
    assert "a size of at least 1 MB" in (refusal.value.hint or "")


def test_a_sidecar_tells_a_bad_limit_before_it_starts_spark(cli, monkeypatch):
    answer = cli("run", "--memory-limit", "plenty", role=TRICKLE)
    assert answer.exit_code == 2
    assert "512MB" in answer.err
    monkeypatch.setenv("PGTRICKLE_MEMORY_LIMIT", "none")
    assert cli("run", role=TRICKLE).exit_code == 2


def test_python_takes_it_as_an_argument_or_from_the_environment(database, monkeypatch):
    dsn = database.dsn(TRICKLE)
    with pgtrickle.connect(dsn, memory_limit="64MB") as trickle:
        assert trickle.engine.memory.limit() == 64 << 20
    monkeypatch.setenv("PGTRICKLE_MEMORY_LIMIT", "32MB")
    with pgtrickle.connect(dsn) as trickle:
        assert trickle.engine.memory.limit() == 32 << 20


def test_without_one_it_is_a_part_of_the_heap(engine):
    heap = engine.spark.heap_bytes
    assert engine.memory.limit() == max(LEAST, heap // SHARE)
