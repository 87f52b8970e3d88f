"""Names and values of databases with other encodings arrive as they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from pgtrickle.capture.wal.capture import WalCapture
from pgtrickle.capture.wal.hand_over import hand_over_sources
from pgtrickle.catalog.install import install
from pgtrickle.embedded import Server
from tests.fixtures.databases import Database, drop_database

TEXTS = {"LATIN1": "Zoë § ß", "EUC_JP": "日本 カナ", "UTF8": "€ 日本 ß", "SQL_ASCII": "as it was: ß"}


@pytest.fixture
def encoded(server: Server, encoding: str) -> Iterator[Database]:
    name = f"in_{encoding.lower()}"
    with psycopg.connect(server.dsn(), autocommit=True) as admin:
        admin.execute(
            f"create database {name} encoding '{encoding}' template template0 lc_collate 'C' lc_ctype 'C'"
        )
    yield Database(server, name)
    drop_database(Database(server, name))


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("encoding", TEXTS)
def test_texts_of_every_encoding_are_decoded(encoded: Database, encoding: str, streams: bool) -> None:
    text = TEXTS[encoding]
    dsn = encoded.server.dsn(encoded.name)
    with psycopg.connect(dsn, client_encoding="UTF8") as connection:
        install(connection)
    with psycopg.connect(dsn, client_encoding="UTF8", autocommit=True) as connection:
        connection.execute(f'create table "t {text}" (id int primary key, "c {text}" text)')
        connection.execute(f'alter table "t {text}" replica identity full')
        connection.execute(
            "select pgtrickle.create_stream_table('s', %s, cdc_mode => 'wal')",
            (f'select id, "c {text}" as c from "t {text}"',),
        )
        wal = WalCapture(dsn, streams=streams)
        with closing(wal):
            with wal.using() as decoding:
                assert [found.obstacle for found in hand_over_sources(decoding)] == [None]
            connection.execute(f'insert into "t {text}" values (1, %s), (2, null)', (text,))
            wal.catch_up()
            assert wal.is_streaming == streams, wal.refusal
        row = connection.execute("select source_relid::bigint from pgtrickle.pgt_sources").fetchone()
        assert row is not None
        rows = connection.execute(
            f"select weight, c1, c2 from pgtrickle_changes.changes_{row[0]}_0 order by c1"
        ).fetchall()
    assert rows == [(1, 1, text), (1, 2, None)]
