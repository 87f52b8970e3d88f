"""How a value of a PostgreSQL type is carried through Spark and back."""

from __future__ import annotations

from dataclasses import dataclass

_POSTGRES_NAMES = {"int": "integer", "float": "real", "double": "double precision", "string": "text"}


@dataclass(frozen=True, slots=True)
class PlainType:
    """A Spark type without parameters."""

    spark: str
    """The name of the type in Spark SQL."""

    @property
    def postgres(self) -> str:
        """The type of such a value in PostgreSQL."""
        return _POSTGRES_NAMES.get(self.spark, self.spark)


@dataclass(frozen=True, slots=True)
class DecimalType:
    """A Spark decimal with `precision` digits, `scale` of them after the point."""

    precision: int
    scale: int

    @property
    def spark(self) -> str:
        """The name of the type in Spark SQL."""
        return f"decimal({self.precision},{self.scale})"

    @property
    def postgres(self) -> str:
        """The type of such a value in PostgreSQL."""
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
    """How a type gets to Spark (`carry`), its type there (`form`), and how it gets back (`restore`).

    `carry` and `restore` are SQL with `{}` as the placeholder for the value.
    `equality` and `ordering` say that Spark's `=` and `<` on the carried form agree with
    PostgreSQL's on the value. Where they do not, Spark only passes the value through.

    A text gets back through the input function of its type. `input_type` names that type where a column or an
    array of it accepts the text directly. Elsewhere the text arrives as text, and `restore` parses it.
    `equals` is the equality operator of the type in PostgreSQL. `collation` is that of the value, and of what
    `restore` gives; None is the default one. `stored` is SQL for a value that PostgreSQL sends in binary
    as it sends the carried form; None if only `carry` is.
    """

    pg_type: str
    form: SparkType
    carry: str
    restore: str
    equality: bool
    ordering: bool
    input_type: str | None = None
    equals: str = "="
    collation: str | None = None
    stored: str | None = None

    @property
    def spark(self) -> str:
        """The name of the carried type in Spark SQL."""
        return self.form.spark

    def carry_sql(self, value_sql: str) -> str:
        """PostgreSQL SQL that converts a value to its carried form."""
        return self.carry.replace("{}", value_sql)

    def stored_sql(self, value_sql: str) -> str:
        """PostgreSQL SQL for a value whose binary form is that of the carried value."""
        return (self.stored or self.carry).replace("{}", value_sql)

    def restore_sql(self, carried_sql: str) -> str:
        """PostgreSQL SQL that converts the carried form back to the value."""
        return self.restore.replace("{}", carried_sql)


@dataclass(frozen=True, slots=True)
class Field:
    """A named column of a relation that is carried through Spark."""

    name: str
    carrier: Carrier
