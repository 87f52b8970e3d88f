"""Small relations that the pipeline's tests compute with."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from pgtrickle.model.carrier import Carrier, Field, PlainType

ORDERS = pa.table(
    {
        "id": pa.array(range(12), pa.int32()),
        "customer": pa.array([0, 1, 2, 3] * 3, pa.int32()),
        "amount": pa.array([Decimal(n) / 4 for n in range(12)], pa.decimal128(12, 2)),
        "weight": pa.array([1, 1, -1] * 4, pa.int64()),
    }
)
CUSTOMERS = pa.table(
    {
        "id": pa.array(range(3), pa.int32()),
        "region": pa.array(["north", None, ""], pa.string()),
        "weight": pa.array([1] * 3, pa.int64()),
    }
)
TOTALS = """\
select c.region, sum(o.amount * o.weight) as total, sum(o.weight * c.weight) as weight
from o join c on o.customer = c.id group by c.region"""


def field(name: str, spark_type: str) -> Field:
    return Field(name, Carrier("text", PlainType(spark_type), "{}", "{}", True, True))


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    """The rows in a fixed order."""
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)
