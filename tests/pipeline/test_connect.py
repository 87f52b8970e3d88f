"""A sidecar over Spark Connect: the driver is another process, and may be another machine."""

from __future__ import annotations

import pytest

from tests.fixtures.clusters import connect_server
from tests.fixtures.sidecar_processes import sidecar_process

QUERY = "select region, count(*) as n, sum(amount) as total from orders group by region"


pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def orders(source, app):
    orders = source("orders(id int primary key, region text, amount numeric(12,2))")
    orders.change("insert into orders select n, 'region ' || n % 7, n from generate_series(1, 300) n")
    app.execute("select pgtrickle.create_stream_table('totals', %s, '1s', 'DIFFERENTIAL')", (QUERY,))
    return orders


def test_a_sidecar_follows_over_spark_connect(orders, app, dsn, database, tmp_path):
    log = tmp_path / "sidecar"
    with connect_server(tmp_path) as server, sidecar_process(server.url, dsn, log) as running:
        running.await_rows(app, "table totals", QUERY)
        orders.change("update orders set amount = -1 where id < 20", "delete from orders where id > 250")
        running.await_rows(app, "table totals", QUERY)
        said = "".join(file.read_text(errors="replace") for file in tmp_path.rglob("*.log"))
        assert "as Spark jobs" in running.said()
    assert "SparkConnectServer" in said
    assert database.server.password not in said + running.said()


@pytest.mark.thorough
def test_a_sidecar_finds_a_spark_connect_server_again_that_has_restarted(orders, app, dsn, tmp_path):
    log = tmp_path / "sidecar"
    with connect_server(tmp_path) as server, sidecar_process(server.url, dsn, log) as running:
        running.await_rows(app, "table totals", QUERY)
        server.stop()
        orders.change("insert into orders values (1000, null, 7)")
        server.start()
        orders.change("update orders set region = 'region 1' where id = 1")
        running.await_rows(app, "table totals", QUERY)
