"""Changes that spare nothing: renamed nations, deleted rows that others refer to, changed primary keys.

They aim at what the 22 queries ask for, so that every answer moves, and several statements of a window
meet in the same rows. For data above scale 0.1, give the changes larger new keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import psycopg

from tests.tpch.drawing import NEW_KEYS, Draw
from tests.tpch.places import Transaction, nations, regions

_ASKED: Final = (
    "(o_orderdate between '1993-07-01' and '1994-12-31' or o_orderdate between '1995-02-01' and '1996-12-31')"
)
_TOP: Final = "o_orderdate between '1995-02-20' and '1995-03-14' and o_totalprice > 200000"
_BRASS: Final = "p_size = 15 and p_type like '%BRASS'"
_FIRST_QUARTER: Final = "l_shipdate between '1996-01-01' and '1996-03-31'"
_REVENUE: Final = "sum(l_extendedprice * (1 - l_discount))"
_HAS_COUNTRY_CODE: Final = "substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17')"


CYCLES: Final = 3
"""How many cycles it takes until everything that is renamed or deleted has come back."""


def change_harshly(connection: psycopg.Connection, cycle: int) -> None:
    """Run and commit the transactions of one cycle."""
    for transaction in harsh(cycle):
        with connection.transaction():
            for statement in transaction:
                connection.execute(statement)


def harsh(cycle: int, rows: int = 20, new_keys: int = NEW_KEYS) -> tuple[Transaction, ...]:
    """The transactions of one window, to be committed in turn; a statement changes about `rows` rows.

    `new_keys` is larger than every key of the data.
    """
    draw = Draw(cycle, rows, new_keys)
    places = (*regions(cycle), *nations(cycle))
    return (
        (*_suppliers(draw), *places),
        (*_parts(draw), *_stock(draw)),
        (*_customers(draw), *_orders(draw)),
        tuple(_lineitems(draw)),
        *_conflicts(draw),
    )


def _suppliers(draw: Draw) -> Iterator[str]:
    new, update = draw.copied_by, draw.update
    nation = draw.any("n_nationkey", "nation", "s_suppkey", "n_name in ('CANADA', 'FRANCE', 'GERMANY')")
    waited_for = draw.any(
        "n_nationkey", "nation", "s_suppkey", "n_name in ('SAUDI ARABIA', 'BRAZIL', 'CHINA')"
    )
    yield (
        f"insert into supplier select s_suppkey + {new}, 'Supplier#' || s_suppkey + {new}, 'here',"
        f" {nation}, s_phone, 9999.99 - s_suppkey, 'new' from supplier where {draw.some('supplier', 0.2)}"
    )
    yield update("supplier", f"s_nationkey = {nation}", 0.4)
    yield update("supplier", f"s_nationkey = {waited_for}", 0.3)
    has = "s_comment like '%Customer%Complaints%'"
    yield update("supplier", "s_comment = 'a Customer with Complaints'", 0.2, f"not {has}")
    yield update("supplier", "s_comment = 'a Customer without'", 0.1, has)
    yield update("supplier", "s_acctbal = -s_acctbal, s_phone = 'new phone', s_address = 'moved'", 0.5)
    top = (
        f"(select l_suppkey from lineitem where {_FIRST_QUARTER} group by 1 order by {_REVENUE} desc limit 1)"
    )
    yield f"update supplier set s_phone = 'top {draw.cycle}' where s_suppkey = {top}"
    yield update("supplier", f"s_suppkey = s_suppkey + {draw.moved_by}", 0.1)
    yield draw.delete("supplier", 0.1)


def _parts(draw: Draw) -> Iterator[str]:
    new, update = draw.copied_by, draw.update
    yield (
        f"insert into part select p_partkey + {new}, 'forest green ' || p_name, p_mfgr, p_brand, p_type,"
        f" p_size, p_container, p_retailprice, 'new' from part"
        f" where {draw.some('part', 0.3, 'length(p_name) < 40')}"
    )
    yield update("part", "p_brand = 'Brand#23', p_container = 'MED BOX', p_size = 5", 0.3)
    yield update("part", "p_brand = 'Brand#12', p_container = 'SM BOX', p_size = 3", 0.5)
    yield update("part", "p_brand = 'Brand#34', p_container = 'LG CASE', p_size = 9", 0.3)
    yield update("part", "p_type = 'ECONOMY ANODIZED STEEL'", 0.4)
    yield update("part", "p_type = 'LARGE BURNISHED BRASS', p_size = 15", 0.3)
    yield update("part", "p_type = 'MEDIUM POLISHED TIN', p_brand = 'Brand#45'", 0.5)
    yield update("part", "p_type = 'PROMO PLATED TIN', p_size = 49", 0.5)
    yield update("part", "p_name = 'forest mint'", 0.5)
    yield update("part", "p_name = 'lime green'", 0.3)
    yield update("part", "p_name = 'grey'", 0.3, "p_name like '%green%'")
    yield update("part", "p_name = 'desert'", 0.1, "p_name like 'forest%'")
    yield update("part", "p_brand = 'Brand#11'", 0.1, "p_brand = 'Brand#23'")
    yield update("part", "p_size = p_size + 1", 0.1, _BRASS)
    yield update("part", f"p_partkey = p_partkey + {draw.moved_by}", 0.2)
    yield draw.delete("part", 0.2)


def _stock(draw: Draw) -> Iterator[str]:
    update = draw.update
    supplier = draw.any("s_suppkey", "supplier", "ps_partkey", "s_nationkey in (6, 7, 19, 22, 23)")
    german = "ps_suppkey in (select s_suppkey from supplier where s_nationkey = 7)"
    yield (
        f"insert into partsupp select p_partkey, s_suppkey, 900, 1.50, 'new' from part, supplier"
        f" where {_BRASS} and {draw.some('supplier', 0.1)} on conflict do nothing"
    )
    yield (
        f"insert into partsupp select p_partkey, s_suppkey, 5000, 900.00, 'new' from part, supplier"
        f" where p_partkey > {draw.copied_by} and {draw.some('supplier', 0.1)} on conflict do nothing"
    )
    yield update(
        "partsupp", "ps_supplycost = ps_supplycost / 2", 0.5, f"ps_partkey in {_parts_where(_BRASS)}"
    )
    forest = _parts_where("p_name like 'forest%'")
    yield update("partsupp", "ps_availqty = ps_availqty % 50", 1, f"ps_partkey in {forest}")
    yield update("partsupp", "ps_availqty = ps_availqty + 9000, ps_supplycost = ps_supplycost * 3", 2, german)
    is_free = (
        "not exists (select from partsupp other where other.ps_partkey = partsupp.ps_partkey"
        f" and other.ps_suppkey = {supplier})"
    )
    yield update("partsupp", f"ps_suppkey = {supplier}", 1, is_free)
    yield update("partsupp", f"ps_partkey = ps_partkey + {draw.moved_by}", 0.5)
    yield draw.delete("partsupp")


def _customers(draw: Draw) -> Iterator[str]:
    new, update = draw.copied_by, draw.update
    codes = "array['13', '31', '23', '29', '30', '18', '17', '99']"
    phone = f"({codes})[1 + c_custkey % 8] || substring(c_phone from 3)"
    yield (
        f"insert into customer select c_custkey + {new}, c_name, c_address, c_nationkey, {phone},"
        f" 9000 + c_acctbal, c_mktsegment, 'new' from customer where {draw.some('customer', 0.6)}"
    )
    yield update("customer", f"c_phone = {phone}")
    yield update("customer", "c_acctbal = 9876.54 - c_acctbal", 1, _HAS_COUNTRY_CODE)
    yield update("customer", "c_mktsegment = 'MACHINERY'", 1, "c_mktsegment = 'BUILDING'")
    yield update("customer", "c_mktsegment = 'BUILDING'", 1, "c_mktsegment = 'FURNITURE'")
    nation = draw.any("n_nationkey", "nation", "c_custkey", "n_regionkey in (1, 2, 3)")
    yield update("customer", f"c_nationkey = {nation}", 2)
    yield update("customer", f"c_custkey = c_custkey + {draw.moved_by}", 0.5)
    yield draw.delete("customer", 0.5)


def _orders(draw: Draw) -> Iterator[str]:
    new, update = draw.copied_by, draw.update
    customer = draw.any("c_custkey", "customer", "o_orderkey")
    waiting = draw.any("c_custkey", "customer", "o_orderkey", _HAS_COUNTRY_CODE)
    yield (
        f"insert into orders select o_orderkey + {new}, {customer}, o_orderstatus, o_totalprice + 1,"
        f" o_orderdate, o_orderpriority, o_clerk, o_shippriority, 'new' from orders"
        f" where {draw.some('orders', 2, _ASKED)}"
    )
    yield (
        f"insert into lineitem select l_orderkey + {new}, l_partkey, l_suppkey, l_linenumber, l_quantity,"
        " l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate,"
        " l_receiptdate, l_shipinstruct, l_shipmode, 'new' from lineitem"
        f" where l_orderkey + {new} in (select o_orderkey from orders)"
    )
    yield update("orders", f"o_custkey = {customer}", 1, _ASKED)
    yield update("orders", f"o_custkey = {waiting}", 0.5)
    yield update("orders", f"o_custkey = {customer}, o_shippriority = 1", 0.5, _TOP)
    yield update("orders", "o_orderdate = o_orderdate - 80", 2, _ASKED)
    yield update("orders", "o_orderpriority = '2-HIGH'", 1, _ASKED)
    yield update("orders", "o_orderstatus = 'F'", 1, "o_orderstatus <> 'F'")
    yield update("orders", "o_orderstatus = 'P'", 1, "o_orderstatus = 'F'")
    yield update("orders", "o_comment = 'a special word of requests'")
    yield update("orders", "o_totalprice = o_totalprice * 2", 0.5, "o_totalprice > 350000")
    yield update("orders", f"o_orderkey = o_orderkey + {draw.moved_by}", 0.5, _ASKED)
    # half of them take their lineitems along, the others leave them to nobody
    yield (
        f"update lineitem set l_orderkey = l_orderkey + {draw.moved_by} where l_orderkey % 2 = 0"
        f" and l_orderkey + {draw.moved_by} in (select o_orderkey from orders)"
    )
    yield draw.delete("orders", 0.1, _TOP)
    yield draw.delete("orders", 0.5, _ASKED)


def _lineitems(draw: Draw) -> Iterator[str]:
    update = draw.update
    pair = draw.any("ps_partkey, ps_suppkey", "partsupp", "l_orderkey * 8 + l_linenumber")
    yield update("lineitem", f"(l_partkey, l_suppkey) = {pair}", 2, _shipped("1995-01-01", "1996-12-31"))
    yield update("lineitem", "l_suppkey = 1 + (l_suppkey + 7) % 100")
    steel = _parts_where("p_type = 'ECONOMY ANODIZED STEEL'")
    brazilian = draw.any("s_suppkey", "supplier", "l_orderkey", "s_nationkey in (2, 17)")
    yield update("lineitem", f"l_suppkey = {brazilian}", 4, f"l_partkey in {steel}")
    brand = _parts_where("p_brand = 'Brand#23'")
    yield update("lineitem", "l_quantity = 1", 1, f"l_partkey in {brand}")
    brands = _parts_where("p_brand in ('Brand#12', 'Brand#34') and p_size < 10")
    by_hand = "l_shipmode = 'AIR', l_shipinstruct = 'DELIVER IN PERSON'"
    yield update(
        "lineitem", f"l_quantity = 5 + 10 * (l_linenumber % 3), {by_hand}", 4, f"l_partkey in {brands}"
    )
    almost = (
        "(select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) between 260 and 300"
        f" order by l_orderkey % {draw.cycle + 7}, l_orderkey limit 4)"
    )
    yield f"update lineitem set l_quantity = l_quantity + 30 where l_orderkey in {almost}"
    yield update("lineitem", "l_quantity = l_quantity / 2", 1, "l_quantity >= 49")
    yield update("lineitem", "l_extendedprice = l_extendedprice * 3", 1, _FIRST_QUARTER)
    yield update("lineitem", "l_discount = 0.06, l_tax = 0", 1, _shipped("1994-01-01", "1994-12-31"))
    yield update("lineitem", "l_shipdate = l_shipdate + 40", 2, _shipped("1992-01-01", "1995-09-30"))
    yield update("lineitem", "l_receiptdate = l_commitdate + 5", 5)
    yield update("lineitem", "l_receiptdate = l_commitdate - 5", 5)
    yield update("lineitem", "l_returnflag = 'R'", 2, _shipped("1993-10-01", "1994-06-01"))
    yield update("lineitem", "l_shipmode = 'MAIL'", 2, "l_shipmode = 'SHIP'")
    yield update("lineitem", "l_linenumber = l_linenumber + 10")
    yield draw.delete("lineitem", 2)


def _conflicts(draw: Draw) -> Iterator[Transaction]:
    """The same rows again and again: what counts is where they end."""
    there_and_back = f"update orders set o_custkey = -o_custkey where {draw.some('orders')}"
    yield there_and_back, there_and_back
    taken = "(l_orderkey, l_linenumber) in (select l_orderkey, l_linenumber from taken)"
    yield (
        "create temporary table taken on commit drop as"
        f" select * from lineitem where {draw.some('lineitem')}",
        f"delete from lineitem where {taken}",
        "insert into lineitem select * from taken",
        f"update lineitem set l_quantity = l_quantity + 1 where {taken} and l_linenumber < 3",
    )
    yield draw.update("customer", "c_custkey = -c_custkey"), "delete from customer where c_custkey < -900"
    yield ("update customer set c_custkey = -c_custkey where c_custkey < 0",)


def _parts_where(condition: str) -> str:
    return f"(select p_partkey from part where {condition})"


def _shipped(first: str, last: str) -> str:
    return f"l_shipdate between '{first}' and '{last}'"
