"""What tasks are given to find the database contains no secret."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from pgtrickle.model.errors import BadSetting, ExecutorCannotConnect
from pgtrickle.pipeline.distributed import StagingTarget, task_writer
from pgtrickle.pipeline.jvm.failures import executor_failure
from pgtrickle.pipeline.source import _source_of
from pgtrickle.pipeline.task_address import TaskAddress, TaskAddresses
from pgtrickle.postgres.addresses import address_parts, task_address, without_secrets

DSN = "postgresql://trickle:s3cret%2F!@db.example:5433/shop?sslmode=require"


@pytest.fixture
def addresses():
    addresses = TaskAddresses()
    yield addresses
    addresses.close()


def test_what_is_sent_to_tasks_contains_no_password(addresses):
    address = addresses.of(DSN)
    source = _source_of(address, "format")
    reader = source(
        {"shares": "[]", "columns": "[]", "settings": "[]", "snapshot": "", "weighted": "false"}
    ).reader(StructType())
    store = task_writer(StagingTarget(DSN, "staged", 1), address)
    for sent in (source, reader, store):
        pickled = cloudpickle.dumps(sent)
        assert b"db.example" in pickled
        assert b"s3cret" not in pickled
    assert "s3cret" not in repr(address)


def test_a_private_file_completes_the_address_on_this_machine_until_spark_ends(addresses):
    address = addresses.of(DSN)
    assert address.file is not None
    file = Path(address.file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert address._dsn() == DSN
    addresses.close()
    assert not file.parent.exists()
    assert address_parts(address._dsn()) == {
        "host": "db.example",
        "port": "5433",
        "dbname": "shop",
        "user": "trickle",
        "sslmode": "require",
    }


def test_an_address_without_a_secret_needs_no_file(addresses):
    assert addresses.of("host=db dbname=shop user=trickle").file is None


def test_the_environment_of_the_driver_decides_where_tasks_connect(monkeypatch):
    monkeypatch.setenv("PGHOST", "db.example")
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    shown = without_secrets("dbname=shop user=trickle")
    assert address_parts(shown)["host"] == "db.example"
    assert "s3cret" not in shown
    assert "host" not in address_parts(without_secrets("service=shop"))


def test_parts_of_the_address_can_be_replaced_for_tasks():
    parts = address_parts(task_address(DSN, "passfile=/etc/pgpass host=db.internal"))
    assert (parts["host"], parts["passfile"], parts["dbname"]) == ("db.internal", "/etc/pgpass", "shop")
    assert "password" not in parts


@pytest.mark.parametrize("given", ["password=s3cret", "sslpassword=s3cret", "s3cret"])
def test_a_password_for_tasks_is_refused_and_not_quoted(given):
    with pytest.raises(BadSetting) as refused:
        task_address(DSN, given)
    assert "s3cret" not in str(refused.value)


def test_a_task_that_cannot_connect_says_where_and_the_driver_understands_it():
    with pytest.raises(ExecutorCannotConnect) as failed:
        TaskAddress("host=127.0.0.1 port=1 dbname=shop user=trickle").connect()
    told = executor_failure(
        RuntimeError(f"Traceback …\n  x\nsome.{type(failed.value).__name__}: {failed.value}\n")
    )
    assert told is not None
    assert (told.message, told.hint) == (failed.value.message, failed.value.hint)
    assert "shop at 127.0.0.1:1" in told.message
    assert executor_failure(RuntimeError("another")) is None
