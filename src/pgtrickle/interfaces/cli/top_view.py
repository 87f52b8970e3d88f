"""What the user of `pgtrickle top` has chosen to see, and what each key changes about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pgtrickle.commands.top import Order

HELP: Final = "q quit  ↑↓ select  s sort  / filter  Esc clear"

_STEPS: Final = {"up": -1, "k": -1, "down": 1, "j": 1}


@dataclass(frozen=True, slots=True)
class TopView:
    """The order, the filter and the selected row. `typing` is the filter while it is being typed."""

    order: Order = Order.PROBLEMS
    pattern: str = ""
    selected: int = 0
    typing: str | None = None
    is_over: bool = False

    def press(self, key: str, *, count: int, page: int) -> TopView:
        """The view after a key; `count` rows exist, and `page` fit on the screen."""
        if self.typing is not None:
            return self._type(key, self.typing)
        if key in _STEPS:
            return self._select(self.selected + _STEPS[key], count)
        match key:
            case "q":
                return replace(self, is_over=True)
            case "page up":
                return self._select(self.selected - page, count)
            case "page down":
                return self._select(self.selected + page, count)
            case "home" | "g":
                return self._select(0, count)
            case "end" | "G":
                return self._select(count - 1, count)
            case "s":
                return replace(self, order=_next(self.order, 1), selected=0)
            case "S":
                return replace(self, order=_next(self.order, -1), selected=0)
            case "/":
                return replace(self, typing=self.pattern)
            case "escape":
                return replace(self, pattern="", selected=0)
            case _:
                return self

    def shown_rows(self, count: int, page: int) -> range:
        """The rows on the screen: a page with the selected one."""
        page = max(page, 1)
        at = min(self.selected, max(count - 1, 0))
        first = min(at // page * page, max(count - page, 0))
        return range(first, min(first + page, count))

    def _type(self, key: str, typed: str) -> TopView:
        match key:
            case "enter":
                return replace(self, typing=None)
            case "escape":
                return replace(self, typing=None, pattern="", selected=0)
            case "backspace":
                return self._typed(typed[:-1])
            case _ if len(key) == 1:
                return self._typed(typed + key)
            case _:
                return self

    def _typed(self, text: str) -> TopView:
        # the list follows what is typed
        return replace(self, typing=text, pattern=text, selected=0)

    def _select(self, row: int, count: int) -> TopView:
        return replace(self, selected=max(0, min(row, count - 1)))


def _next(order: Order, step: int) -> Order:
    orders = list(Order)
    return orders[(orders.index(order) + step) % len(orders)]
