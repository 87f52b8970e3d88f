"""The order in which a query delivers its rows, for those above it whose answer depends on it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.expressions import Expression


@dataclass(frozen=True, slots=True)
class OrderItem:
    """One item of an ORDER BY."""

    value: Expression
    is_descending: bool
    has_nulls_first: bool

    def node(self) -> exp.Ordered:
        """The item as SQL over the columns of the plan."""
        return exp.Ordered(
            this=self.value.node.copy(), desc=self.is_descending, nulls_first=self.has_nulls_first
        )


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The `items` by which rows arrive in order, none if the query asks for no order.

    With `is_lost` there is an ORDER BY below, but something above it (a join, a group, a set operation)
    may have put the rows into another order, and only PostgreSQL's plan says which.
    """

    items: tuple[OrderItem, ...] = ()
    is_lost: bool = False

    def after_reordering(self) -> RowOrder:
        """The order after something that need not keep it."""
        return RowOrder(is_lost=self.is_lost or bool(self.items))

    def then_by(self, own: list[OrderItem]) -> RowOrder:
        """The order of rows that arrive in this one and are then ordered by `own`: ties stay as they came."""
        if not own:
            return self
        return RowOrder((*own, *(item for item in self.items if item not in own)))

    def begins_with(self, values: list[Expression]) -> bool:
        """Whether sorting by the values would change nothing, as PostgreSQL sorts without being told how."""
        first = self.items[: len(values)]
        is_usual = not any(item.is_descending or item.has_nulls_first for item in first)
        return is_usual and [item.value for item in first] == values

    def require(self, what: str) -> None:
        """Refuse what depends on an order that only PostgreSQL's plan knows."""
        if self.is_lost:
            raise UnsupportedQuery(
                f"{what} over a subquery with ORDER BY whose order may not be kept"
                " cannot be followed incrementally",
                hint="write ORDER BY where the order matters, or use the mode AUTO or FULL",
            )


NO_ORDER = RowOrder()


def order_of_several(orders: list[RowOrder]) -> RowOrder:
    """The order of rows that come from several places."""
    return RowOrder(is_lost=any(order.is_lost or order.items for order in orders))


def items_over(order: RowOrder, names: frozenset[str]) -> tuple[OrderItem, ...]:
    """The items that differ between the rows of an operator with these columns."""
    return tuple(item for item in order.items if item.value.columns & names)
