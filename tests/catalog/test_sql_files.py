"""Every SQL file of the catalog is listed where a reader looks for it."""

from __future__ import annotations

from importlib.resources import files

from pgtrickle.catalog.functions import FUNCTIONS
from pgtrickle.catalog.identity import MIGRATIONS


def sql_files(package: str, folder: str) -> set[str]:
    return {file.name for file in files(package).joinpath("sql", folder).iterdir()}


def test_every_migration_is_listed_in_order() -> None:
    assert list(MIGRATIONS) == sorted(sql_files("pgtrickle.catalog", "migrations"))


def test_every_file_of_functions_is_listed_once() -> None:
    packages = ("pgtrickle.catalog", "pgtrickle.capture")
    present = [(package, name) for package in packages for name in sql_files(package, "functions")]
    assert sorted(FUNCTIONS) == sorted(present)
