"""Temporary files are bounded where the role may say so, and never wider than somebody else bounded them."""

from __future__ import annotations

import pytest

from pgtrickle.model.settings import Pooling
from pgtrickle.postgres.pool import Pool
from pgtrickle.postgres.temp_files import TempFiles


@pytest.mark.every_postgres
def test_temporary_files_are_bounded_once_the_role_may_set_that(admin, database):
    def bounded() -> tuple[TempFiles | None, str]:
        pool = Pool(database.dsn(), pooling=Pooling.NO, temp_file_limit="1GB")
        with pool.connection() as connection:
            connection.rollback()
            row = connection.execute("show temp_file_limit").fetchone()
        pool.close()
        assert row is not None
        return pool.temp_files, row[0]

    assert bounded() == (TempFiles.UNLIMITED, "-1")
    admin.execute("grant set on parameter temp_file_limit to trickle")
    try:
        assert bounded() == (TempFiles.LIMITED, "1GB")
        admin.execute("alter role trickle set temp_file_limit = '100MB'")
        assert bounded() == (TempFiles.LIMITED_BEFORE, "100MB")
    finally:
        admin.execute("alter role trickle reset temp_file_limit")
        admin.execute("revoke set on parameter temp_file_limit from trickle")


def test_nothing_is_bounded_behind_a_pooler(database):
    pool = Pool(database.dsn(), pooling=Pooling.YES, temp_file_limit="1GB")
    with pool.connection() as connection:
        assert connection.execute("show temp_file_limit").fetchone() == ("-1",)
    assert pool.temp_files is TempFiles.UNLIMITED
    pool.close()
