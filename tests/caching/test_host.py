"""Files on the host are private, whole or not there, and never an error."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from pgtrickle.model.settings import read_settings
from pgtrickle.refresh.caching.host import KEPT_SECONDS, HostFiles


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "caches" / "pgtrickle"


@pytest.fixture
def files(place: Path) -> HostFiles:
    return HostFiles(place)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_written_is_read_by_another_process(files, place):
    files.write("db", "0-a", b"plan")
    assert HostFiles(place).read("db", "0-a") == b"plan"
    assert files.read("db", "0-b") is None
    assert files.read("other", "0-a") is None


def test_nobody_else_may_look(files, place):
    before = os.umask(0)
    try:
        files.write("db", "0-a", b"plan")
    finally:
        os.umask(before)
    assert [mode(path) for path in (place, place / "db", place / "db" / "0-a")] == [0o700, 0o700, 0o600]


def test_a_file_is_replaced_at_once_and_leaves_nothing_beside_it(files, place):
    files.write("db", "0-a", b"old")
    files.write("db", "0-a", b"new")
    assert files.read("db", "0-a") == b"new"
    assert [path.name for path in (place / "db").iterdir()] == ["0-a"]


def test_a_directory_that_others_may_write_to_is_not_used(files, place):
    files.write("db", "0-a", b"plan")
    (place / "db").chmod(0o777)
    assert files.read("db", "0-a") is None
    files.write("db", "0-b", b"plan")
    assert not (place / "db" / "0-b").exists()


def test_a_file_that_others_may_write_to_is_not_read(files, place):
    files.write("db", "0-a", b"plan")
    (place / "db" / "0-a").chmod(0o666)
    assert files.read("db", "0-a") is None


def test_links_are_not_followed(files, place, tmp_path):
    files.write("db", "0-a", b"plan")
    (place / "db" / "0-b").symlink_to(place / "db" / "0-a")
    (tmp_path / "elsewhere").symlink_to(place)
    assert files.read("db", "0-b") is None
    (place / "linked").symlink_to(place / "db")
    assert files.read("linked", "0-a") is None


def test_a_place_that_cannot_be_written_to_is_a_miss(tmp_path):
    (tmp_path / "file").write_text("")
    files = HostFiles(tmp_path / "file" / "below")
    files.write("db", "0-a", b"plan")
    assert files.read("db", "0-a") is None
    assert files.clear("db") == 0


def test_clearing_removes_the_files_of_one_database(files):
    files.write("db", "0-a", b"plan")
    files.write("other", "0-a", b"plan")
    assert files.clear("db") == 1
    assert files.read("db", "0-a") is None
    assert files.read("other", "0-a") == b"plan"


def test_what_nobody_read_for_long_goes(files, place):
    files.write("db", "0-old", b"plan")
    files.write("db", "0-used", b"plan")
    past = time.time() - KEPT_SECONDS - 60
    os.utime(place / "db" / "0-old", (past, past))
    os.utime(place / "db" / "0-used", (past, past))
    assert HostFiles(place).read("db", "0-used") == b"plan"
    HostFiles(place).write("other", "0-a", b"plan")
    assert sorted(path.name for path in (place / "db").iterdir()) == ["0-used"]


def test_what_was_cleared_while_nobody_ran_goes(files, place):
    files.write("db", "0-a", b"plan", still_used="0-")
    HostFiles(place).write("db", "1-a", b"plan", still_used="1-")
    assert [path.name for path in (place / "db").iterdir()] == ["1-a"]


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/pgtrickle"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/var/c"}, "/var/c/pgtrickle"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "relative"}, "/home/me/.cache/pgtrickle"),
        ({"HOME": "/home/me", "PGTRICKLE_CACHE_DIR": "/srv/plans"}, "/srv/plans"),
        ({"HOME": "/home/me", "PGTRICKLE_CACHE_DIR": "off"}, None),
        ({"HOME": "/home/me", "PGTRICKLE_CACHE_DIR": ""}, "/home/me/.cache/pgtrickle"),
        ({}, None),
    ],
)
def test_the_environment_says_where(environment, found):
    directory = read_settings(environment).cache_directory(environment)
    assert directory == (Path(found) if found else None)
