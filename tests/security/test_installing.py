"""Who can create schemas in the database cannot put functions of theirs in the place of ours."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from pgtrickle.catalog.install import check_may_serve, install
from pgtrickle.catalog.remains import SCHEMAS
from pgtrickle.model.errors import CommandRefused, PgTrickleError
from tests.fixtures.databases import TRICKLE, create_database, drop_database
from tests.security.conftest import MALLORY

pytestmark = pytest.mark.every_postgres


@pytest.mark.parametrize("role", [TRICKLE, "postgres"])
def test_a_schema_that_somebody_else_has_prepared_is_not_used(server, mallory, role):
    for schema in SCHEMAS:
        database = create_database(server, f"prepared_{schema}", "template1")
        try:
            with closing(database.connect("postgres", autocommit=True)) as admin:
                admin.execute(f"grant create on database {database.name} to {MALLORY}")
            with closing(database.connect(MALLORY, autocommit=True)) as attacker:
                attacker.execute(f"create schema {schema}; grant all on schema {schema} to public")
            with closing(database.connect(role)) as connection:
                try:
                    install(connection)
                    connection.commit()
                except (PgTrickleError, psycopg.Error):
                    connection.rollback()
                    continue
                owners = connection.execute(
                    "select distinct pg_get_userbyid(nspowner) from pg_namespace where nspname = any (%s)",
                    (list(SCHEMAS),),
                ).fetchall()
            assert owners == [(role,)], schema
        finally:
            drop_database(database)


@pytest.mark.parametrize(
    "default",
    [
        f"grant select on tables to {MALLORY}",
        f"grant execute on functions to {MALLORY}",
        "grant usage on schemas to public",
        "grant all on sequences to public",
    ],
)
def test_default_privileges_of_the_sidecar_give_nobody_a_way_in(server, mallory, default):
    database = create_database(server, "by_default", "template1")
    try:
        with closing(database.connect("postgres", autocommit=True)) as admin:
            admin.execute(f"grant create on database {database.name} to {TRICKLE}; create schema shop")
            admin.execute(f"alter default privileges for role {TRICKLE} {default}")
            with closing(database.connect(TRICKLE)) as connection:
                with pytest.raises(CommandRefused, match=f"default privileges of {TRICKLE}"):
                    install(connection)
                connection.rollback()
                revoke = default.replace("grant", "revoke").replace(" to ", " from ")
                admin.execute(f"alter default privileges for role {TRICKLE} {revoke}")
                admin.execute(
                    f"alter default privileges for role {TRICKLE} in schema shop"
                    f" grant all on tables to {MALLORY}"
                )
                install(connection)
    finally:
        drop_database(database)


def test_a_sidecar_serves_only_the_role_that_it_may_act_as(database, admin, mallory):
    for role, may in ((TRICKLE, True), ("postgres", False), (MALLORY, False)):
        with closing(database.connect(role)) as connection:
            if may:
                check_may_serve(connection)
            else:
                with pytest.raises(CommandRefused, match=f"belongs to the role {TRICKLE}"):
                    check_may_serve(connection)
