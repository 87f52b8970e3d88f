"""Outer joins, subqueries, windows, set operations, first rows and the clock under conflicting changes."""

from __future__ import annotations

import pytest

PEOPLE = "p(id int primary key deferrable, k int, x int, name text)"
THINGS = "q(k int, y int, note text)"


@pytest.fixture
def both(source):
    people = [(1, 1, 10, "a"), (2, 1, 20, "b"), (3, None, 30, "c"), (4, 2, None, "d"), (5, 3, 5, "e")]
    source(PEOPLE, rows=people)
    source(THINGS, rows=[(1, 1, "u"), (1, 1, "u"), (None, 2, "v"), (2, None, "w"), (4, 4, None)])


def play(tables):
    tables.after("insert into q values (3, 9, 'n')", "delete from p where id = 2")
    tables.after("update q set k = null where k = 1", "update p set k = 4 where id = 1")
    tables.after("insert into q values (1, 7, 'x'), (1, 7, 'x')", "insert into p values (6, 1, 7, 'f')")
    tables.after(
        "update p set id = case id when 1 then 3 when 3 then 1 else id end, k = 2 where id in (1, 3)"
    )
    tables.after("delete from q where k is null", "delete from p where k is null", "update q set y = y + 1")
    tables.after("delete from q")
    tables.after("insert into q select k, x, name from p", "update p set x = null where id = 5")
    tables.after("delete from p", "insert into p values (9, 9, 9, 'z')")
    tables.stand_still()


@pytest.mark.light
def test_outer_joins_pad_and_unpad(both, followed):
    play(
        followed(
            "select p.id, p.k, q.y from p left join q on p.k = q.k",
            "select p.id, q.k, q.y from p full join q on p.k = q.k",
            "select p.id, q.note from p right join q on p.k = q.k and q.y < p.x",
            "select p.k, count(q.k) as n, sum(q.y) as s from p left join q on p.k = q.k group by p.k",
            "select coalesce(q.note, 'none') as note, count(*) as n from p left join q using (k) group by 1",
            "select a.id, b.id as other from (select p.id, q.y from p left join q on p.k = q.k) a left join"
            " p b on a.y = b.x",
        )
    )


@pytest.mark.light
def test_exists_and_in_keep_the_rules_of_null(both, followed):
    play(
        followed(
            "select id from p where exists (select 1 from q where q.k = p.k and q.y > 0)",
            "select id from p where not exists (select 1 from q where q.k = p.k)",
            "select id from p where k in (select k from q)",
            "select id from p where k not in (select k from q)",
            "select id from p where (k, x) not in (select k, y from q)",
            "select id, k in (select k from q) as is_in, x > all (select y from q) as above from p",
            "select id from p where x = any (select y from q) or k = 1",
            "select id from p where case when exists (select from q where q.k = p.k) then x > 5"
            " else x < 8 end",
        )
    )


def test_scalar_subqueries_of_nothing_are_null(both, followed):
    play(
        followed(
            "select id, (select count(*) from q where q.k = p.k) as n from p",
            "select id, (select max(y) from q where q.k = p.k) as top from p",
            "select id from p where x > (select avg(y) from q where q.k = p.k)",
            "select id, x - (select min(y) from q) as above from p",
            "select k, sum(x) as s from p group by k having sum(x) > (select avg(y) from q)",
            "select id, (select note from q where q.k = p.k order by y desc, note limit 1) as last from p",
        )
    )


def test_subqueries_that_nobody_reads_leave_the_rows_alone(both, followed):
    play(
        followed(
            "select name from (select (select string_agg(note, ',' order by note) from q) as notes, name"
            " from p) s",
            "select n from (select (select percentile_disc(0.5) within group (order by x) from p) as m,"
            " 1.25 as n from generate_series(0, 1)) s",
            "select count(*) as n from p, (select string_agg(note, ',' order by note) as notes from q) s",
            "select p.id, s.y from p left join (select q.k, q.y, a.notes from q, (select"
            " array_agg(note order by note) as notes from q) a) s on s.k = p.k",
        )
    )


def test_a_scalar_subquery_with_two_rows_is_an_error_that_names_the_table(source, followed):
    source("p(id int primary key, k int)", rows=[(1, 1)])
    source("q(k int, y int)", rows=[(1, 1)])
    tables = followed("select id, (select y from q where q.k = p.k) as y from p")
    with pytest.raises(Exception, match="more than one row") as raised:
        tables.after("insert into q values (1, 2)")
    assert "stream_1" in str(raised.value)
    tables.after("delete from q where y = 2")


@pytest.mark.light
def test_set_operations_count_copies_and_equal_nulls(both, followed):
    play(
        followed(
            "select k from p intersect select k from q",
            "select k from p intersect all select k from q",
            "select k from p except select k from q",
            "select k from q except all select k from p",
            "(select k from p union select k from q) except select y from q",
        )
    )


@pytest.mark.light
def test_grouping_sets_tell_their_nulls_from_those_of_the_data(both, followed):
    play(
        followed(
            "select k, name, count(*) as n, grouping(k, name) as g from p group by rollup (k, name)",
            "select k, x, sum(id) as s from p group by grouping sets ((k), (x), ())",
            "select k, note, max(y) as y from q group by cube (k, note)",
        )
    )


@pytest.mark.light
def test_windows_follow_their_partitions(both, followed):
    play(
        followed(
            "select id, rank() over (partition by k order by x) as r from p",
            "select id, lag(x) over (order by id) as was, lead(x, 1, 0) over (order by id) as next from p",
            "select id, sum(x) over (partition by k order by id rows between 1 preceding and current row)"
            " as s from p",
            "select id, count(*) over (order by x groups between 1 preceding and 1 following exclude"
            " current row) as n, row_number() over (partition by k order by id) as r from p",
            "select k, n, rank() over (order by n desc, k) as r from"
            " (select k, count(*) as n from q group by k) c",
            "select distinct on (k) k, id, x from p order by k, x desc nulls last, id",
        )
    )


@pytest.mark.light
def test_first_rows_follow_the_cut(both, followed):
    play(
        followed(
            "select id, x from p order by x desc, id limit 2",
            "select id, x from p order by x nulls first, id offset 1 limit 2",
            "select id from p order by id limit 0",
            "select k, count(*) as n from q group by k order by n desc, k limit 2",
            "select x, id from p order by k fetch first 1 rows with ties",
            "select a.id, b.y from p a join q b on a.k = b.k order by b.y desc, a.id limit 3",
            "select 'one' as word from p order by 1 limit 1 offset 1",
            "select id from p order by 1 + 1 fetch first 1 rows with ties",
        )
    )


def test_one_table_in_many_places_drifts_nowhere(both, followed):
    play(
        followed(
            "with c as (select k, count(*) as n from p group by k)"
            " select a.k, b.n from c a join c b on a.n = b.n",
            "select a.id from p a where exists (select from p b where b.k = a.k and b.id <> a.id)",
            "select a.id, b.id as other from p a join p b on a.k = b.k and a.id < b.id",
            "select p.id, l.n from p cross join lateral (select count(*) as n from q where q.k = p.k) l",
            "select p.id, g.n from p, generate_series(1, p.k) as g(n)",
            "select v.k, v.word, p.id from (values (1, 'one'), (2, 'two'), (7, null)) v(k, word)"
            " left join p on p.k = v.k",
        )
    )


@pytest.mark.light
def test_rows_enter_and_leave_as_time_passes(source, stream_table, app):
    source("t(id int primary key, at timestamptz, k int)")
    with app.transaction():
        app.execute("insert into t select n, now() + n * interval '200 milliseconds', n % 2 from"
                    " generate_series(-3, 0) n")  # fmt: skip
    recent = stream_table("select id from t where at < now()", mode="DIFFERENTIAL", loads=False)
    groups = stream_table(
        "select k, count(*) as n from t where at between now() - interval '1 second' and now() group by k",
        mode="DIFFERENTIAL",
        loads=False,
    )
    recent.refresh()
    groups.refresh()
    first = len(recent.rows())
    with app.transaction():
        # their time comes after the first load, however long that took
        app.execute("insert into t select n, now() + n * interval '200 milliseconds', n % 2 from"
                    " generate_series(1, 12) n")  # fmt: skip
        app.execute("update t set at = at + interval '1 hour' where id = 1")
    while len(recent.rows()) < first + 6:
        recent.refresh()
        groups.refresh()
    assert len(recent.rows()) >= first + 6
    with app.transaction():
        app.execute("update t set at = now() - interval '1 day'")
    outcome = recent.refresh()
    groups.refresh()
    assert outcome.action.value == "DIFFERENTIAL"
    assert len(recent.rows()) == 16
    assert groups.rows() == []
