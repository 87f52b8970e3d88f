"""What happens to regions and nations: few rows, and everything hangs on them."""

from __future__ import annotations

Transaction = tuple[str, ...]


def regions(cycle: int) -> Transaction:
    """Renamed and named back, inserted and deleted, also while nations still refer to them."""
    swap = (
        "update region set r_name = case r_name when 'AMERICA' then 'AFRICA' else 'AMERICA' end"
        " where r_name in ('AMERICA', 'AFRICA')"
    )
    passing = (
        "insert into region values (99, 'ASIA', 'passing')",
        "delete from region where r_regionkey = 99",
    )
    by_cycle: tuple[Transaction, ...] = (
        (
            "insert into region values (5, 'OCEANIA', 'new') on conflict do nothing",
            "update region set r_comment = 'seen' where r_name = 'ASIA'",
        ),
        ("update region set r_name = 'OLD EUROPE' where r_name = 'EUROPE'", swap),
        (
            "update region set r_name = 'EUROPE' where r_name = 'OLD EUROPE'",
            swap,
            "delete from region where r_name in ('OCEANIA', 'MIDDLE EAST')",
        ),
    )
    return (*passing, *by_cycle[cycle % len(by_cycle)])


def nations(cycle: int) -> Transaction:
    """Moved to other regions, two under one name, gone and back, under another key."""
    swap = (
        "update nation set n_name = case n_name when 'BRAZIL' then 'PERU' else 'BRAZIL' end"
        " where n_name in ('BRAZIL', 'PERU')"
    )
    by_cycle: tuple[Transaction, ...] = (
        (
            "insert into nation values (25, 'NEW ZEALAND', 5, 'new') on conflict do nothing",
            "update nation set n_regionkey = (n_regionkey + 1) % 5"
            " where n_name in ('JAPAN', 'IRAN', 'ROMANIA')",
        ),
        (
            "update nation set n_name = 'GERMANY' where n_name = 'UNITED KINGDOM'",
            "delete from nation where n_name = 'FRANCE'",
            "update nation set n_nationkey = 26 where n_name = 'VIETNAM'",
            swap,
        ),
        (
            "insert into nation values (6, 'FRANCE', 3, 'back') on conflict do nothing",
            "update nation set n_name = 'UNITED KINGDOM' where n_nationkey = 23",
            "update nation set n_regionkey = 2 where n_name in ('CANADA', 'NEW ZEALAND')",
            "update nation set n_nationkey = 21 where n_nationkey = 26",
            swap,
        ),
    )
    passing = ("insert into nation values (99, 'INDIA', 2, '')", "delete from nation where n_nationkey = 99")
    return (*passing, *by_cycle[cycle % len(by_cycle)])
