"""A database `crm` in which nothing of ours may be created, attached by its log.

Its role `reader` may connect, read the tables and use replication slots, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import psycopg
import pytest

from pgtrickle.capture.attached.log.server import PUBLICATION
from pgtrickle.embedded import SUPERUSER, Server
from pgtrickle.refresh.engine import Engine
from tests.attached.conftest import ALIAS, Attached
from tests.fixtures.databases import (
    APP,
    TRICKLE,
    Database,
    Templates,
    allow_wal,
    create_database,
    drop_database,
    quick_secret,
)
from tests.fixtures.servers import Servers

READER = "reader"

OURS = """
select 'schema ' || n.nspname from pg_namespace n where n.nspname !~ '^(pg_|information_schema$|public$)'
union all
select 'function ' || p.proname from pg_proc p where p.pronamespace = 'public'::regnamespace
union all
select 'trigger ' || t.tgname from pg_trigger t where not t.tgisinternal
union all
select 'relation of the reader ' || c.relname from pg_class c where pg_get_userbyid(c.relowner) = 'reader'
"""
"""What nobody but us would have created there."""


@pytest.fixture
def server(wal_servers: Servers, pg_version: int, templates: Templates) -> Server:
    server = wal_servers[pg_version]
    templates.ensure(server)
    allow_wal(server)
    return server


def create_reader(server: Server) -> None:
    """Create the role that reads the other database."""
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        if admin.execute("select from pg_roles where rolname = %s", (READER,)).fetchone() is None:
            admin.execute(
                f"create role {READER} login replication password '{quick_secret(server.password)}'"
            )


@dataclass(slots=True)
class Logged(Attached):
    """The other database, which is followed by its log."""

    admin: psycopg.Connection
    """As its administrator."""

    def table(self, definition: str, name: str, *, is_full: bool = False) -> str:
        """Create a table there as an application does, publish it as an administrator, and declare it."""
        self.app.execute(f"create table {name} ({definition})")
        self.app.execute(f"grant select on {name} to {READER}")
        if is_full:
            self.app.execute(f"alter table {name} replica identity full")
        self.publish(name)
        return self.declare(name)

    def publish(self, name: str) -> None:
        if self.admin.execute("select from pg_publication").fetchone() is None:
            self.admin.execute(
                f"create publication {PUBLICATION} for table {name} with (publish_via_partition_root = true)"
            )
        else:
            self.admin.execute(f"alter publication {PUBLICATION} add table {name}")

    def position(self, table: str) -> str | None:
        row = self.local.execute(
            "select position::text from pgtrickle.attached_tables where origin_name = %s", (table,)
        ).fetchone()
        assert row is not None
        return None if row[0] is None else str(row[0])

    def slots(self) -> list[str]:
        rows = self.admin.execute(
            "select slot_name from pg_replication_slots where database = current_database() order by 1"
        )
        return [name for (name,) in rows]


@pytest.fixture
def crm(server: Server, database_names: Iterator[str], request: pytest.FixtureRequest) -> Iterator[Database]:
    """The other database; its parameter is another encoding than UTF-8."""
    if hasattr(request, "param"):
        database = Database(server, next(database_names))
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute(
                f"create database {database.name} template template0 locale 'C' encoding '{request.param}'"
            )
    else:
        database = create_database(server, next(database_names), "template1")
    create_reader(server)
    with closing(database.connect(SUPERUSER, autocommit=True)) as admin:
        admin.execute(f"revoke all on database {database.name} from public, {TRICKLE}")
        admin.execute(f"grant connect on database {database.name} to {APP}, {READER}")
        admin.execute("revoke create on schema public from public")
        admin.execute(f"grant create on schema public to {APP}")
    yield database
    with closing(database.connect(SUPERUSER, autocommit=True)) as admin:
        assert admin.execute(OURS).fetchall() == []
        admin.execute(
            "select pg_terminate_backend(active_pid, 5000) from pg_replication_slots"
            " where database = current_database() and active"
        )
        admin.execute(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots"
            " where database = current_database() and not temporary"
        )
    drop_database(database)


@pytest.fixture
def attached(crm: Database, database: Database, engine: Engine) -> Iterator[Logged]:
    engine.attached.resolve = {"customers of ours": crm.dsn(READER)}.get
    with (
        closing(crm.connect(APP, autocommit=True)) as app,
        closing(crm.connect(SUPERUSER, autocommit=True)) as admin,
        closing(database.connect(TRICKLE, autocommit=True)) as local,
    ):
        local.execute(
            "select pgtrickle.attach_database(%s, 'customers of ours', cdc_mode => 'wal')", (ALIAS,)
        )
        yield Logged(crm, app, local, engine, admin)
        engine.attached.close()
