"""What happens in one window: new events, and transactions that change the same old rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from tests.nexmark.generating import SIDE_INPUTS, Site

EVENTS: Final = 60

Transaction = tuple[str, ...]


def changes(site: Site, cycle: int) -> tuple[Transaction, ...]:
    """The transactions of one window, to be committed in turn."""
    return (
        tuple(_insert(table, row) for table, row in site.events(EVENTS)),
        tuple(_bids(site, cycle)),
        tuple(_auctions(site, cycle)),
        (*_people(site, cycle), *_side_inputs(cycle)),
        *_conflicts(site),
    )


def _insert(table: str, row: tuple[object, ...]) -> str:
    return f"insert into {table} values ({', '.join(map(_literal, row))})"


def _literal(value: object) -> str:
    if isinstance(value, datetime):
        return f"'{value.isoformat(sep=' ')}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _bids(site: Site, cycle: int) -> Iterator[str]:
    """Prices, auctions and times move; the highest bids go; some bids are made twice."""
    for _ in range(5):
        more = site.draw.randint(-50, 50)
        yield f"update bid set price = price + {more} where auction = {site.some_auction()}"
    yield f"update bid set auction = {site.some_auction()} where bidder = {site.seller()}"
    yield f"update bid set date_time = date_time + interval '9 seconds' where auction = {site.some_auction()}"
    yield "delete from bid where price = (select max(price) from bid)"
    yield f"delete from bid where bidder = {site.seller()} and auction % 3 = {cycle % 3}"
    yield f"insert into bid select * from bid where auction = {site.some_auction()}"
    yield f"update bid set channel = 'apple' where channel = 'baidu' and bidder % 5 = {cycle % 5}"
    yield f"update bid set url = replace(url, '/oak/', '/yew/') where bidder = {site.seller()}"
    yield f"update bid set channel = null, price = null, extra = null where auction = {site.some_auction()}"


def _auctions(site: Site, cycle: int) -> Iterator[str]:
    """Categories, sellers and ends change; an auction gets another id; some are withdrawn."""
    yield f"update auction set category = 10 where id % 7 = {cycle % 7}"
    yield f"update auction set category = category + 1 where id % 11 = {cycle % 11}"
    yield f"update auction set seller = {site.seller()} where id = {site.some_auction()}"
    yield f"update auction set expires = expires + interval '20 seconds' where id % 5 = {cycle % 5}"
    yield f"update auction set expires = date_time where id = {site.some_auction()}"
    yield f"update auction set date_time = date_time - interval '10 seconds' where id % 13 = {cycle % 13}"
    yield f"update auction set id = id + 5000 where id = {site.some_auction()}"
    yield f"delete from auction where id in ({site.some_auction()}, {site.some_auction()})"


def _people(site: Site, cycle: int) -> Iterator[str]:
    """They move within the states that q3 asks for, and out of them; some leave."""
    yield f"update person set state = 'or', city = 'Bend' where id % 4 = {cycle % 4}"
    yield f"update person set state = 'wa' where id % 6 = {cycle % 6}"
    later = "date_time = date_time + interval '10 seconds'"
    yield f"update person set name = name || ' II', {later} where id = {site.seller()}"
    yield f"update person set id = id + 5000 where id = {site.seller()}"
    yield f"delete from person where id = {site.seller()}"


def _side_inputs(cycle: int) -> Iterator[str]:
    yield f"update side_input set value = 'changed {cycle}' where key % 8 = {cycle % 8}"
    yield f"delete from side_input where key = {3 * cycle + 1}"
    yield f"insert into side_input values ({SIDE_INPUTS + cycle}, 'new {cycle}')"


def _conflicts(site: Site) -> Iterator[Transaction]:
    """There and back, and deleted and inserted again, in one window."""
    moved, again = site.some_auction(), site.some_auction()
    yield (f"update bid set auction = auction + 1 where auction = {moved}",)
    yield (f"update bid set auction = auction - 1 where auction = {moved + 1}",)
    yield (
        f"create temp table held on commit drop as select * from auction where id = {again}",
        f"delete from auction where id = {again}",
        "insert into auction select * from held",
    )
