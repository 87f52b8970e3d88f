"""A stream table to examine, and what the doctor finds about it."""

from __future__ import annotations

import pytest

from pgtrickle.commands.doctor import doctor
from pgtrickle.model.finding import Finding, Severity
from pgtrickle.model.settings import read_settings
from tests.commands.findings import Examine

QUERY = "select region, sum(amount) as total from orders group by region"


@pytest.fixture
def orders(source):
    return source("orders(id int primary key, region text, amount int)", rows=[(1, "north", 10)])


@pytest.fixture
def sales(orders, app):
    app.execute("select pgtrickle.create_stream_table('sales', %s)", (QUERY,))
    return orders


@pytest.fixture
def examine(dsn) -> Examine:
    """What is found about one thing: `examine("triggers")`; all of it without a name."""

    def run(check: str | None = None, **settings: str) -> list[Finding]:
        found = doctor(read_settings({}, **{"dsn": dsn, **settings}))
        assert all(one.remedy for one in found if one.severity in (Severity.WARN, Severity.ERROR))
        return [one for one in found if check in (None, one.check)]

    return run
