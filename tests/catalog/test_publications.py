"""A stream table is published with the rights of its owner, and can still be refreshed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from pgtrickle.catalog.tables import find
from pgtrickle.model.errors import RefreshFailed
from pgtrickle.model.stream_table import RefreshOutcome
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.story import refresh
from tests.fixtures.databases import APP, TRICKLE
from tests.security.conftest import no_spark

pytestmark = pytest.mark.every_postgres

PUBLISH = "select pgtrickle.stream_table_to_publication('sales')"
UNPUBLISH = "select pgtrickle.drop_stream_table_publication('sales')"
QUERY = "select id, amount from orders"


@pytest.fixture(autouse=True)
def sales(source, app, admin, database):
    source("orders(id int primary key, amount int)", rows=[(1, 10), (2, 20)])
    create(app, "sales", QUERY)
    admin.execute(f"grant create on database {database.name} to {APP}")


@pytest.fixture
def refreshed(database) -> Iterator[Callable[[str], RefreshOutcome]]:
    """Refreshes a stream table in the mode FULL, which needs no Spark."""
    engine = Engine(database.dsn(TRICKLE), no_spark, max_connections=5)

    def run(name: str) -> RefreshOutcome:
        with engine.connection() as connection:
            table = find(connection, name)
        return refresh(engine, table.id, initiated_by="test", waits=True)

    yield run
    engine.close()


@pytest.fixture
def told(app) -> list[tuple[str | None, str | None]]:
    """Severity and text of what the application is told."""
    found: list[tuple[str | None, str | None]] = []
    app.add_notice_handler(lambda notice: found.append((notice.severity, notice.message_primary)))
    return found


def create(app: psycopg.Connection, name: str, query: str) -> None:
    app.execute(
        "select pgtrickle.create_stream_table(%s, %s, schedule => null, refresh_mode => 'FULL')",
        (name, query),
    )


def identity(app: psycopg.Connection, name: str = "sales") -> str:
    row = app.execute("select relreplident from pg_class where oid = %s::regclass", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def published(app: psycopg.Connection) -> list[tuple[object, ...]]:
    return app.execute("select pubname, tablename from pg_publication_tables order by 1, 2").fetchall()


def test_a_published_stream_table_can_be_refreshed(app, refreshed):
    refreshed("sales")
    assert app.execute(PUBLISH).fetchone() == ("pgt_pub_sales",)
    assert published(app) == [("pgt_pub_sales", "sales")]
    assert identity(app) == "f"
    app.execute("update orders set amount = 11 where id = 1")
    app.execute("delete from orders where id = 2")
    assert (refreshed("sales").rows_deleted, identity(app)) == (2, "f")


def test_below_wal_level_logical_it_says_that_nobody_can_subscribe_and_what_to_do(app):
    notices: list[tuple[str | None, ...]] = []
    app.add_notice_handler(lambda n: notices.append((n.severity, n.message_primary, n.message_hint)))
    app.execute(PUBLISH)
    assert notices == [
        (
            "WARNING",
            "nothing can subscribe to public.sales yet: wal_level is replica",
            "Run alter system set wal_level = 'logical', and restart the server.",
        )
    ]


def test_publishing_again_changes_nothing_and_says_so(app, told):
    app.execute(PUBLISH)
    told.clear()
    assert app.execute(PUBLISH).fetchone() == ("pgt_pub_sales",)
    assert ("NOTICE", "stream table public.sales is already published by pgt_pub_sales") in told
    with pytest.raises(
        psycopg.errors.ObjectNotInPrerequisiteState, match="already published by pgt_pub_sales"
    ):
        app.execute("select pgtrickle.stream_table_to_publication('sales', 'news')")


def test_it_takes_part_in_the_transaction(app):
    with app.transaction(force_rollback=True):
        app.execute(PUBLISH)
        assert identity(app) == "f"
    assert (published(app), identity(app)) == ([], "d")


@pytest.mark.parametrize("name", ["news", "Big \"News\" 'x'", "ü" * 31])
def test_a_publication_can_have_any_name(app, name):
    row = app.execute("select pgtrickle.stream_table_to_publication('sales', %s)", (name,)).fetchone()
    assert row == (name,)
    app.execute(UNPUBLISH)
    assert published(app) == []


@pytest.mark.parametrize("name", ["", "x" * 64])
def test_what_is_no_name_is_refused(app, name):
    with pytest.raises(psycopg.errors.InvalidName, match="is not the name of a publication"):
        app.execute("select pgtrickle.stream_table_to_publication('sales', %s)", (name,))


def test_a_long_name_is_cut(app):
    long = "ä" * 31
    create(app, long, QUERY)
    row = app.execute("select pgtrickle.stream_table_to_publication(%s)", (long,)).fetchone()
    assert row == ("pgt_pub_" + "ä" * 27,)


def test_a_name_that_is_taken_is_refused(app):
    app.execute("create publication pgt_pub_sales")
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        app.execute(PUBLISH)
    assert "publication => 'pgt_pub_sales_2'" in (refused.value.diag.message_hint or "")


def test_it_needs_create_on_the_database(app, admin, database):
    admin.execute(f"revoke create on database {database.name} from {APP}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
        app.execute(PUBLISH)
    assert refused.value.diag.message_hint == f"grant create on database {database.name} to app"


def test_only_the_owner_may_publish_and_unpublish(app, connection):
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="you must own stream table"):
        connection.execute(PUBLISH)
    connection.rollback()
    app.execute(PUBLISH)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="you must own publication pgt_pub_sales"):
        connection.execute(UNPUBLISH)


def test_what_pgtrickle_did_not_publish_it_does_not_drop(app):
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refused:
        app.execute(UNPUBLISH)
    assert "stream_table_to_publication('public.sales')" in (refused.value.diag.message_hint or "")
    app.execute("create publication mine for table sales")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refused:
        app.execute(UNPUBLISH)
    assert (refused.value.diag.message_hint or "").startswith("It belongs to mine.")


def test_a_publication_to_which_somebody_added_a_table_is_kept(app):
    app.execute(PUBLISH)
    app.execute("alter publication pgt_pub_sales add table orders")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match=r"also publishes public\.orders"):
        app.execute(UNPUBLISH)
    app.execute("select pgtrickle.drop_stream_table('sales')")
    assert published(app) == [("pgt_pub_sales", "orders")]


def test_a_renamed_publication_is_still_ours(app):
    app.execute(PUBLISH)
    app.execute("alter publication pgt_pub_sales rename to news")
    app.execute(UNPUBLISH)
    assert published(app) == []


def test_a_key_or_a_chosen_index_stays_the_replica_identity(app):
    app.execute("alter table sales add primary key (id)")
    app.execute(PUBLISH)
    assert identity(app) == "d"
    create(app, "others", QUERY)
    app.execute("alter table others alter id set not null")
    app.execute("create unique index others_id on others (id)")
    app.execute("alter table others replica identity using index others_id")
    app.execute("select pgtrickle.stream_table_to_publication('others')")
    assert identity(app, "others") == "i"


def test_values_that_subscribers_cannot_compare_are_named(app, told):
    create(app, "docs", "select id, to_json(amount) as doc, array[point(1, 2)] as places from orders")
    app.execute("select pgtrickle.stream_table_to_publication('docs')")
    (warning,) = [text for _, text in told if "cannot be compared" in (text or "")]
    assert "values of doc (json), places (point[]) cannot be compared" in (warning or "")


def test_who_publishes_a_stream_table_without_identity_is_told_what_to_do(app, refreshed):
    refreshed("sales")
    app.execute("create publication mine for table sales")
    app.execute("delete from orders where id = 1")
    with pytest.raises(RefreshFailed, match="replica identity") as failed:
        refreshed("sales")
    assert failed.value.hint is not None
    statement = failed.value.hint.partition("its owner has to run: ")[2]
    assert statement == "alter table public.sales replica identity full"
    app.execute(statement)
    assert refreshed("sales").rows_deleted == 1


def test_a_column_list_without_the_identity_is_named(app, refreshed):
    refreshed("sales")
    app.execute("alter table sales replica identity full")
    app.execute("create publication mine for table sales (id)")
    app.execute("delete from orders where id = 1")
    with pytest.raises(RefreshFailed) as failed:
        refreshed("sales")
    assert "column list or a row filter" in (failed.value.hint or "")


@pytest.mark.parametrize("what", ["all tables", "tables in schema public"])
def test_a_stream_table_that_is_created_into_a_publication_has_an_identity(app, admin, refreshed, what):
    admin.execute(f"create publication everything for {what}")
    create(app, "later", QUERY)
    assert identity(app, "later") == "f"
    refreshed("later")
    app.execute("delete from orders where id = 1")
    assert refreshed("later").rows_deleted == 1


def test_the_sidecar_identifies_tables_that_are_published_later_if_it_may(app, admin, connection):
    admin.execute("create publication everything for all tables")
    assert connection.execute(
        "select relation_id::regclass::text from pgtrickle_internal.unidentified_tables()"
    ).fetchall() == [("sales",)]
    assert connection.execute("select pgtrickle_internal.identify_unidentified()").fetchone() == (0,)
    connection.commit()
    admin.execute(f"grant {APP} to {TRICKLE}")
    try:
        assert connection.execute("select pgtrickle_internal.identify_unidentified()").fetchone() == (1,)
        connection.commit()
    finally:
        admin.execute(f"revoke {APP} from {TRICKLE}")
    assert identity(app) == "f"


def test_other_columns_keep_the_publication_and_an_identity(app, refreshed, told):
    app.execute("alter table sales alter id set not null")
    app.execute("create unique index sales_id on sales (id)")
    app.execute("alter table sales replica identity using index sales_id")
    app.execute(PUBLISH)
    app.execute("select pgtrickle.alter_stream_table('sales', 'select amount, 1 as one from orders')")
    assert published(app) == [("pgt_pub_sales", "sales")]
    assert identity(app) == "f"
    assert any("subscribers do not receive the new columns" in (text or "") for _, text in told)
    refreshed("sales")
    app.execute("delete from orders where id = 1")
    assert refreshed("sales").rows_deleted == 1
    app.execute(UNPUBLISH)


def test_status_shows_every_publication_to_everyone(app, connection):
    app.execute("create publication mine for table sales")
    app.execute(PUBLISH)
    rows = connection.execute(
        "select stream_table, publication, slot, active, is_late from pgtrickle.publication_status order by 2"
    ).fetchall()
    assert rows == [
        ("public.sales", "mine", None, None, False),
        ("public.sales", "pgt_pub_sales", None, None, False),
    ]


def test_only_logical_slots_of_this_database_are_subscribers(app):
    with pytest.raises(
        psycopg.errors.InvalidParameterValue, match="there is no logical replication slot 'nope'"
    ):
        app.execute("select pgtrickle.register_subscriber('sales', 'nope')")
    # nothing to forget is fine
    app.execute("select pgtrickle.unregister_subscriber('sales', 'nope')")


def test_only_the_owner_registers_subscribers(connect, admin, database):
    admin.execute(
        f"do $$ begin create role loader login password '{database.server.password}';"
        " exception when duplicate_object then null; end $$"
    )
    stranger = connect("loader")
    for statement in (
        "select pgtrickle.register_subscriber('public.sales', 'nope')",
        "select pgtrickle.unregister_subscriber('public.sales', 'nope')",
        "insert into pgtrickle_internal.own_subscribers (pgt_id, slot) values (1, 'forged')",
    ):
        with pytest.raises(psycopg.errors.Error) as refused:
            stranger.execute(statement)
        assert refused.value.sqlstate in ("42501", "44000"), refused.value
        stranger.rollback()
