"""How a value of a PostgreSQL type travels through Spark and back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Carrier:
    """One type's way to Spark (`carry`), its form there (`spark`), and its way back (`restore`).

    `carry` and `restore` are SQL with `{}` where the value's own SQL goes.
    `equality` and `ordering` claim that Spark's `=` and `<` on the carried form
    are PostgreSQL's on the value; where they do not hold, Spark only passes the value on.

    A text goes back through the input function of its type. Where a column or an array of that type takes
    the text in, `input_type` names it; elsewhere the text arrives as text, and `restore` reads it.
    """

    pg_type: str
    spark: str
    carry: str
    restore: str
    equality: bool
    ordering: bool
    input_type: str | None = None

    def carried(self, value_sql: str) -> str:
        """SQL in PostgreSQL that turns a value into its carried form."""
        return self.carry.replace("{}", value_sql)

    def restored(self, carried_sql: str) -> str:
        """SQL in PostgreSQL that turns the carried form back into the value."""
        return self.restore.replace("{}", carried_sql)


@dataclass(frozen=True, slots=True)
class Field:
    """A named column of a relation that travels through Spark."""

    name: str
    carrier: Carrier
