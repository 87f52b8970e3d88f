"""`pgtrickle run --http` in a process of its own: it says where the page is, serves it, and stops in time."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from pgtrickle.interfaces.connect import connect
from tests.fixtures.databases import TRICKLE
from tests.fixtures.waiting import eventually
from tests.http.conftest import plain_client

COMMAND = [sys.executable, "-m", "pgtrickle.interfaces.cli", "run"]


@pytest.mark.slow
@pytest.mark.spark
def test_a_sidecar_serves_its_page_from_the_start_until_it_is_stopped(database, source, app, tmp_path):
    source("orders(id int primary key, amount int)", rows=[(1, 10)])
    app.execute("select pgtrickle.create_stream_table('total', 'select sum(amount) as total from orders')")
    app.commit()
    environment = os.environ | {"PGTRICKLE_DSN": database.dsn(TRICKLE), "XDG_RUNTIME_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [*COMMAND, "--json", "--http", "127.0.0.1:0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    watchdog = threading.Timer(250, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        lines = (json.loads(line)["message"] for line in process.stderr)
        said = next(line for line in lines if line.startswith("The page is at"))
        found = re.fullmatch(r"The page is at (http://127\.0\.0\.1:\d+/); the token is in (.*)\.", said)
        assert found is not None
        file = Path(found[2])
        token = file.read_text().strip()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert len(token) > 40
        bearer = {"Authorization": f"Bearer {token}"}
        with plain_client(found[1]) as client:
            eventually(lambda: client.get("/readyz").status_code == 200)
            eventually(lambda: client.get("/api/v1/overview").json()["counts"]["fresh"] == 1, seconds=120)
            assert client.get("/api/v1/tables/total/rows").status_code == 401
            assert client.get("/api/v1/tables/total/rows", headers=bearer).json()["rows"] == [["10"]]
            detail = client.get("/api/v1/tables/total").json()
            assert [line["kind"] for line in detail["operators"]] == ["whole", "linear"]
            title = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode()
            assert token not in title
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "Traceback" not in rest
    assert token not in rest
    assert not file.exists()


def test_a_port_that_is_taken_ends_the_command_with_a_sentence(database, api, monkeypatch):
    address = str(api.server.address)
    environment = os.environ | {"PGTRICKLE_DSN": database.dsn(TRICKLE)}
    done = subprocess.run(
        [*COMMAND, "--http", address],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert f"cannot listen on {address}: Address already in use" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("PGTRICKLE_HTTP", "0.0.0.0:0", "needs a token"),
        ("PGTRICKLE_HTTP", "http://x", "It must be an address"),
        ("PGTRICKLE_HTTP_TOKEN", "short", "at least 16"),
        ("PGTRICKLE_HTTP_TOKEN_FILE", "/nowhere/token", "cannot be read"),
    ],
)
def test_a_bad_setting_ends_the_command_with_a_sentence(database, variable, value, expected):
    environment = os.environ | {"PGTRICKLE_HTTP": "127.0.0.1:0", "PGTRICKLE_DSN": database.dsn(TRICKLE)}
    done = subprocess.run(
        COMMAND, capture_output=True, text=True, env=environment | {variable: value}, timeout=60, check=False
    )
    assert (done.returncode, expected in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.spark
def test_a_sidecar_in_the_background_has_a_page(dsn, spark, caplog, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with connect(dsn, spark.small) as trickle, trickle.run_in_background(http="127.0.0.1:0") as sidecar:
        assert sidecar.http_url is not None
        page, _, code = sidecar.login_link().partition("#login=")
        assert page == sidecar.http_url
        with plain_client(page) as client:
            eventually(lambda: client.get("/healthz").status_code == 200)
            same = {"Sec-Fetch-Site": "same-origin"}
            assert client.post("/api/v1/session", json={"code": code}, headers=same).status_code == 200
            assert client.get("/api/v1/session", headers=same).json()["signed_in"] is True
    with pytest.raises(httpx.ConnectError):
        httpx.get(page)


def test_a_missing_package_is_reported_with_what_to_install(serve, monkeypatch):
    monkeypatch.setattr("pgtrickle.interfaces.http.web_server.find_spec", lambda name: None)
    with pytest.raises(Exception, match="fastapi, uvicorn") as refused:
        serve()
    assert "pip install 'pgtrickle[http]'" in str(refused.value)
