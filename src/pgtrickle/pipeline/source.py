"""Reads PostgreSQL from Spark's tasks: each runs its queries on its own connection, in a shared snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pgtrickle.model.carrier import BIGINT, DecimalType, Field, PlainType, SparkType
from pgtrickle.pipeline.names import quoted
from pgtrickle.postgres.arrow import WEIGHT, arrow_type, read_batches
from pgtrickle.postgres.connection import connect, set_locally, sql

TASK_BYTES: Final = 1 << 20
"""How many bytes of its query's result a task holds at a time."""

STATEMENT_TIMEOUT: Final = "statement_timeout"
_SHORTEN: Final = (
    "select set_config(%(name)s, %(value)s, true) from pg_catalog.pg_settings"
    " where name = %(name)s and (setting = '0' or setting::bigint > %(value)s::bigint)"
)
"""A limit in milliseconds, unless the role has a shorter one."""


@dataclass(frozen=True, slots=True)
class PartitionedQuery:
    """Rows that many tasks read: each runs one or more SQL texts, all in the exported snapshot.

    The reads are evaluated under `settings` (`TimeZone`, `DateStyle`, …). At most `tasks` tasks read, each on
    one connection; without a limit, each text has a task of its own.
    """

    queries: tuple[str, ...]
    fields: tuple[Field, ...]
    snapshot: str
    settings: tuple[tuple[str, str], ...] = ()
    has_weight: bool = False
    tasks: int | None = None

    @property
    def shares(self) -> list[tuple[str, ...]]:
        """The texts of each task."""
        count = len(self.queries) if self.tasks is None else min(self.tasks, len(self.queries))
        return [self.queries[number::count] for number in range(count)]

    @property
    def columns(self) -> list[tuple[str, SparkType]]:
        """Names and Spark types of the columns of the queries."""
        columns = [(field.name, field.carrier.form) for field in self.fields]
        return [*columns, (WEIGHT, BIGINT)] if self.has_weight else columns


class Sources:
    """The data sources of one session: one for each database, registered when it is first read.

    Plans and the UI show the options of a read, so those hold no secrets. The connection string is part of
    the registered class, which is pickled and sent to the tasks.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._formats: dict[str, str] = {}

    def frame(self, dsn: str, query: PartitionedQuery) -> DataFrame:
        """The rows of the query, one partition for each share of its texts."""
        options = {
            "shares": json.dumps(query.shares),
            "columns": _encode_columns(query.columns),
            "snapshot": query.snapshot,
            "settings": json.dumps(query.settings),
        }
        return self._session.read.format(self._format(dsn)).options(**options).load()

    def _format(self, dsn: str) -> str:
        if dsn not in self._formats:
            # sessions of one context share the names of their sources, and others may have registered some
            name = f"pgtrickle_{uuid4().hex}"
            self._session.dataSource.register(_source_of(dsn, name))
            self._formats[dsn] = name
        return self._formats[dsn]


def _encode_columns(columns: Sequence[tuple[str, SparkType]]) -> str:
    """The columns as an option of a read: a decimal as its precision and scale, other types by name."""
    forms = [[t.precision, t.scale] if isinstance(t, DecimalType) else t.spark for _, t in columns]
    return json.dumps([(name, form) for (name, _), form in zip(columns, forms, strict=True)])


def _decode_columns(option: str) -> list[tuple[str, SparkType]]:
    columns = json.loads(option)
    return [(name, PlainType(f) if isinstance(f, str) else DecimalType(*f)) for name, f in columns]


def _source_of(dsn: str, format_name: str) -> type[DataSource]:
    """A data source for one database; a local class, so that it is pickled together with the address."""

    class PostgresSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def schema(self) -> str:
            columns = _decode_columns(self.options["columns"])
            return ", ".join(f"{quoted(name)} {form.spark}" for name, form in columns)

        def reader(self, schema: StructType) -> DataSourceReader:
            return PostgresReader(dsn, self.options)

    return PostgresSource


class PostgresReader(DataSourceReader):
    """Gives each share of the queries to one task."""

    def __init__(self, dsn: str, options: MutableMapping[str, str]) -> None:
        self._dsn = dsn
        self._shares: list[list[str]] = json.loads(options["shares"])
        self._columns = _decode_columns(options["columns"])
        self._settings: list[tuple[str, str]] = json.loads(options["settings"])
        self._snapshot = options["snapshot"]

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        queries: list[str] | None = partition.value
        if queries is None:  # a read without queries still has one partition
            return
        schema = pa.schema([(name, arrow_type(form)) for name, form in self._columns])
        with connect(self._dsn, application_name="pgtrickle task") as connection:
            connection.execute("set transaction isolation level repeatable read read only")
            connection.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(self._snapshot)))
            bounds = {name: value for name, value in self._settings if name == STATEMENT_TIMEOUT}
            set_locally(connection, {n: v for n, v in self._settings if n not in bounds})
            for name, value in bounds.items():
                connection.execute(_SHORTEN, {"name": name, "value": value})
            for query in queries:
                yield from read_batches(connection, query, schema, chunk_bytes=TASK_BYTES)
