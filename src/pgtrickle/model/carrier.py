"""How a value of a PostgreSQL type travels through Spark and back."""

from __future__ import annotations

from dataclasses import dataclass

_POSTGRES_NAMES = {"int": "integer", "float": "real", "double": "double precision", "string": "text"}


@dataclass(frozen=True, slots=True)
class PlainType:
    """A type of Spark without parameters."""

    spark: str
    """The type as Spark's SQL names it."""

    @property
    def postgres(self) -> str:
        """The type that such a value has in PostgreSQL."""
        return _POSTGRES_NAMES.get(self.spark, self.spark)


@dataclass(frozen=True, slots=True)
class DecimalType:
    """A decimal of Spark with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    @property
    def spark(self) -> str:
        """The type as Spark's SQL names it."""
        return f"decimal({self.precision},{self.scale})"

    @property
    def postgres(self) -> str:
        """The type that such a value has in PostgreSQL."""
        return f"numeric({self.precision},{self.scale})"


SparkType = PlainType | DecimalType

BOOLEAN = PlainType("boolean")
SMALLINT = PlainType("smallint")
INT = PlainType("int")
BIGINT = PlainType("bigint")
FLOAT = PlainType("float")
DOUBLE = PlainType("double")
STRING = PlainType("string")


@dataclass(frozen=True, slots=True)
class Carrier:
    """One type's way to Spark (`carry`), its form there (`form`), and its way back (`restore`).

    `carry` and `restore` are SQL with `{}` where the value's own SQL goes.
    `equality` and `ordering` claim that Spark's `=` and `<` on the carried form
    are PostgreSQL's on the value; where they do not hold, Spark only passes the value on.

    A text goes back through the input function of its type. Where a column or an array of that type takes
    the text in, `input_type` names it; elsewhere the text arrives as text, and `restore` reads it.
    """

    pg_type: str
    form: SparkType
    carry: str
    restore: str
    equality: bool
    ordering: bool
    input_type: str | None = None

    @property
    def spark(self) -> str:
        """The type of the carried form as Spark's SQL names it."""
        return self.form.spark

    def carry_sql(self, value_sql: str) -> str:
        """SQL in PostgreSQL that turns a value into its carried form."""
        return self.carry.replace("{}", value_sql)

    def restore_sql(self, carried_sql: str) -> str:
        """SQL in PostgreSQL that turns the carried form back into the value."""
        return self.restore.replace("{}", carried_sql)


@dataclass(frozen=True, slots=True)
class Field:
    """A named column of a relation that travels through Spark."""

    name: str
    carrier: Carrier
