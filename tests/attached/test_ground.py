"""What happens in the other database reaches the stream tables, or is told: definitions, rights, captures."""

from __future__ import annotations

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import AttachedFailed, PgTrickleError
from tests.attached.conftest import ALIAS, Attached, refresh_by_name
from tests.fixtures.databases import APP

pytestmark = [pytest.mark.database, pytest.mark.slow]

QUERY = "select id::bigint as id, name || '' as name from crm.public.people"


@pytest.fixture
def people(attached: Attached, app):
    attached.table("id int primary key, name text not null, age int", "people")
    attached.app.execute("insert into people select g, 'p' || g, g from generate_series(1, 9) g")
    app.execute("select pgtrickle.create_stream_table('copied', %s)", (QUERY,))
    refresh_by_name(attached.engine, "copied")
    return attached


def follow_and_check(people: Attached, name: str = "copied", query: str = QUERY) -> None:
    refresh_by_name(people.engine, name)
    people.check(name, query, "people")
    people.follow(compares=True)


@pytest.mark.parametrize(
    "change",
    [
        "alter table people add column city text default 'x'",
        "alter table people drop column age",
        "alter table people alter column name type varchar(40)",
        "alter table people alter column name drop not null; update people set name = null where id = 2",
        "alter table people drop constraint people_pkey; insert into people values (1, 'again', 1)",
        "alter table people rename column age to years",
        "alter table people alter column id type bigint; update people set id = 3000000000 where id = 3",
    ],
)
def test_an_altered_table_is_followed(people, change):
    people.app.execute(change)
    people.app.execute("delete from people where id = 5")
    follow_and_check(people)


def test_a_column_that_is_gone_stops_the_stream_table_with_the_reason(people):
    people.app.execute("alter table people rename column name to called")
    with pytest.raises(PgTrickleError, match="name"):
        refresh_by_name(people.engine, "copied")
    people.app.execute("alter table people rename column called to name")
    people.follow()
    follow_and_check(people)


def test_a_dropped_table_stops_its_readers_and_one_of_that_name_is_read_again(people, app):
    people.table("id int primary key", "others")
    app.execute("select pgtrickle.create_stream_table('beside', 'select id from crm.public.others')")
    people.app.execute("insert into others values (1)")
    people.app.execute("drop table people")
    with pytest.raises(AttachedFailed, match=r"crm\.public\.people cannot be read: there is no such table"):
        refresh_by_name(people.engine, "copied")
    # a table of the same database is not held up
    refresh_by_name(people.engine, "beside")
    people.check("beside", "select id from crm.public.others", "others")
    people.app.execute("create table people (id int, name text, age int)")
    people.app.execute("grant select, trigger on people to trickle")
    people.app.execute("insert into people values (1, 'new', 2)")
    follow_and_check(people)


def test_a_right_that_is_revoked_is_told(people):
    people.app.execute("revoke select on people from trickle")
    with pytest.raises(AttachedFailed, match="may not read it there"):
        refresh_by_name(people.engine, "copied")
    people.app.execute("grant select on people to trickle")
    people.app.execute("update people set name = 'after' where id = 1")
    follow_and_check(people)


def test_hidden_rows_are_not_copied(people):
    people.app.execute("alter table people enable row level security")
    with pytest.raises(AttachedFailed, match="row-level security"):
        refresh_by_name(people.engine, "copied")


def test_more_columns_are_copied_when_a_query_reads_them(people, app):
    query = "select age, count(*) as n from crm.public.people group by age"
    people.app.execute("update people set age = 1 where id < 4")
    app.execute("select pgtrickle.create_stream_table('ages', %s)", (query,))
    follow_and_check(people, "ages", query)
    people.app.execute("update people set age = age + 1, name = name || '.'")
    follow_and_check(people, "ages", query)
    follow_and_check(people)


def test_a_trigger_that_was_off_leads_to_a_comparison(people, engine):
    people.app.execute("alter table people disable trigger all")
    people.app.execute("update people set name = 'unseen' where id = 2")
    people.app.execute("delete from people where id = 3")
    with people.database.connect() as there:
        (source,) = there.execute("select source_relid from pgtrickle.pgt_sources").fetchone()
        there.execute("select pgtrickle_internal.repair_source(%s)", (source,))
        there.commit()
    follow_and_check(people)


def test_a_trigger_that_is_off_is_repaired_on_the_way(people):
    people.app.execute("alter table people disable trigger all")
    people.app.execute("update people set name = 'unseen' where id = 2; delete from people where id = 3")
    follow_and_check(people)
    people.app.execute("update people set name = 'seen' where id = 4")
    follow_and_check(people)


def test_changes_are_kept_until_the_reader_has_passed_them(people):
    with people.database.connect() as there:
        (source,) = there.execute("select source_relid from pgtrickle.pgt_sources").fetchone()
        there.commit()
        people.app.execute("update people set name = 'kept'")
        for _ in range(3):
            there.execute("select pgtrickle_internal.rotate(%s, 0)", (source,))
            there.commit()
        follow_and_check(people)
        for _ in range(3):
            there.execute("select pgtrickle_internal.rotate(%s, 0)", (source,))
            there.commit()
        row = there.execute(
            f"select (select count(*) from pgtrickle_changes.changes_{source}_0)"
            f" + (select count(*) from pgtrickle_changes.changes_{source}_1)"
        ).fetchone()
        assert row == (0,)


def test_a_reader_that_was_forgotten_reads_everything_again(people):
    with people.database.connect() as there:
        there.execute("delete from pgtrickle.pgt_remote_readers")
    people.app.execute("update people set name = 'unkept' where id = 6")
    follow_and_check(people)


def test_a_touch_is_remembered_until_the_reader_has_seen_it(people):
    """A sidecar that comes back after minutes finds what was written meanwhile."""
    (database,) = people.engine.attached.list()
    assert not people.engine.attached.has_news(database)
    people.app.execute("update people set name = 'while away' where id = 1")
    with people.database.connect() as there:
        for side in (0, 1):
            there.execute("select pgtrickle_internal.empty_touched(%s, pg_current_snapshot())", (side,))
        there.commit()
    assert people.engine.attached.has_news(database)
    follow_and_check(people)
    assert not people.engine.attached.has_news(database)


def test_a_reader_that_is_lost_is_forgotten_after_a_week(people):
    with people.database.connect() as there:
        there.execute("update pgtrickle.pgt_remote_readers set seen_at = seen_at - interval '8 days'")
        there.execute("select pgtrickle_internal.drop_lost_readers()")
        assert there.execute("select count(*) from pgtrickle.pgt_remote_readers").fetchone() == (0,)
        there.commit()
    people.app.execute("delete from people where id = 8")
    follow_and_check(people)


def test_a_dropped_stream_table_ends_the_capture(people, app):
    app.execute("select pgtrickle.drop_stream_table('copied')")
    people.follow()
    with people.database.connect() as there:
        assert there.execute("select count(*) from pgtrickle.pgt_remote_readers").fetchone() == (0,)


def test_a_stream_table_that_is_created_again_at_once_has_all_rows(people, app):
    """The copy was dropped in between, and nobody has noticed that but the catalog."""
    app.execute("select pgtrickle.drop_stream_table('copied')")
    people.local.execute(
        "select pgtrickle_internal.release_source(source_relid) from pgtrickle.pgt_attached_tables"
    )
    assert people.local.execute("select count(*) from pgtrickle.pgt_sources").fetchone() == (0,)
    app.execute("select pgtrickle.create_stream_table('copied', %s)", (QUERY,))
    follow_and_check(people)


def test_detaching_is_refused_while_a_stream_table_reads_it_and_then_leaves_nothing(people, app):
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="copied reads a table of crm"):
        people.local.execute("select pgtrickle.detach_database('crm')")
    app.execute("select pgtrickle.drop_stream_table('copied')")
    people.local.execute("select pgtrickle.detach_database('crm')")
    people.follow()
    assert people.engine.attached.list() == ()
    assert people.local.execute("select count(*) from pgtrickle.attached_tables").fetchone() == (0,)
    with people.database.connect() as there:
        assert there.execute("select count(*) from pgtrickle.pgt_remote_readers").fetchone() == (0,)


def test_only_the_owner_of_pgtrickle_attaches_and_declares(people, app):
    for statement in (
        "select pgtrickle.attach_database('other', 'x')",
        "select pgtrickle.declare_source('crm', 'public', 'secrets')",
        "select pgtrickle.detach_database('crm')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="rights of the owner of pgtrickle"):
            app.execute(statement)


def test_a_stand_in_has_to_be_granted(people, app):
    people.local.execute(f'revoke select on pgtrickle_attached."{ALIAS}.public.people" from {APP}')
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
        app.execute("select pgtrickle.create_stream_table('refused', %s)", (QUERY,))


def test_code_of_another_role_is_not_run_there(people):
    """Whoever owns pgtrickle in the other database could have replaced its functions."""
    with people.database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute("alter schema pgtrickle owner to app")
    people.engine.attached.close()
    with pytest.raises(AttachedFailed, match="belongs to the role app"):
        refresh_by_name(people.engine, "copied")


def test_pgtrickle_must_be_installed_there(people):
    with people.database.connect(SUPERUSER, autocommit=True) as admin:
        admin.execute("alter schema pgtrickle rename to gone")
    people.engine.attached.close()
    with pytest.raises(AttachedFailed, match="is not installed"):
        refresh_by_name(people.engine, "copied")


def test_an_unknown_reference_is_named(people):
    people.engine.attached.resolve = {}.get
    with pytest.raises(AttachedFailed, match="knows no database customers of ours"):
        refresh_by_name(people.engine, "copied")


def test_a_database_that_is_down_is_named_and_loses_nothing(people):
    real = people.engine.attached.resolve
    people.engine.attached.resolve = {"customers of ours": "host=127.0.0.1 port=1 dbname=gone"}.get
    people.app.execute("delete from people where id < 3")
    with pytest.raises(AttachedFailed, match="crm cannot be followed"):
        refresh_by_name(people.engine, "copied")
    people.engine.attached.resolve = real
    follow_and_check(people)
