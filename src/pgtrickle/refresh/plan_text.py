"""What a compiled query does, in the words of `explain`. The catalog keeps it for `explain_st`."""

from __future__ import annotations

from typing import Final

from pgtrickle.model.stream_table import RefreshMode
from pgtrickle.plan.compile import Compiled
from pgtrickle.plan.explain import compared_lines, explanation
from pgtrickle.refresh.compilation import Compilation

_CHOICE: Final = (
    "each refresh: differential, unless earlier refreshes with similar changes show that full is faster;"
    " the history records which one ran, and why"
)


def plan_lines(compilation: Compilation) -> list[str]:
    """The plan of a compilation with operators, or the reason why it has none."""
    if compilation.compiled is None:
        return [
            f"because: {compilation.reason}",
            "result: PostgreSQL evaluates the whole query, and the difference is applied",
            *compared_lines(compilation.sources),
        ]
    if not isinstance(compilation.compiled, Compiled):
        return []
    choice = [_CHOICE] if compilation.mode is RefreshMode.AUTO else []
    return [*choice, explanation(compilation.compiled)]
