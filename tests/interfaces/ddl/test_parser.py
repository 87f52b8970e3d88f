"""Statements are read as PostgreSQL would read them; what is wrong is told with its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgtrickle.interfaces.ddl.parser import parse
from pgtrickle.interfaces.ddl.statements import Alter, Create, Drop, Refresh, Statement
from pgtrickle.interfaces.ddl.tokens import tokens
from pgtrickle.model.errors import BadStatement


def only(text: str) -> Statement:
    (placed,) = parse(text)
    return placed.statement


def test_create_with_every_option() -> None:
    assert only(
        "CREATE STREAM TABLE shop.\"My Totals\" WITH (schedule = '1h30m', refresh_mode = differential,"
        " initialize = false, diamond_consistency = 'atomic', diamond_schedule_policy = fastest,"
        " cdc_mode = trigger, append_only = on, pooler_compatibility_mode = true, tier = Warm)"
        " AS select 1 as a"
    ) == Create(
        'shop."My Totals"',
        "select 1 as a",
        {
            "schedule": "1h30m",
            "refresh_mode": "DIFFERENTIAL",
            "initialize": False,
            "diamond_consistency": "atomic",
            "diamond_schedule_policy": "fastest",
            "cdc_mode": "trigger",
            "append_only": True,
            "pooler_compatibility_mode": True,
            "tier": "warm",
        },
    )


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("create stream table t as select 1", Create("t", "select 1")),
        ("create or replace stream table t as select 1", Create("t", "select 1", or_replace=True)),
        ("create stream table if not exists t as select 1;", Create("t", "select 1", if_not_exists=True)),
        ("create stream table t with (schedule = 30) as table o", Create("t", "table o", {"schedule": "30"})),
        (
            "create stream table t with (schedule = null) as table o",
            Create("t", "table o", {"schedule": "manual"}),
        ),
        (
            "create stream table t with (schedule = '*/5 * * * *') as table o",
            Create("t", "table o", {"schedule": "*/5 * * * *"}),
        ),
        ("alter stream table t set (schedule = $$5s$$)", Alter("t", {"schedule": "5s"})),
        ("alter stream table t set (status = suspended)", Alter("t", {"status": "SUSPENDED"})),
        ("alter stream table t as select 2", Alter("t", {}, "select 2")),
        ("alter stream table t set (tier = cold) as select 2", Alter("t", {"tier": "cold"}, "select 2")),
        ("drop stream table a.b", Drop("a.b")),
        ("drop stream table if exists t cascade", Drop("t", if_exists=True, cascade=True)),
        ("drop stream table t restrict", Drop("t")),
        ("REFRESH STREAM TABLE t", Refresh("t")),
    ],
)
def test_the_forms_of_each_statement(text: str, statement: Statement) -> None:
    assert only(text) == statement


@pytest.mark.parametrize(
    "query",
    [
        "select ';' as a, 'it''s; fine' as b",
        'select 1 as ";"',
        "select E'\\';' as a",
        "select $$;$$ as a, $x$ $$;$$ $x$ as b",
        "select 1 -- a ; in a comment\n as a",
        "select /* a ; /* nested ; */ ; */ 1 as a",
        "select a[1:2], b->>'x;', $1 from t",
        "with x as (select 1) select *\n  from x",
    ],
)
def test_the_query_is_passed_on_untouched(query: str) -> None:
    text = f"create stream table a as {query} ; refresh stream table a;"
    assert [p.statement for p in parse(text)] == [Create("a", query), Refresh("a")]


def test_several_statements_with_comments_between_them() -> None:
    text = "-- first\n;;drop stream table a;\n/* second */ refresh\n stream table b"
    placed = parse(text)
    assert [p.statement for p in placed] == [Drop("a"), Refresh("b")]
    assert [p.place for p in placed] == ["line 2, column 3", "line 3, column 14"]
    assert parse("") == parse(" ; -- nothing") == []


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        ("select 1", "line 1, column 1: 'select' does not begin a statement about stream tables", "psql"),
        ("create table t as select 1", "column 8: expected STREAM, found 'table'", "CREATE"),
        ("create stream table as select 1", "column 24: expected AS, found 'select'", ""),
        ("create stream table t select 1", "column 23: expected AS, found 'select'", ""),
        ("create stream table t as ;", "column 26: expected a query, found ';'", ""),
        ("create stream table t as", "expected a query, found the end", ""),
        ("create or replace stream table if not exists t as select 1", "exclude each other", "one"),
        ("create stream table t with (shedule = '1s') as select 1",
         "column 29: there is no option shedule", "schedule?"),
        ("create stream table t with (status = active) as select 1", "no option status", ""),
        ("alter stream table t set (initialize = true)", "no option initialize", ""),
        ("create stream table t with (x = 1) as select 1", "no option x", "the options are schedule"),
        ("alter stream table t set (tier = hot,\n tier = cold)",
         "line 2, column 2: the option tier is given twice", ""),
        ("alter stream table t set (tier = warmer)",
         "column 34: 'warmer' is not a value of tier", "hot, warm, cold or"),
        ("alter stream table t set (append_only = maybe)", "'maybe' is not a value", "true or false"),
        ("alter stream table t set (append_only = null)", "null is not a value", "true or false"),
        ("alter stream table t set (schedule = '61 * * * *')",
         "'61 * * * *' is not a value of schedule", "cron"),
        ("alter stream table t set (schedule 5)", "expected '=', found '5'", ""),
        ("alter stream table t set (schedule = )", "expected a value, found ')'", "single quotes"),
        ("alter stream table t set (schedule = E'5s')", "a string of this kind", "plain single quotes"),
        ("alter stream table t set ()", "expected the name of an option, found ')'", ""),
        ("alter stream table t set (tier = hot", "expected ')', found the end", ""),
        ("alter stream table t", "expected SET (option = value) or AS query, found the end", ""),
        ("alter stream table t rename to u", "expected SET (option = value) or AS query, found 'rename'", ""),
        ("drop stream table a, b", "expected the end of the statement, found ','", ""),
        ("drop stream table 5", "expected the name of a stream table, found '5'", ""),
        ("drop stream table 'a'", "expected the name of a stream table, found", ""),
        ("refresh stream table a b", "expected the end of the statement, found 'b'", ""),
        ("drop stream table \"a", "column 19: this name is not closed", 'close it with "'),
        ("create stream table t as select 'a", "column 33: this text is not closed", "close it with '"),
        ("create stream table t as select $q$a", "this text is not closed", "$q$"),
        ("/* drop stream table a", "column 1: this comment is not closed", "*/"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place_and_a_hint(text: str, says: str, hint: str) -> None:
    with pytest.raises(BadStatement) as refused:
        parse(text)
    assert says in refused.value.message
    assert refused.value.hint
    assert hint in refused.value.hint


@given(st.text(alphabet="creat streamblo pfx();,.='\"$-/*\n\\E1é"))
def test_any_text_is_cut_into_tokens_that_stand_in_it_or_refused(text: str) -> None:
    try:
        found = list(tokens(text))
    except BadStatement:
        return
    assert all(text[token.start : token.end] == token.text for token in found)
    assert [token.start for token in found] == sorted(token.start for token in found)
    assert found[-1].end == len(text)
