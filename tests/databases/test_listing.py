"""`list --all` shows the stream tables of all databases."""

from __future__ import annotations

import json

from pgtrickle.interfaces.cli.application import run
from tests.fixtures.databases import TRICKLE


def test_all_databases_of_a_server_are_listed(shop, server, capsys):
    first, second = shop(), shop()
    assert run(["list", "--all", "--json", "--dsn", server.dsn("postgres", TRICKLE)]) == 0
    found = {one["database"]: one for one in json.loads(capsys.readouterr().out)}
    for one in (first, second):
        (table,) = found[one.name]["tables"]
        assert (found[one.name]["error"], str(table["name"])) == (None, "public.sales")


def test_the_databases_of_a_file_are_listed_and_one_that_cannot_be_asked_says_why(shop, tmp_path, capsys):
    first = shop()
    secret = tmp_path / "secret"
    secret.write_text(first.database.server.password)
    port = first.database.server.port
    file = tmp_path / "databases.toml"
    file.write_text(
        f"""
        [database.shop]
        dsn = "host=127.0.0.1 port={port} dbname={first.name} user=trickle"
        password = {{ file = "{secret}" }}
        [database.gone]
        dsn = "host=127.0.0.1 port=1 dbname=gone"
        """
    )
    assert run(["list", "--all", "--config", str(file)]) == 0
    screen = capsys.readouterr().out
    assert "public.sales" in screen
    assert "cannot be listed" in screen
    assert "PGT-C001" in screen
