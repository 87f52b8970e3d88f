"""verify_stream_table: who may call it, what it refuses at once, and how it raises what the sidecar found."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from pgtrickle.catalog.requests import answer_request, take_request
from pgtrickle.model.error_json import error_to_json
from pgtrickle.model.errors import Diverged, VerifyTimedOut
from pgtrickle.scheduler.service.vitals import Vitals, publish
from tests.fixtures.databases import TRICKLE, Database
from tests.fixtures.waiting import eventually

pytestmark = pytest.mark.every_postgres

CALL = "call pgtrickle.verify_stream_table('totals')"


@pytest.fixture(autouse=True)
def totals(source, app, admin):
    source("orders(id int primary key, amount int)", rows=[(1, 10)])
    app.execute("select pgtrickle.create_stream_table('totals', 'select sum(amount) as total from orders')")
    admin.execute("update pgtrickle.pgt_stream_tables set is_populated = true, status = 'ACTIVE'")


def refused(connection: psycopg.Connection, statement: str = CALL) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as refusal:
        connection.execute(statement)
    return refusal.value


class Sidecar:
    """Answers one request for a comparison as it is told, and remembers the limit that came with it."""

    def __init__(self, database: Database, content: Mapping[str, Any]) -> None:
        self.seconds: float | None = -1.0
        self._database, self._content = database, content
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Sidecar:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(90)

    def _serve(self) -> None:
        vitals = Vitals()
        with self._database.connect(TRICKLE) as connection:
            publish(connection, vitals, workers=1, busy=0, queued=0, more={})
            connection.commit()

            def answers() -> bool:
                request = take_request(connection, "verify", vitals.id)
                if request is not None:
                    self.seconds = request.seconds
                    answer_request(connection, request.id, self._content)
                connection.commit()
                return request is not None

            eventually(answers)


def test_a_table_that_equals_its_query_is_verified(app, database):
    with Sidecar(database, {"rows": 1, "milliseconds": 0.5}) as sidecar:
        app.execute("call pgtrickle.verify_stream_table('totals', '90 s')")
    assert sidecar.seconds == 90.0
    with Sidecar(database, {"rows": 1, "milliseconds": 0.5}) as sidecar:
        app.execute("call pgtrickle.verify_stream_table('totals', null)")
    assert sidecar.seconds is None


@pytest.mark.parametrize(
    "error",
    [
        Diverged("public.totals does not equal its query: + (11)", hint="load it again", rows=["+ (11)"]),
        VerifyTimedOut("it took longer than 90 s"),
    ],
)
def test_the_error_of_the_sidecar_is_raised_with_its_sqlstate_and_hint(app, database, error):
    with Sidecar(database, {"error": error_to_json(error)}):
        found = refused(app)
    assert found.sqlstate == error.sqlstate
    assert found.diag.message_primary == error.message
    assert (found.diag.message_hint or None) == error.hint


def test_a_table_that_reads_a_suspended_one_is_not_compared(app, database):
    with Sidecar(database, {"uncompared": "public.base is suspended"}):
        found = refused(app)
    assert found.sqlstate == "TS010"
    text = "totals cannot be compared with its query: public.base is suspended"
    assert found.diag.message_primary == text


def test_only_the_owner_may_verify(app, admin, database, connection):
    admin.execute("drop role if exists stranger")
    admin.execute(f"create role stranger login password '{database.server.password}'")
    try:
        with database.connect("stranger", autocommit=True) as stranger:
            found = refused(stranger, "call pgtrickle.verify_stream_table('public.totals')")
        assert found.sqlstate == "42501"
        assert found.diag.message_primary == "only its owner may verify stream table public.totals"
        assert found.diag.message_hint == "It belongs to app."
    finally:
        admin.execute("drop role stranger")
    assert connection.execute("select count(*) from pgtrickle.pgt_refresh_requests").fetchone() == (0,)


def test_what_cannot_be_compared_is_refused_at_once(app, admin):
    assert refused(app, "call pgtrickle.verify_stream_table('nothing')").sqlstate == "TS002"
    assert refused(app, "call pgtrickle.verify_stream_table('totals', '0 s')").sqlstate == "22023"
    admin.execute("update pgtrickle.pgt_stream_tables set status = 'SUSPENDED'")
    assert refused(app).sqlstate == "TS010"
    admin.execute("update pgtrickle.pgt_stream_tables set status = 'INITIALIZING', is_populated = false")
    empty = refused(app)
    assert empty.sqlstate == "55000"
    assert empty.diag.message_primary == "stream table public.totals has not been loaded yet"
    assert admin.execute("select count(*) from pgtrickle.pgt_refresh_requests").fetchone() == (0,)


def test_without_a_sidecar_it_soon_says_that_there_is_none(app):
    began = time.monotonic()
    found = refused(app)
    assert 3 <= time.monotonic() - began < 30
    assert found.sqlstate == "57P03"
    text = "stream table public.totals was not verified: no sidecar serves this database"
    assert str(found.diag.message_primary).startswith(text)


def test_it_must_be_called_outside_a_transaction(app):
    with pytest.raises(psycopg.errors.InvalidTransactionTermination), app.transaction():
        app.execute(CALL)
