"""The shop of the demonstration: its tables, and the stream tables that follow them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pgtrickle.postgres.connection import Connection
from pgtrickle.postgres.statements import load


@dataclass(frozen=True, slots=True)
class Example:
    """A stream table of the demonstration and what it demonstrates."""

    name: str
    shows: str
    schedule: str
    query: str


EXAMPLES: Final = (
    Example(
        "shop.revenue_by_region",
        "join, group by, avg",
        "calculated",
        """select c.region, count(*) as orders, sum(o.amount) as revenue, avg(o.amount) as average
           from shop.orders o join shop.customers c on c.id = o.customer
           group by c.region""",
    ),
    Example(
        "shop.best_sellers",
        "join, group by, having",
        "calculated",
        """select p.name, p.category, sum(o.quantity) as sold, sum(o.amount) as revenue
           from shop.orders o join shop.products p on p.id = o.product
           group by p.id, p.name, p.category having sum(o.quantity) > 240""",
    ),
    Example(
        "shop.customer_extremes",
        "min and max",
        "1s",
        """select customer, count(*) as orders, min(amount) as smallest, max(amount) as largest
           from shop.orders group by customer""",
    ),
    Example(
        "shop.region_categories",
        "three-way join, distinct",
        "1s",
        """select distinct c.region, p.category
           from shop.orders o join shop.customers c on c.id = o.customer
               join shop.products p on p.id = o.product
           where o.quantity >= 3""",
    ),
    Example(
        "shop.addresses",
        "union",
        "calculated",
        """select email from shop.customers union select supplier_email from shop.products""",
    ),
    Example(
        "shop.strong_regions",
        "over a stream table",
        "calculated",
        """select region, revenue from shop.revenue_by_region where average > 55""",
    ),
    Example(
        "shop.product_ranking",
        "window function",
        "2s",
        """select name, category, revenue, rank() over (partition by category order by revenue desc) as place
           from shop.best_sellers""",
    ),
)

SAMPLES: Final = (
    ("revenue_by_region", "select * from shop.revenue_by_region order by revenue desc limit 5"),
    ("best_sellers", "select * from shop.best_sellers order by revenue desc, name limit 5"),
)
"""Queries for the rows that the screen shows."""


def fill(connection: Connection) -> None:
    """Create the tables of the shop and their first rows."""
    connection.execute(load("pgtrickle.interfaces.demo", "sql/shop.sql"))
