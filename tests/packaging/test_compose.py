"""The compose file: its parts fit together, and what it runs does on a real server what it should."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import psycopg
import pytest

import pgtrickle
from pgtrickle.embedded import bundled_binaries
from tests.fixtures.poolers import new_pooler
from tests.packaging.files import COMPOSE, ROOT, compose

SQL = COMPOSE / "sql"


def test_services_wait_for_services_that_exist_and_can_say_so():
    services = compose()["services"]
    assert {"postgres", "pgbouncer", "sidecar", "writer"} <= set(services)
    for name, service in services.items():
        for other, waits in service.get("depends_on", {}).items():
            assert other in services, name
            if waits["condition"] == "service_healthy":
                assert "test" in services[other]["healthcheck"], other
            else:
                assert waits["condition"] == "service_completed_successfully"
                # what ends must not be started again
                assert "restart" not in services[other], other


def test_addresses_name_services_and_their_ports():
    services = compose()["services"]
    ports = {"postgres": 5432, "pgbouncer": 6432}
    for name, service in services.items():
        for value in service.get("environment", {}).values():
            for host, port in re.findall(r"@([a-z]+):(\d+)/", str(value)):
                assert ports[host] == int(port), name
        host = service.get("environment", {}).get("PGHOST")
        assert host is None or host in services
    pooler = (COMPOSE / "pgbouncer" / "pgbouncer.ini").read_text()
    assert "pool_mode = transaction" in pooler
    assert "listen_port = 6432" in pooler
    assert "host=postgres port=5432 dbname=shop" in pooler


def test_files_that_are_mounted_or_built_exist():
    for name, service in compose()["services"].items():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("."):
                assert (COMPOSE / source).is_file(), f"{name}: {source}"
            else:
                assert source in compose()["volumes"]
        if isinstance(build := service.get("build"), dict):
            context = (COMPOSE / build["context"]).resolve()
            assert context == ROOT
            assert (context / build["dockerfile"]).is_file()
        elif build:
            assert (COMPOSE / build / "Dockerfile").is_file()


def test_no_secret_has_a_default_and_all_are_in_the_example():
    text = (COMPOSE / "compose.yaml").read_text()
    variables = set(re.findall(r"\$\{(\w+)", text))
    assert variables == set(re.findall(r"\$\{(\w+):\?", text))
    example = dict(
        line.split("=", 1) for line in (COMPOSE / ".env.example").read_text().splitlines() if "=" in line
    )
    assert example == dict.fromkeys(variables, "")


def test_everything_is_published_on_loopback_only():
    published = [port for service in compose()["services"].values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


@pytest.mark.slow
@pytest.mark.own_server
def test_the_shop_of_the_compose_file_is_followed(own_server, spark):
    with psycopg.connect(own_server.dsn(), autocommit=True) as admin:
        admin.execute("create database shop")
    password = own_server.password
    _psql(own_server, "postgres", SQL / "roles.sql", f"--set=password={password}")
    _psql(own_server, "postgres", SQL / "20-shop.sql")
    size = int(_pooler_settings()["default_pool_size"])
    with (
        new_pooler(own_server, ("trickle", "app"), size=size) as pooler,
        pgtrickle.connect(pooler.dsn("shop", "trickle"), spark=spark.small) as trickle,
    ):
        trickle.install()
        _psql(own_server, "app", SQL / "stream_tables.sql")
        _psql(own_server, "app", SQL / "stream_tables.sql")
        names = [str(table.name) for table in trickle.list()]
        assert names == ["public.best_customers", "public.revenue_by_region"]
        for name in names:
            trickle.refresh(name)
        _psql(own_server, "app", SQL / "write.sql", port=pooler.port)
        for name in names:
            # the stream tables are in the mode AUTO, and the shop is small
            assert trickle.refresh(name).action in {pgtrickle.Action.DIFFERENTIAL, pgtrickle.Action.FULL}
        assert len(trickle.verify()) == 2


def test_pgbouncer_gets_the_passwords_that_its_configuration_reads(tmp_path):
    script = (COMPOSE / "pgbouncer" / "start.sh").read_text()
    users = _pooler_settings()["auth_file"]
    assert users in script
    run = script.replace(str(Path(users).parent), str(tmp_path)).replace("exec pgbouncer", "exec true")
    subprocess.run(["sh", "-c", run], env={**os.environ, "PGTRICKLE_PASSWORD": "s3cret"}, check=True)
    written = tmp_path / Path(users).name
    assert written.read_text() == '"trickle" "s3cret"\n"app" "s3cret"\n'
    assert written.stat().st_mode & 0o077 == 0


def _pooler_settings() -> dict[str, str]:
    text = (COMPOSE / "pgbouncer" / "pgbouncer.ini").read_text()
    return dict(re.findall(r"^(\w+) = (.*)$", text, re.MULTILINE))


def _psql(server, role: str, file: Path, *options: str, port: int | None = None) -> None:
    """Run a file as its container does."""
    subprocess.run(
        [
            bundled_binaries() / "psql",
            "--no-psqlrc",
            "--quiet",
            "--output=/dev/null",
            "--set=ON_ERROR_STOP=1",
            *options,
            f"--file={file}",
        ],
        env={
            **os.environ,
            "PGHOST": "127.0.0.1",
            "PGPORT": str(port or server.port),
            "PGUSER": role,
            "PGDATABASE": "shop",
            "PGPASSWORD": server.password,
        },
        check=True,
    )
