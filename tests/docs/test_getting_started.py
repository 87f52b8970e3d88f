"""Every command of the page for newcomers works, in the order in which it stands there."""

from __future__ import annotations

import psycopg
import pytest

from tests.docs.pages import DOCS
from tests.docs.walkthrough import walkthrough
from tests.fixtures.servers import binaries


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_newcomer_can_follow_the_page_from_top_to_bottom(own_server, pg_version, tmp_path):
    with walkthrough(own_server, binaries(pg_version), tmp_path) as reader:
        reader.follow(DOCS / "GETTING_STARTED.md")
    with psycopg.connect(own_server.dsn("shop")) as admin:
        left = admin.execute("select count(*) from pgtrickle.pgt_stream_tables").fetchone()
        triggers = admin.execute(
            "select tgname from pg_trigger where not tgisinternal and tgrelid = any "
            "(array['shop.orders', 'shop.customers']::regclass[])"
        ).fetchall()
    assert (left, triggers) == ((0,), [])
