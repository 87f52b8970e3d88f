"""The changes of several stream tables of one wave: each source's window is read once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa

from pgtrickle.changes.memory import Holding, TooMuch
from pgtrickle.changes.relations import Ends
from pgtrickle.changes.sharing import can_be_shared, read_together
from pgtrickle.changes.window import Start
from pgtrickle.model.errors import PgTrickleError, SparkFailed
from pgtrickle.pipeline.small import run_small_together
from pgtrickle.plan.program import Program
from pgtrickle.plan.reads import Read
from pgtrickle.postgres.connection import DatabaseError
from pgtrickle.refresh.differential import gathered, has_rows
from pgtrickle.refresh.engine import Engine
from pgtrickle.refresh.session import Session, Settings
from pgtrickle.refresh.step import Step
from pgtrickle.refresh.unfollowable import Unfollowable, followable
from pgtrickle.refresh.windows import ends_of

Blamed = Unfollowable | PgTrickleError | DatabaseError
"""What can go wrong with one table, and leaves the others as they are."""
BLAMED = (Unfollowable, PgTrickleError, DatabaseError)

Followed = tuple[Step, Program]
_Inputs = dict[str, pa.Table]
_Shared = Mapping[str, pa.Table]
T = TypeVar("T")


def computed(
    engine: Engine, session: Session, followed: Sequence[Followed], holding: Holding
) -> list[pa.Table | Blamed | TooMuch | None]:
    """For each step what Spark returns for its program, None if nothing was to compute, or what failed.

    One that reaches too much, beside the others, has to go by itself.
    """
    inputs = _all_gathered(engine, session, followed, holding)
    results: list[pa.Table | Blamed | TooMuch | None] = [
        given if isinstance(given, Exception) else None for given in inputs
    ]
    going = [n for n, given in enumerate(inputs) if isinstance(given, dict) and has_rows(given)]
    if not going:
        return results
    asked = [(followed[n][1].spark_sql, given) for n in going if isinstance(given := inputs[n], dict)]
    with engine.computing(*(followed[n][0].table.id for n in going)) as spark:
        found = run_small_together(spark, asked, holding.left // len(going))
    for number, result in zip(going, found, strict=True):
        results[number] = _judged(result)
    return results


def _judged(result: pa.Table | SparkFailed | TooMuch) -> pa.Table | Blamed | TooMuch:
    try:
        with followable():
            if isinstance(result, SparkFailed):
                raise result
    except (Unfollowable, SparkFailed) as blamed:
        return blamed
    return result


def _all_gathered(
    engine: Engine, session: Session, followed: Sequence[Followed], holding: Holding
) -> list[_Inputs | Blamed | TooMuch]:
    """What each program computes with; where reading for all fails, each reads by itself."""

    def by_itself(step: Step, program: Program, shared: _Shared) -> _Inputs:
        session.enter(step.table.settings)
        return gathered(engine, session, step.table, program, holding, shared)

    if len(followed) > 1:
        try:
            with session.savepoint():
                shared = _shared_windows(session, followed, holding)
                return [by_itself(*one, part) for one, part in zip(followed, shared, strict=True)]
        except (*BLAMED, TooMuch):
            # one of them is to blame: it is found below
            holding.release()
    return [_attempt(session, by_itself, step, program, {}) for step, program in followed]


def _attempt(session: Session, action: Callable[..., T], *given: object) -> T | Blamed | TooMuch:
    try:
        with session.savepoint():
            return action(*given)
    except (*BLAMED, TooMuch) as blamed:
        return blamed


def _shared_windows(
    session: Session, followed: Sequence[Followed], holding: Holding
) -> list[dict[str, pa.Table]]:
    """The windows that several of the programs read, for each program by the names of its reads.

    Expressions mean the same for two tables only under the same settings.
    """
    asked: dict[tuple[Settings, Start], list[tuple[int, Read, Ends]]] = defaultdict(list)
    for number, (step, program) in enumerate(followed):
        ends = ends_of(session, step.table)
        for read in program.reads:
            if can_be_shared(read) and read.source is not None:
                start = (read.source.relation, ends.frontier(read.source))
                asked[step.table.settings, start].append((number, read, ends))
    found: list[dict[str, pa.Table]] = [{} for _ in followed]
    for (settings, _), parts in asked.items():
        if len(parts) > 1:
            session.enter(settings)
            with followable():
                tables = read_together(session.read, [(read, ends) for _, read, ends in parts], holding)
            for (number, read, _), table in zip(parts, tables, strict=True):
                found[number][read.name] = table
    return found
