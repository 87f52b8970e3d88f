"""Running rounds until time is up or something fails, and telling what was found."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Protocol

from pgtrickle.model.stream_table import RefreshMode
from tests.fuzz.playing import WRONG, Failure, Play
from tests.fuzz.rounds import Round, drawn_round
from tests.fuzz.shrinking import script, shrunk

Tell = Callable[[str], None]


class Player(Protocol):
    """Plays all queries of a round; those with many rows, or none, only if it keeps all."""

    def __call__(self, drawn: Round, *, keeps_all: bool = False) -> list[Play]: ...


# names and constants that a reason quotes
_NAMES = re.compile(r"\b[a-z]_?\d+\b(\.c\d+)?|\d+|'[^']*'|(?<=fuzz\.)\w+")


@dataclass(slots=True)
class Tally:
    """How many queries were followed, how, and why not otherwise."""

    modes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    stories: list[str] = field(default_factory=list)

    def add(self, one: Play) -> None:
        if one.is_discarded:
            self.modes["discarded"] += 1
            return
        self.modes[one.mode.value if one.mode else "failed"] += 1
        for told in ([one.reason] if one.mode is RefreshMode.FULL else []) + one.actions:
            reason = _NAMES.sub("…", told)
            self.reasons[reason] += 1
            known = self.examples.get(reason)
            if known is None or len(one.query) < len(known):
                self.examples[reason] = one.query

    def is_new(self, failure: Failure) -> bool:
        """Whether none like it was told; of wrong rows, none is like another."""
        self.kinds[failure.kind] += 1
        return failure.kind == WRONG or self.kinds[failure.kind] == 1

    @property
    def followed(self) -> int:
        return sum(self.modes.values()) - self.modes["discarded"]

    def __str__(self) -> str:
        differential = self.modes[RefreshMode.DIFFERENTIAL.value]
        share = 100 * differential / max(self.followed, 1)
        counted = f"{self.followed} queries, {differential} differential ({share:.1f} %)"
        return f"{counted}, {self.modes['discarded']} discarded, {sum(self.kinds.values())} failures"

    def reasons_told(self) -> Iterator[str]:
        """Why queries were not differential, the most frequent reason first, each with an example."""
        for reason, times in self.reasons.most_common():
            yield f"{times:5} × {reason}"
            yield f"        {self.examples[reason][:300]}"


def run(
    play: Player, seed: int, *, seconds: float, shrink_seconds: float, failures: int, tell: Tell
) -> Tally:
    """Play the rounds of this seed and the following ones until so many have failed."""
    tally = Tally()
    begun = time.monotonic()
    for number in count(seed):
        if time.monotonic() - begun > seconds or len(tally.stories) >= failures:
            return tally
        drawn = drawn_round(number)
        plays = play(drawn)
        for one in plays:
            tally.add(one)
        tell(f"seed {number}: {tally}, {time.monotonic() - begun:.0f} s")
        for one in plays:
            if one.failure and len(tally.stories) < failures and tally.is_new(one.failure):
                tally.stories.append(_story(play, number, one.failure, shrink_seconds))
                tell(tally.stories[-1])
    return tally


def _story(play: Player, seed: int, failure: Failure, seconds: float) -> str:
    player = partial(play, keeps_all=True)
    small, how = shrunk(player, drawn_round(seed), failure, seconds=seconds)
    return "\n".join([f"-- found by SEED={seed}", *script(small, how)])
