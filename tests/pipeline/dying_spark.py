"""A process whose Spark dies: at every step of a refresh, in every way, and below a running sidecar.

Run as: python -m tests.pipeline.dying_spark, with the addresses in PGTRICKLE_DSN and PGTRICKLE_APP_DSN.
There are the stream tables `totals`, which computes on Spark, and `whole`, which PostgreSQL evaluates. Every
death costs a start of Spark, so one process goes through all of them. It prints what it saw as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import psycopg

from pgtrickle.catalog.tables import find
from pgtrickle.commands.refresh import SPARK_SECONDS, refresh
from pgtrickle.commands.status import history, sidecars, table_status
from pgtrickle.commands.verify import verify
from pgtrickle.interfaces.python import Trickle
from pgtrickle.model.errors import SparkLost
from pgtrickle.model.settings import Settings
from pgtrickle.model.stream_table import Action
from pgtrickle.pipeline import supply, suspects
from pgtrickle.pipeline.session import Spark, adopt, open_spark
from pgtrickle.refresh.engine import Engine
from tests.end_to_end.stopping_sidecar import STEPS
from tests.fixtures.poolers import POOL_SIZE
from tests.fixtures.sidecars import running
from tests.fixtures.waiting import eventually

HEAP = {"spark.driver.memory": "1g"}


def kill(spark: Spark) -> None:
    os.kill(_process(spark), signal.SIGKILL)


def freeze(spark: Spark) -> None:
    os.kill(_process(spark), signal.SIGSTOP)


def exhaust(spark: Spark) -> None:
    """Let the JVM run out of memory in a thread of its own, as a program of ours would."""
    jvm: Any = spark.small._jvm
    kept = jvm.java.util.ArrayList()
    try:
        for _ in range(100):
            kept.add(spark.small.sparkContext._gateway.new_array(jvm.long, 10_000_000))  # type: ignore[union-attr]
    except Exception as failure:
        # what a program notices of it
        spark.check(failure)


DEATHS: tuple[tuple[str, Callable[[Spark], None]], ...] = (
    ("claim", kill),
    ("read", freeze),
    ("apply", kill),
    ("commit", kill),
    ("compute", exhaust),
)


def _process(spark: Spark) -> int:
    assert spark._process is not None
    return spark._process.pid


def die_at(engine: Engine, step: str, death: Callable[[Spark], None]) -> Callable[[], None]:
    """Let Spark die once, after a step of the next refresh."""
    module, name = STEPS[step]
    function = getattr(module, name)

    def dying(*arguments: Any, **options: Any) -> Any:
        setattr(module, name, function)
        result = function(*arguments, **options)
        death(engine.spark)
        return result

    setattr(module, name, dying)
    return lambda: setattr(module, name, function)


def notice_death(engine: Engine, count: int) -> None:
    """Wait until so many deaths have been noticed: what dies after it has computed is not missed at once."""
    eventually(lambda: engine.supply.deaths == count)


def at_every_step(engine: Engine, app: psycopg.Connection) -> list[dict[str, Any]]:
    found = []
    for number, (step, death) in enumerate(DEATHS):
        engine.supply.wait(SPARK_SECONDS)
        app.execute("update orders set amount = amount + 1 where mod(id, 7) = %s", (number,))
        app.execute("delete from orders where id = %s", (90 + number,))
        restore = die_at(engine, step, death)
        outcome = refresh(engine, "totals")
        restore()
        notice_death(engine, number + 1)
        engine.supply.settle(SPARK_SECONDS)
        found.append({"step": step, "action": outcome.action.value, "deaths": engine.supply.deaths})
        verify(engine, "totals")
    return found


def below_a_sidecar(engine: Engine, app: psycopg.Connection) -> dict[str, Any]:
    """What a sidecar does while it has no Spark."""
    dsn = engine.dsn
    # what ran out of memory keeps away from Spark for a while; then its state is made anew
    with engine.connection() as connection:
        totals = find(connection, "totals").id
    eventually(lambda: not engine.is_isolated(totals))
    refresh(engine, "totals")
    with running(engine) as sidecar:
        app.execute("insert into orders values (1001, 1, 1)")
        eventually(
            lambda: sidecar.has_refreshed("totals", Action.DIFFERENTIAL) and sidecar.has_refreshed("whole")
        )
        sidecar.events.clear()
        is_back_allowed, start = False, engine.supply._start

        def wait_to_start() -> Spark:
            eventually(lambda: is_back_allowed, seconds=SPARK_SECONDS)
            return start()

        engine.supply._start = wait_to_start
        kill(engine.spark)
        eventually(lambda: engine.supply.why_waiting is not None)
        app.execute("insert into orders values (1002, 2, 2)")
        eventually(lambda: sidecar.has_refreshed("whole"))
        eventually(lambda: table_status(dsn, "totals").waits is not None)
        try:
            app.execute("set pgtrickle.wait_timeout = '1s'")
            app.execute("select pgtrickle.refresh_stream_table('totals')")
            answer = ""
        except psycopg.Error as error:
            answer = error.diag.message_detail or ""
        waiting = {
            "waits": table_status(dsn, "totals").waits,
            "whole waits": table_status(dsn, "whole").waits,
            "answer": answer,
            "vitals": sidecars(dsn)[0].vitals["waits_for_spark"],
            "totals was refreshed": sidecar.has_refreshed("totals"),
        }
        is_back_allowed = True
        eventually(lambda: sidecar.has_refreshed("totals", Action.DIFFERENTIAL), seconds=SPARK_SECONDS)
        eventually(lambda: table_status(dsn, "totals").waits is None)
        told = [
            event.error.code if event.error else event.note
            for event in list(sidecar.events)
            if not event.name.name
        ]
    return {**waiting, "told": told}


def below_a_given_session(engine: Engine, app: psycopg.Connection) -> dict[str, Any]:
    """What Python's interface does with a session that was given to it, once that has died."""
    given = engine.spark.small
    with Trickle(Settings(dsn=engine.dsn), lambda: adopt(given)) as trickle:
        app.execute("insert into orders values (1003, 3, 3)")
        first = trickle.refresh("totals").action
        deaths = engine.supply.deaths
        kill(engine.spark)
        app.execute("insert into orders values (1004, 4, 4)")
        try:
            trickle.refresh("totals")
            told = ""
        except SparkLost as lost:
            told = str(lost)
        notice_death(engine, deaths + 1)
        engine.supply.settle(SPARK_SECONDS)
        # there is another session now
        return {"first": first.value, "told": told, "then": trickle.refresh("totals").action.value}


def main() -> None:
    supply.ANSWER_SECONDS, suspects.FIRST_SECONDS = 5.0, 20.0
    engine = Engine(
        os.environ["PGTRICKLE_DSN"], lambda: open_spark(configuration=HEAP), max_connections=POOL_SIZE
    )
    with psycopg.connect(os.environ["PGTRICKLE_APP_DSN"], autocommit=True) as app:
        refresh(engine, "totals")
        refresh(engine, "whole")
        steps = at_every_step(engine, app)
        waiting = below_a_sidecar(engine, app)
        given = below_a_given_session(engine, app)
        verify(engine, None)
    states = {
        name: (table_status(engine.dsn, name).status.value, table_status(engine.dsn, name).consecutive_errors)
        for name in ("totals", "whole")
    }
    failed = [past.error for past in history(engine.dsn, "totals", 100) if past.status != "COMPLETED"]
    reasons = [past.reason for past in history(engine.dsn, "totals", 100)]
    engine.close()
    json.dump(
        {
            "steps": steps,
            "waiting": waiting,
            "given": given,
            "states": states,
            "failed": failed,
            "reasons": reasons,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
