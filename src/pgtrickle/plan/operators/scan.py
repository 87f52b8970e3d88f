"""Rows of a source table as they are now, with what PostgreSQL computes of each row alone."""

from __future__ import annotations

from dataclasses import dataclass

from pgtrickle.model.source import Source
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column of a scan and the expression over the source's columns that gives it."""

    column: Column
    expression: Expression


@dataclass(frozen=True, slots=True)
class Scan(Operator):
    """Rows of `source` for which `condition` is true.

    `given` are the plan names of the source's columns, in their order; expressions use them, and
    run in PostgreSQL, on the table's rows and on its change rows alike.
    """

    source: Source
    alias: str
    given: tuple[str, ...]
    outputs: tuple[ScanColumn, ...]
    condition: Expression | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(output.column for output in self.outputs)

    def source_column(self, name: str) -> str:
        """The source's own name of a column given to the plan as `name`."""
        return self.source.columns[self.given.index(name)].name

    def expression(self, name: str) -> Expression:
        """The expression behind a column of the scan."""
        for output in self.outputs:
            if output.column.name == name:
                return output.expression
        raise KeyError(name)
