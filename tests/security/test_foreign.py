"""A foreign table lends its owner none of the credentials that the sidecar has on other servers."""

from __future__ import annotations

import pytest

from tests.fixtures.databases import TRICKLE
from tests.fixtures.servers import SYSTEM
from tests.security.conftest import MALLORY

# the embedded PostgreSQL ships no foreign data wrapper
pytestmark = pytest.mark.on_postgres(SYSTEM)


def test_a_foreign_table_of_the_attackers_is_not_read_with_a_mapping_of_the_sidecars(attack, database):
    """The server leads back to this database, and there the mapping of the sidecar may read the secret."""
    server = database.server
    attack.admin.execute(
        "create extension postgres_fdw;"
        "create server there foreign data wrapper postgres_fdw"
        f" options (host '127.0.0.1', port '{server.port}', dbname '{database.name}');"
        f"grant usage on foreign server there to {MALLORY};"
        f"create user mapping for {MALLORY} server there"
        f" options (user '{MALLORY}', password '{server.password}');"
        f"create user mapping for {TRICKLE} server there"
        f" options (user '{TRICKLE}', password '{server.password}')"
    )
    attack.run(
        "create foreign table mallory.far(id int, word text) server there"
        " options (schema_name 'vault', table_name 'secrets')",
        f"grant select on mallory.far to {TRICKLE}",
    )
    # a query that need not fetch a row is enough to create a stream table
    assert "the credentials of the sidecar" in str(attack.create("select id, word from mallory.far"))
    assert attack.succeeded() == []


def test_a_mapping_that_comes_later_stops_the_refresh(attack, database):
    server = database.server
    attack.admin.execute(
        "create extension postgres_fdw;"
        "create server there foreign data wrapper postgres_fdw"
        f" options (host '127.0.0.1', port '{server.port}', dbname '{database.name}');"
        f"grant usage on foreign server there to {MALLORY};"
        f"create user mapping for public server there"
        f" options (user '{MALLORY}', password '{server.password}')"
    )
    attack.run(
        "create foreign table mallory.far(id int, word text) server there"
        " options (schema_name 'mallory', table_name 't')",
        f"grant select on mallory.far to {TRICKLE}",
    )
    assert attack.create("select id, word from mallory.far") is None
    assert attack.refresh() is None
    attack.admin.execute(
        f"create user mapping for {TRICKLE} server there"
        f" options (user '{TRICKLE}', password '{server.password}')"
    )
    attack.run("alter foreign table mallory.far options (set schema_name 'vault', set table_name 'secrets')")
    assert "user mapping" in str(attack.refresh())
    assert attack.succeeded() == []
