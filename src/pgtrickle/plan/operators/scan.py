"""Rows of a source table as they are now, with what PostgreSQL computes of each row alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pgtrickle.model.source import Source
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators.operator import Column, Operator


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column of a scan and the expression over the source's columns that gives it."""

    column: Column
    expression: Expression


@dataclass(frozen=True)
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

    # a wide table is asked for each of its columns, so what is found by name is found at once
    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return tuple(output.column for output in self.outputs)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(self._outputs)

    @cached_property
    def _outputs(self) -> Mapping[str, ScanColumn]:
        return {output.column.name: output for output in self.outputs}

    @cached_property
    def _source_names(self) -> Mapping[str, str]:
        return {name: own.name for name, own in zip(self.given, self.source.columns, strict=False)}

    def column(self, name: str) -> Column:
        return self._outputs[name].column

    def source_column(self, name: str) -> str:
        """The source's own name of a column given to the plan as `name`."""
        return self._source_names[name]

    def expression(self, name: str) -> Expression:
        """The expression behind a column of the scan."""
        return self._outputs[name].expression
