"""Random statements over the arena: writes, and every kind of DDL that a stream table may feel.

Nothing here tracks what the arena looks like: PostgreSQL refuses what does not fit, and that is harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

ADMIN, APP = "admin", "app"
BATCHES: Final = 6


class Ending(Enum):
    """How a step's statements are run."""

    EACH = "each by itself"
    COMMIT = "commit"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Step:
    """Statements of one role, run one by one or in one transaction."""

    role: str
    statements: tuple[str, ...]
    ending: Ending = Ending.EACH

    def __str__(self) -> str:
        body = "\n".join(f"{statement};" for statement in self.statements)
        if self.ending is Ending.EACH:
            return f"-- {self.role}\n{body}"
        return f"-- {self.role}\nbegin;\n{body}\n{self.ending.value};"


WRITES: Final = (
    "insert into orders (id, customer, amount, note, feeling, size) "
    "values ({n}, {k}, {n}, 'note {k}', 'ok', {k} + 1) on conflict do nothing",
    "insert into orders (id, customer, amount) select {n} + g, {k}, g "
    "from generate_series(1, 5) g on conflict do nothing",
    "update orders set amount = amount + {k} where id % 3 = {k} % 3",
    "update orders set customer = {k} where id = {n} % 9",
    "update orders set note = null where id % 4 = {k} % 4",
    "delete from orders where id % 5 = {k} % 5",
    "update customers set region = 'region {k}' where id = {k}",
    "insert into customers values ({n}, 'name {n}', 'region {k}') on conflict do nothing",
    "delete from customers where id = {k} + 1",
    "insert into events values ({n}, {k}, 'label {n}')",
    "update events set kind = {k} where id % 4 = {k}",
    "delete from events where id % 3 = {k} % 3",
    "insert into events_1 values ({n}, 1, 'direct')",
    "delete from events_0",
    "insert into loose values ({n}, 5, 'loose {n}')",
    "update loose set label = label || '!'",
    "insert into parents values ({n}, 'parent {n}')",
    "update parents set label = label || '.' where id % 3 = {k} % 3",
    "insert into children values ({n}, 'child {n}', {k})",
    "delete from children where id % 2 = {k} % 2",
    "insert into later values ({n}, 'later {n}')",
    "update later set label = 'l{k}'",
    "truncate orders",
    "truncate events_1",
    "truncate parents",
    "refresh materialized view regions",
)

TABLE_DDL: Final = (
    "alter table orders add column extra int default {k}",
    "alter table orders drop column extra",
    "alter table orders alter column amount type bigint",
    "alter table orders alter column amount type bigint using amount * 10",
    "alter table orders alter column amount type int using amount * 2",
    "alter table orders alter column amount type int using amount::int",
    "alter table orders alter column amount type numeric(12, 2)",
    "alter table orders alter column note type varchar(40)",
    "alter table orders alter column note type text using note || '*'",
    "alter table orders alter column note set default 'none'",
    "alter table orders alter column amount set statistics 10",
    "alter table orders alter column size drop not null",
    "alter table orders alter column feeling type text using feeling::text",
    "alter table orders alter column feeling type mood using feeling::text::mood",
    "alter table orders rename column note to remark",
    "alter table orders rename column remark to note",
    "alter table orders rename to orders_renamed",
    "alter table orders_renamed rename to orders",
    "alter table orders drop column note",
    "alter table orders add column note text default 'new'",
    "alter table orders drop constraint orders_pkey",
    "alter table orders add primary key (id)",
    "alter table orders add constraint positive check (amount > -1000000) not valid",
    "alter table orders drop constraint positive",
    "create index on orders (customer)",
    "alter table orders set (fillfactor = 80)",
    "comment on table orders is 'number {n}'",
    "alter table orders replica identity full",
    "alter table orders set schema public",
    "alter table public.orders set schema arena",
    "alter table customers alter column name type varchar(10) using left(name, 3)",
    "alter table customers alter column name type text",
    "drop table customers",
    "create table customers (id int primary key, name varchar(20), region text)",
    "alter table customers disable trigger all",
    "alter table customers enable trigger all",
    "alter table orders disable trigger user",
    "alter table orders enable trigger user",
    "alter table orders enable row level security",
    "alter table orders force row level security",
    "alter table orders no force row level security",
    "alter table orders disable row level security",
)

TREE_DDL: Final = (
    "alter table events detach partition events_0",
    "alter table events attach partition events_0 for values in (0)",
    "alter table events detach partition events_1",
    "alter table events attach partition events_1 for values in (1, 2)",
    "alter table events detach partition events_rest",
    "alter table events attach partition events_rest default",
    "alter table events attach partition loose for values in (5)",
    "alter table events detach partition loose",
    "create table events_{n} partition of events for values in ({n})",
    "alter table events add column extra int",
    "alter table events drop column extra",
    "alter table events alter column label type varchar(60)",
    "alter table events rename column label to title",
    "alter table events rename column title to label",
    "alter table events_1 disable trigger all",
    "alter table events_1 enable trigger all",
    "alter table events_1 set unlogged",
    "alter table events_1 set logged",
    "alter table children no inherit parents",
    "alter table children inherit parents",
    "alter table later inherit parents",
    "alter table later no inherit parents",
    "create table children_{n} () inherits (parents)",
    "alter table parents alter column label type varchar(60)",
    "alter table parents disable trigger all",
    "alter table parents enable trigger all",
    "drop table events_0",
    "create table events_0 partition of events for values in (0)",
)

CODE_DDL: Final = (
    "create or replace function doubled(n int) returns int language sql immutable as 'select n * {k}'",
    "create or replace function scaled(n int) returns int language sql immutable "
    "as 'select arena.doubled(n) + {k}'",
    "create or replace function worded(n int) returns text language plpgsql immutable "
    "as $$ begin return 'w{k} ' || n; end $$",
    "create or replace function mood_text(m mood) returns text language plpgsql immutable "
    "as $$ begin return 'mood {k}'; end $$",
    "alter function scaled(int) volatile",
    "alter function scaled(int) immutable",
    "alter function worded(int) set search_path = pg_catalog",
    "drop function worded(int)",
    "alter function doubled(int) rename to twice",
    "alter function twice(int) rename to doubled",
    "create or replace view big_orders as select id, customer, amount from orders where amount > {k}",
    "alter view big_orders rename to large_orders",
    "alter view large_orders rename to big_orders",
    "alter view big_orders rename column amount to other",
    "alter view big_orders rename column customer to amount",
    "alter view big_orders rename column other to customer",
    "alter type mood rename to feelings",
    "alter type feelings rename to mood",
    "alter type mood rename value 'ok' to 'fine'",
    "alter type mood rename value 'fine' to 'ok'",
    "alter type mood add value if not exists 'level {k}'",
    "alter type pair add attribute c int",
    "alter type pair drop attribute c",
    "alter type pair rename attribute b to bb",
    "alter type pair rename attribute bb to b",
    "alter domain small add constraint low check (value < {n} + 2000)",
    "alter domain small drop constraint low",
    "alter domain small drop constraint small_check",
    "create cast (mood as text) with function mood_text(mood)",
    "create cast (mood as text) with function mood_text(mood) as assignment",
    "drop cast (mood as text)",
)

RIGHTS_DDL: Final = (
    "revoke select on orders from reporter",
    "grant select on orders to reporter",
    "revoke select on customers from reporter",
    "grant select on customers to reporter",
    "revoke usage on schema arena from reporter",
    "grant usage on schema arena to reporter",
    "revoke select on orders from trickle",
    "grant select, trigger on orders to trickle",
    "revoke trigger on events from trickle",
    "grant select, trigger on events to trickle",
    "revoke execute on function scaled(int) from public",
    "grant execute on function scaled(int) to public",
    "grant select on orders to public",
    "revoke select on orders from public",
    "alter table orders owner to reporter",
    "alter table orders owner to app",
    "alter table by_customer owner to reporter",
    "alter table by_customer owner to app",
)

STREAM_DDL: Final = (
    "alter table by_customer rename to by_client",
    "alter table by_client rename to by_customer",
    "create index on by_customer (total)",
    "alter table by_customer drop column total",
    "alter table by_customer add column total bigint",
    "create table by_customer_child () inherits (by_customer)",
    "drop table by_customer_child",
    "alter table labels disable trigger all",
    "alter table labels enable trigger all",
    "drop trigger pgtrickle_guard on labels",
    "alter table labels alter column label type varchar(60)",
    "alter table moods enable row level security",
    "alter table moods disable row level security",
)

MAINTENANCE: Final = (
    "vacuum full orders",
    "cluster orders using orders_pkey",
    "analyze orders",
    "vacuum orders",
    "reindex table orders",
    "alter table events detach partition events_0 concurrently",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'trickle' and random() < 0.3",
    "set session_replication_role = replica",
    "reset session_replication_role",
)
"""Run by the superuser, never inside a transaction."""

_DDL: Final = (
    (TABLE_DDL, APP, 6),
    (TREE_DDL, APP, 6),
    (CODE_DDL, ADMIN, 5),
    (RIGHTS_DDL, ADMIN, 3),
    (STREAM_DDL, ADMIN, 2),
)


Batch = tuple[Step, ...]
"""What happens before the stream tables are compared."""


def drawn_batches(seed: int) -> tuple[Batch, ...]:
    """The batches of one round."""
    draw = Random(seed)
    return tuple(_batch(draw) for _ in range(BATCHES))


def _batch(draw: Random) -> Batch:
    """DDL with writes before, between and after."""
    return tuple(_step(draw) for _ in range(draw.randint(1, 5)))


def _step(draw: Random) -> Step:
    choice = draw.random()
    if choice < 0.1:
        return Step(ADMIN, (draw.choice(MAINTENANCE),))
    if choice < 0.35:
        return Step(draw.choice((APP, APP, ADMIN)), _writes(draw))
    (pool, role, _) = draw.choices(_DDL, [weight for *_, weight in _DDL])[0]
    statements = [_filled(draw, draw.choice(pool))]
    if draw.random() < 0.5:
        statements = [*_writes(draw), *statements]
    if draw.random() < 0.4:
        statements += [_filled(draw, draw.choice(pool)), *_writes(draw)]
    ending = draw.choices(list(Ending), [6, 3, 1])[0]
    return Step(role, tuple(statements), ending)


def _writes(draw: Random) -> tuple[str, ...]:
    return tuple(_filled(draw, draw.choice(WRITES)) for _ in range(draw.randint(1, 3)))


def _filled(draw: Random, statement: str) -> str:
    return statement.replace("{n}", str(draw.randrange(10, 40))).replace("{k}", str(draw.randrange(5)))
