"""Names that the engine uses itself: a table of the application may use them too."""

from __future__ import annotations


def test_columns_may_be_called_what_the_engine_calls_its_own(source, followed):
    source("t(w0 int primary key, w1 int, c0 int, c1 int, n0 int, matches int, found int, l int, r int)",
           rows=[(1, 1, 1, 2, 3, 4, 5, 6, 7), (2, None, 1, 2, 3, 4, 5, 6, 7)])  # fmt: skip
    tables = followed(
        "select a.w0, a.c0, b.c1, b.matches from t a left join t b on a.c0 = b.w0",
        "select c0, c1 from t full join (select w0 as n1, matches as m from t) u on t.w1 = u.n1",
        "select w0, w1 in (select c0 from t) as m from t",
        "select c0, n0, sum(w0) as a0_0, max(n1) as n1 from"
        " (select c0, n0, w0, count(*) as n1 from t group by c0, n0, w0) s group by c0, n0",
        "select w0 as l0, l as r0 from t intersect all select w0, l from t",
        "select w0, (select found from t b where b.w0 = a.c0) as found, r as weight from t a",
        "select 1 as c3 from t join generate_series(0, 2) as g(c0) on true left join t u on true",
    )
    tables.after(
        "update t set c0 = 2, w1 = 2 where w0 = 1", "insert into t values (3, 3, 3, 3, 3, 3, 3, 3, 3)"
    )
    tables.after("delete from t where w0 = 1", "update t set l = 1, c1 = 1, n0 = null")
    tables.after("delete from t")


def test_columns_may_be_called_what_reads_and_answers_call_their_own(source, followed):
    source("t(id int primary key, k int, b bool)", rows=[(n, n % 3, n % 2 == 0) for n in range(1, 7)])
    source("u(id int primary key, k int)", rows=[(1, 1), (2, 0)])
    tables = followed(
        "select u.id, s.again from u join (select k, bool_or(b) as again, string_agg(id::text, ','"
        " order by id) as weight from t group by k) s on s.k = u.k where s.weight <> ''",
        "select u.id, s.again from u join (select k, count(*) over (partition by k) as again from t) s"
        " on s.k = u.k",
        "select u.id, l.number_in_order, l.rank_in_order from u, lateral (select id as number_in_order,"
        " id::text || '!' as rank_in_order from t where t.k = u.k order by 1 limit 1) l",
        "select u.id, (select rows_in_all from (select id::text || '!' as rows_in_all, id % 3 as k, id from"
        " t) s where s.k = u.k and s.id < 3 and rows_in_all <> u.k::text) as s from u",
        "select u.id, l from u join (select k, upper(b::text) as l, b as r, k as t from t) s"
        " on s.k = u.k and s.l || s.t <> u.k::text",
        "select u.id, s.again, s.rows_in_all, s.number_in_order from u left join (select k + 1 as again,"
        " k as rows_in_all, id as number_in_order from t union all select id, k, k from u) s"
        " on s.again = u.k",
        "select distinct on (again) again, number_in_order from (select k as again, id as number_in_order"
        " from t union select id, k from u) s order by again, number_in_order",
    )
    tables.after("update t set b = not b where id < 3", "insert into u values (3, 2)")
    tables.after("update t set k = k + 1", "delete from u where id = 1")
    tables.after("update u set k = 2", "insert into t values (9, 2, null)")
    tables.after("delete from t where id > 2")


def test_a_column_may_be_called_like_the_weight_of_a_change(source, followed):
    source(
        't(id int primary key, "weight of the change" int, w int)', rows=[(n, n % 3, n) for n in range(1, 7)]
    )
    tables = followed(
        'select id, "weight of the change" from t',
        'select "weight of the change", count(*) as n, max(w) as m from t group by 1',
        'select a.id, b."weight of the change" as x from t a join t b on a."weight of the change" = b.id',
        'select "weight of the change", rank() over (order by "weight of the change", w) as r from t',
        "select id as \"weight of the change\", string_agg(w::text, ',' order by w) as s from t group by id",
        "select id, (select string_agg(\"weight of the change\"::text, ',' order by id) from t u"
        ' where u.id < t.id) as "weight of the change" from t',
    )
    tables.after(
        'update t set "weight of the change" = 7 where id = 1', "insert into t values (7, 1, 1), (8, null, 2)"
    )
    tables.after("delete from t where id in (2, 7)", "update t set w = w + 1 where id > 3")


def test_a_text_may_be_what_stands_for_the_clock(source, followed):
    source("t(id int primary key, word text, at timestamptz)", rows=[(1, "⟨clock⟩", None), (2, "null", None)])
    tables = followed(
        "select id, word from t where word <> '⟨clock⟩'",
        "select id, word from t where word <> '⟨clock⟩' and (at is null or at < now())",
        "select t.id, u.id as other from t join t u on u.id > t.id where t.word = '⟨clock⟩'",
    )
    tables.after("insert into t values (3, '⟨clock⟩', now() - interval '1 day'), (4, 'null', now())")
    tables.after("update t set word = '⟨clock⟩' where word = 'null'", "update t set word = 'x' where id = 1")
    tables.after("delete from t where id < 4")


def test_functions_of_other_schemas_may_have_the_names_of_built_in_ones(source, followed, admin):
    """Every role may create some, and no query may be read otherwise because of them."""
    admin.execute("create schema other")
    for name in ("upper", "abs", "concat", '"Left"'):
        admin.execute(f"create aggregate other.{name}(int) (sfunc = int4larger, stype = int)")
    for name in ("length", "md5"):
        admin.execute(f"create function other.{name}(int) returns setof int immutable return 1")
    source("t(id int primary key, s text, n int)", rows=[(1, "a", -1), (2, "b", 2), (3, "A", 1)])
    tables = followed(
        "select id, upper(s) as u, length(s) as l, md5(s) as m from t",
        "select abs(n) as a, left(s, 1) as l, concat(s, id) as c from t",
        "select upper(s) as u, count(*) as c, max(abs(n)) as m from t where length(s) > 0 group by upper(s)",
    )
    tables.after("insert into t values (4, 'b', 5)", "update t set s = 'cc', n = -9 where id = 1")
    tables.after("delete from t where id = 2")


def test_aggregates_of_other_schemas_keep_their_meaning(source, followed, admin):
    """They may be called like built-in ones, with FILTER and OVER too."""
    admin.execute("create schema other")
    admin.execute("grant usage on schema other to app, trickle")
    admin.execute("create aggregate other.total(int) (sfunc = int4pl, stype = int, initcond = '0')")
    admin.execute("create aggregate other.max(int) (sfunc = int4smaller, stype = int)")
    admin.execute("create aggregate other.count(int) (sfunc = int4pl, stype = int)")
    source("t(id int primary key, g int, n int)", rows=[(1, 1, 5), (2, 1, 2), (3, 2, 7)])
    tables = followed(
        "select g, other.total(n) as t, other.max(n) as m, other.count(n) as c from t group by g",
        "select other.total(n) as t, other.max(n) as m, other.count(n) as c from t",
        "select g, other.max(n) filter (where n > 2) as m, other.count(n) filter (where n > 2) as c from t"
        " group by g",
        "select id, other.max(n) over (partition by g) as m, other.count(n) over (order by id) as c from t",
    )
    tables.after("insert into t values (4, 3, 1)", "update t set n = 9 where id = 2")
    tables.after("delete from t where g in (1, 3)")
    tables.after("delete from t")
