"""The statements of plain changes, by table; each takes arrays of keys, and of rows to resemble."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, LiteralString

INSERT: Final[Mapping[str, LiteralString]] = {
    "region": """
        insert into region
        select n.key, 'REGION ' || n.key, m.r_comment
        from unnest(%s::int[], %s::int[]) n(key, model) join region m on m.r_regionkey = n.model""",
    "nation": """
        insert into nation
        select n.key, 'NATION ' || n.key, m.n_regionkey, m.n_comment
        from unnest(%s::int[], %s::int[]) n(key, model) join nation m on m.n_nationkey = n.model""",
    "supplier": """
        insert into supplier
        select n.key, 'Supplier#' || lpad(n.key::text, 9, '0'), m.s_address, m.s_nationkey, m.s_phone,
            m.s_acctbal, m.s_comment
        from unnest(%s::int[], %s::int[]) n(key, model) join supplier m on m.s_suppkey = n.model""",
    "customer": """
        insert into customer
        select n.key, 'Customer#' || lpad(n.key::text, 9, '0'), m.c_address, m.c_nationkey, m.c_phone,
            m.c_acctbal, m.c_mktsegment, m.c_comment
        from unnest(%s::int[], %s::int[]) n(key, model) join customer m on m.c_custkey = n.model""",
    "part": """
        insert into part
        select n.key, m.p_name, m.p_mfgr, m.p_brand, m.p_type, m.p_size, m.p_container, m.p_retailprice,
            m.p_comment
        from unnest(%s::int[], %s::int[]) n(key, model) join part m on m.p_partkey = n.model""",
    "partsupp": """
        insert into partsupp
        select n.key, m.ps_suppkey, m.ps_availqty, m.ps_supplycost, m.ps_comment
        from unnest(%s::int[], %s::int[]) n(key, model) join partsupp m on m.ps_partkey = n.model""",
    "orders": """
        insert into orders
        select n.key, m.o_custkey, m.o_orderstatus, m.o_totalprice, m.o_orderdate, m.o_orderpriority,
            m.o_clerk, m.o_shippriority, m.o_comment
        from unnest(%s::bigint[], %s::bigint[]) n(key, model) join orders m on m.o_orderkey = n.model""",
    "lineitem": """
        insert into lineitem
        select n.key, m.l_partkey, m.l_suppkey, m.l_linenumber, m.l_quantity, m.l_extendedprice,
            m.l_discount, m.l_tax, m.l_returnflag, m.l_linestatus, m.l_shipdate, m.l_commitdate,
            m.l_receiptdate, m.l_shipinstruct, m.l_shipmode, m.l_comment
        from unnest(%s::bigint[], %s::bigint[]) n(key, model) join lineitem m on m.l_orderkey = n.model""",
}

DELETE: Final[Mapping[str, LiteralString]] = {
    "region": "delete from region where r_regionkey = any(%s::int[])",
    "nation": "delete from nation where n_nationkey = any(%s::int[])",
    "supplier": "delete from supplier where s_suppkey = any(%s::int[])",
    "customer": "delete from customer where c_custkey = any(%s::int[])",
    "part": "delete from part where p_partkey = any(%s::int[])",
    "partsupp": "delete from partsupp where ps_partkey = any(%s::int[])",
    "orders": "delete from orders where o_orderkey = any(%s::bigint[])",
    "lineitem": "delete from lineitem where l_orderkey = any(%s::bigint[])",
}

UPDATE: Final[Mapping[str, LiteralString]] = {
    "region": """
        update region r set r_comment = reverse(r.r_comment)
        from unnest(%s::int[], %s::int[]) n(key, model) where r.r_regionkey = n.key""",
    "nation": """
        update nation t set n_comment = reverse(t.n_comment)
        from unnest(%s::int[], %s::int[]) n(key, model) where t.n_nationkey = n.key""",
    # every fourth supplier and customer moves to another nation
    "supplier": """
        update supplier s set s_acctbal = m.s_acctbal + 1, s_comment = m.s_comment, s_phone = m.s_phone,
            s_nationkey = case when n.key %% 4 = 0 then m.s_nationkey else s.s_nationkey end
        from unnest(%s::int[], %s::int[]) n(key, model) join supplier m on m.s_suppkey = n.model
        where s.s_suppkey = n.key""",
    "customer": """
        update customer c set c_acctbal = m.c_acctbal + 1, c_phone = m.c_phone, c_mktsegment = m.c_mktsegment,
            c_nationkey = case when n.key %% 4 = 0 then m.c_nationkey else c.c_nationkey end
        from unnest(%s::int[], %s::int[]) n(key, model) join customer m on m.c_custkey = n.model
        where c.c_custkey = n.key""",
    "part": """
        update part p set p_name = m.p_name, p_brand = m.p_brand, p_type = m.p_type, p_size = m.p_size,
            p_container = m.p_container
        from unnest(%s::int[], %s::int[]) n(key, model) join part m on m.p_partkey = n.model
        where p.p_partkey = n.key""",
    # one supplier of each part
    "partsupp": """
        update partsupp t set ps_availqty = 1 + (t.ps_availqty + 1009) %% 9999,
            ps_supplycost = 1 + (t.ps_supplycost + n.model) %% 999
        from (
            select distinct on (ps_partkey) ps_partkey, ps_suppkey, n.model
            from unnest(%s::int[], %s::int[]) n(key, model) join partsupp on ps_partkey = n.key
            order by ps_partkey, (ps_suppkey + n.model) %% 7
        ) n
        where t.ps_partkey = n.ps_partkey and t.ps_suppkey = n.ps_suppkey""",
    # every second order moves to another customer, every fourth to another day
    "orders": """
        update orders o set o_totalprice = o.o_totalprice + 1,
            o_custkey = case when n.place %% 2 = 0 then n.customer else o.o_custkey end,
            o_orderdate = case when n.place %% 4 = 0 then o.o_orderdate + 3 else o.o_orderdate end,
            o_orderpriority = case when n.place %% 4 = 1 then '2-HIGH' else o.o_orderpriority end
        from unnest(%s::bigint[], %s::int[]) with ordinality n(key, customer, place)
        where o.o_orderkey = n.key""",
    # every second lineitem arrives later, every fourth is of another part and supplier
    "lineitem": """
        update lineitem l set l_quantity = n.quantity,
            l_extendedprice = l.l_extendedprice / l.l_quantity * n.quantity,
            l_discount = (n.quantity %% 11) / 100.0,
            l_receiptdate = case when n.place %% 2 = 0 then l.l_receiptdate + 2 else l.l_receiptdate end,
            l_shipdate = case when n.place %% 4 = 2 then l.l_shipdate + 1 else l.l_shipdate end,
            l_partkey = case when n.place %% 4 = 0 then m.ps_partkey else l.l_partkey end,
            l_suppkey = case when n.place %% 4 = 0 then m.ps_suppkey else l.l_suppkey end
        from unnest(%s::bigint[], %s::int[], %s::int[], %s::int[])
            with ordinality n(key, number, quantity, part, place)
        cross join lateral (select ps_partkey, ps_suppkey from partsupp where ps_partkey = n.part limit 1) m
        where l.l_orderkey = n.key and l.l_linenumber = n.number""",
}

RENUMBER: Final[Mapping[str, LiteralString]] = {
    "orders": "update orders set o_orderkey = %s where o_orderkey = %s",
    "lineitem": "update lineitem set l_orderkey = %s where l_orderkey = %s",
}

LAST_LINES: Final[LiteralString] = """
    select l_orderkey, max(l_linenumber) from lineitem where l_orderkey = any(%s::bigint[])
    group by l_orderkey order by l_orderkey"""
