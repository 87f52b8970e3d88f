"""Fixtures of all tests, by concern; each module under `fixtures` holds one."""

pytest_plugins = [
    "tests.fixtures.lanes",
    "tests.fixtures.golden",
    "tests.fixtures.caches",
    "tests.fixtures.servers",
    "tests.fixtures.poolers",
    "tests.fixtures.databases",
    "tests.fixtures.sources",
    "tests.fixtures.clusters",
    "tests.fixtures.spark",
    "tests.fixtures.stream_tables",
    "tests.fixtures.wal",
]
