"""`pgtrickle publish`, `subscribe` and their relatives, on the command line and in Python."""

from __future__ import annotations

import json

import pytest

import pgtrickle
from tests.fixtures.databases import APP


@pytest.fixture(autouse=True)
def sales(source, app, admin, database):
    source("orders(id int)")
    app.execute("select pgtrickle.create_stream_table('sales', 'select id from orders')")
    admin.execute(f"grant create on database {database.name} to {APP}")


def test_a_stream_table_is_published_shown_and_unpublished(cli):
    done = cli("publish", "sales", "--publication", "news")
    assert done.exit_code == 0, done.err
    assert done.out == "Published public.sales: create subscription … publication news\n"
    assert "wal_level is replica" in done.err
    shown = cli("publications").out
    assert "public.sales" in shown
    assert "no subscriber known" in shown
    (row,) = json.loads(cli("publications", "--json").out)
    assert (row["stream_table"], row["publication"], row["slot"]) == ("public.sales", "news", None)
    assert cli("unpublish", "sales").exit_code == 0
    assert cli("publications").out.startswith("No stream table is published.")
    again = cli("unpublish", "sales")
    assert again.exit_code != 0
    assert "pgtrickle publish public.sales" in again.err


def test_json_has_the_notices(cli):
    made = json.loads(cli("publish", "sales", "--json").out)
    assert made["publication"] == "pgt_pub_sales"
    assert "wal_level" in made["notices"][0]
    assert json.loads(cli("unpublish", "sales", "--json").out) == {"name": "sales", "notices": []}


def test_an_unknown_slot_is_refused_and_nothing_to_forget_is_fine(cli):
    refused = cli("track", "sales", "nope")
    assert refused.exit_code != 0
    assert "there is no logical replication slot 'nope' in this database" in refused.err
    assert cli("untrack", "sales", "nope").exit_code == 0


def test_channels_are_subscribed_shown_and_ended(cli):
    assert cli("subscribe", "sales", "news").out == "Refreshes that change sales notify the channel news.\n"
    (row,) = json.loads(cli("subscriptions", "--json").out)
    assert (row["stream_table"], row["channel"], row["is_notified"]) == ("public.sales", "news", True)
    assert "news" in cli("subscriptions").out
    refused = cli("alter", "sales", "--pooler-compatibility")
    assert refused.exit_code != 0
    assert "public.sales on: news" in refused.err
    assert cli("unsubscribe", "sales", "news").exit_code == 0
    assert cli("subscriptions").out.startswith("No channels.")
    assert cli("subscribe", "sales", "pgtrickle_x").exit_code != 0


def test_python_has_the_same(database):
    with pgtrickle.connect(database.dsn(APP)) as trickle:
        assert trickle.publish("sales").publication == "pgt_pub_sales"
        assert [one.publication for one in trickle.publications()] == ["pgt_pub_sales"]
        trickle.subscribe("sales", "news")
        assert [one.channel for one in trickle.subscriptions()] == ["news"]
        trickle.unsubscribe("sales", "news")
        assert trickle.unpublish("sales") == []
        with pytest.raises(pgtrickle.PgTrickleError, match="no logical replication slot"):
            trickle.track("sales", "nope")
        trickle.untrack("sales", "nope")
