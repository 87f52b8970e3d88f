"""Playing a round: every stream table is compared with PostgreSQL's own answer after every window."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

import psycopg

from pgtrickle.model.stream_table import Action, RefreshMode
from tests.fixtures.bags import difference
from tests.fuzz.ground import Ground
from tests.fuzz.limiting import limited
from tests.fuzz.rounds import Round

WRONG: Final = "wrong rows"
AMBIGUOUS_TEXT: Final = "means more than its text says"
"""In the error for a query whose printed text has two readings, which is refused on purpose."""
MOST_ROWS: Final = 2000
PATIENCE: Final = 60
"""Seconds that one refresh may take."""
PLANNERS: Final = (
    ("enable_hashagg", "enable_hashjoin"),
    ("enable_sort", "enable_mergejoin", "enable_nestloop"),
    ("enable_seqscan", "enable_material", "enable_hashjoin"),
)
"""Ways to get the answer: where they disagree, the query has more than one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong with a query, and after how many windows; `kind` tells failures apart."""

    query: str
    kind: str
    windows: int
    details: str


@dataclass(slots=True)
class Play:
    """What became of one query."""

    number: int
    query: str
    mode: RefreshMode | None = None
    reason: str = ""
    actions: list[str] = field(default_factory=list)
    failure: Failure | None = None
    is_discarded: bool = False

    @property
    def name(self) -> str:
        return f"stream_{self.number}"

    @property
    def goes_on(self) -> bool:
        return not self.is_discarded and self.failure is None


def play(ground: Ground, drawn: Round, *, keeps_all: bool = False) -> list[Play]:
    """Play all queries of a round through its windows, leaving out those that PostgreSQL refuses."""
    plays = [Play(number, query) for number, query in enumerate(drawn.queries)]
    with ground.arranged(drawn):
        for one in plays:
            if not _is_answered(ground, one, keeps_all=keeps_all):
                one.is_discarded = True
                continue
            _created(ground, one)
        for number, window in enumerate(drawn.windows, start=1):
            if not any(one.goes_on for one in plays):
                break
            for step in window:
                ground.act(step)
            for one in plays:
                if one.goes_on:
                    _followed(ground, one, number)
    return plays


def _is_answered(ground: Ground, one: Play, *, keeps_all: bool) -> bool:
    """Whether PostgreSQL takes the query, in good time; of empty answers a few are enough."""
    try:
        row = ground.app.execute(f"select count(*) from ({one.query}) answer").fetchone()
    except psycopg.Error:
        return False
    assert row is not None
    if keeps_all:
        return True
    return 0 < row[0] <= MOST_ROWS or (row[0] == 0 and one.number % 3 == 0)


def _created(ground: Ground, one: Play) -> None:
    try:
        ground.create(one.name, one.query)
    except psycopg.Error as error:
        if AMBIGUOUS_TEXT in str(error):
            one.is_discarded = True
        else:
            one.failure = Failure(one.query, f"cannot be created: {error.sqlstate}", 0, str(error))
        return
    _followed(ground, one, 0)


def _followed(ground: Ground, one: Play, window: int) -> None:
    try:
        with limited(PATIENCE):
            outcome = ground.refresh(one.name)
    except Exception as error:
        # whatever it is, it must not escape: a crash is a finding
        if not _fails_too(ground, one):
            kind = f"cannot be refreshed: {type(error).__name__}: {_gist(str(error))}"
            one.failure = Failure(one.query, kind, window, str(error))
        return
    _noted(ground, one, window, outcome.action, outcome.reason)
    try:
        found = difference(ground.app, f"select * from {one.name}", one.query)
    except psycopg.Error:
        one.is_discarded = True
        return
    if found and not _is_ambiguous(ground, one.query):
        one.failure = Failure(one.query, WRONG, window, _shown(ground, one, found))
    elif found:
        one.is_discarded = True


def _noted(ground: Ground, one: Play, window: int, action: Action, reason: str) -> None:
    if window == 0:
        table = ground.known(one.name)
        one.mode, one.reason = table.effective_mode, table.downgrade_reason or ""
    elif one.mode is RefreshMode.DIFFERENTIAL and action in {Action.FULL, Action.REINITIALIZE}:
        one.actions.append(f"{action.value} once: {reason}")


def _fails_too(ground: Ground, one: Play) -> bool:
    """Whether PostgreSQL itself has no answer, so that there is nothing to compare."""
    try:
        ground.app.execute(one.query)
    except psycopg.Error:
        one.is_discarded = True
    return one.is_discarded


def _is_ambiguous(ground: Ground, query: str) -> bool:
    """Whether PostgreSQL gives other rows when it plans otherwise."""
    for settings in PLANNERS:
        with ground.app.transaction():
            ground.app.execute(f"create temp table answer on commit drop as {query}")
            for setting in settings:
                ground.app.execute(f"set local {setting} = off")
            if difference(ground.app, "select * from answer", query):
                return True
    return False


def _gist(message: str) -> str:
    """What two messages about different names have in common."""
    return re.sub(r"PGT-\w+: |fuzz\.\w+|\d+", "", message.split("\n")[0])[:70]


def _shown(ground: Ground, one: Play, found: list[str]) -> str:
    expected = ground.app.execute(f"select answer::text from ({one.query}) answer order by 1").fetchall()
    actual = ground.app.execute(f"select answer::text from {one.name} answer order by 1").fetchall()
    return "\n".join(
        [
            f"-- expected: {' '.join(str(row[0]) for row in expected[:40])}",
            f"-- actual:   {' '.join(str(row[0]) for row in actual[:40])}",
            *(f"-- {line}" for line in found[:20]),
        ]
    )
