"""A query block as operators, and what stands around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.analysis.row_order import NO_ORDER, RowOrder
from pgtrickle.plan.analysis.scope import Scope
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import Operator

Outputs = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A query as an operator, and its output columns as expressions over it.

    `correlated` are conditions that also read columns of the surrounding query: only pairs of a row
    there and a row here for which they hold belong together. Outputs may read such columns too.

    With `is_total` every row of the surrounding query has exactly one row here, also without a
    partner in the operator, whose columns are then null: an aggregate without GROUP BY. Its HAVING
    is `condition`, over such padded columns. The rows arrive in `order`.
    """

    operator: Operator
    outputs: Outputs
    correlated: tuple[Expression, ...] = ()
    is_total: bool = False
    condition: Expression | None = None
    order: RowOrder = NO_ORDER


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of a surrounding query's columns for which a block is evaluated.

    `columns` pairs each column of the surrounding query with the one of `operator` that holds it;
    the `conditions` say for a row there and a row here that all these are the same.
    """

    operator: Operator
    columns: tuple[tuple[str, str], ...]
    conditions: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a block finds around it: outer columns, WITH queries, and the analysis itself.

    The order of the rows of the `is_outermost` block does not matter.
    """

    context: Context
    analyse: Callable[[exp.Expr, Surroundings], Block]
    outer: Scope | None = None
    named: Mapping[str, Named] = field(default_factory=dict)
    domain: Domain | None = None
    is_outermost: bool = False

    def inside(self, outer: Scope | None) -> Surroundings:
        """The surroundings of a block within the one that offers `outer`."""
        return replace(self, outer=outer, domain=None, is_outermost=False)


@dataclass(frozen=True, slots=True)
class Named:
    """A WITH query, and what stood around it where it was defined.

    Inside a recursive query its own name is `given`: it stands for rows that are there already. With
    CYCLE, `met_by` is the column by which a row has been met before.
    """

    query: exp.Expr
    columns: tuple[str, ...]
    surroundings: Surroundings
    is_recursive: bool = False
    given: Block | None = None
    met_by: str | None = None
