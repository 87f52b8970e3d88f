"""Reads PostgreSQL from Spark's tasks: each runs its queries on its own connection, in a shared snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pgtrickle.model.carrier import BIGINT, DecimalType, Field, PlainType, SparkType
from pgtrickle.pipeline.names import quoted
from pgtrickle.pipeline.task_address import TaskAddress, TaskAddresses
from pgtrickle.postgres.arrow import WEIGHT, arrow_type, read_batches
from pgtrickle.postgres.column_arrays import ColumnReader, PageRange
from pgtrickle.postgres.connection import Connection, set_locally, sql

TASK_BYTES: Final = 1 << 20
"""How many bytes of its query's result a task holds at a time."""

STATEMENT_TIMEOUT: Final = "statement_timeout"
_SHORTEN: Final = (
    "select set_config(%(name)s, %(value)s, true) from pg_catalog.pg_settings"
    " where name = %(name)s and (setting = '0' or setting::bigint > %(value)s::bigint)"
)
"""A limit in milliseconds, unless the role has a shorter one."""


@dataclass(frozen=True, slots=True)
class PagedQuery:
    """The rows on a range of pages, read column by column, `step` pages at a time.

    `text` has the range as its parameters.
    """

    text: str
    pages: PageRange
    step: int


TaskQuery: TypeAlias = str | PagedQuery


@dataclass(frozen=True, slots=True)
class PartitionedQuery:
    """Rows that many tasks read: each runs one or more queries, all in the exported snapshot.

    The reads are evaluated under `settings` (`TimeZone`, `DateStyle`, …). At most `tasks` tasks read, each on
    one connection; without a limit, each query has a task of its own.
    """

    queries: tuple[TaskQuery, ...]
    fields: tuple[Field, ...]
    snapshot: str
    settings: tuple[tuple[str, str], ...] = ()
    has_weight: bool = False
    tasks: int | None = None

    @property
    def shares(self) -> list[tuple[TaskQuery, ...]]:
        """The queries of each task."""
        count = len(self.queries) if self.tasks is None else min(self.tasks, len(self.queries))
        return [self.queries[number::count] for number in range(count)]

    @property
    def columns(self) -> list[tuple[str, SparkType]]:
        """Names and Spark types of the columns of the queries."""
        columns = [(field.name, field.carrier.form) for field in self.fields]
        return [*columns, (WEIGHT, BIGINT)] if self.has_weight else columns


class Sources:
    """The data sources of one session: one for each database, registered when it is first read.

    Plans and the UI show the options of a read. The address is part of the registered class, which is pickled
    and sent to the tasks. None of them contains a secret.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self.addresses = TaskAddresses()
        self._formats: dict[str, str] = {}

    def frame(self, dsn: str, query: PartitionedQuery) -> DataFrame:
        """The rows of the query, one partition for each share of its texts."""
        options = {
            "shares": json.dumps([[_encode_query(one) for one in share] for share in query.shares]),
            "columns": _encode_columns(query.columns),
            "snapshot": query.snapshot,
            "weighted": json.dumps(query.has_weight),
            "settings": json.dumps(query.settings),
        }
        return self._session.read.format(self._format(dsn)).options(**options).load()

    def _format(self, dsn: str) -> str:
        if dsn not in self._formats:
            # sessions of one context share the names of their sources, and others may have registered some
            name = f"pgtrickle_{uuid4().hex}"
            self._session.dataSource.register(_source_of(self.addresses.of(dsn), name))
            self._formats[dsn] = name
        return self._formats[dsn]


def _encode_query(query: TaskQuery) -> Any:
    if isinstance(query, str):
        return query
    return [query.text, query.pages.low, query.pages.high, query.pages.is_last, query.step]


def _decode_query(option: Any) -> TaskQuery:
    if isinstance(option, str):
        return option
    text, low, high, is_last, step = option
    return PagedQuery(text, PageRange(low, high, is_last), step)


def _encode_columns(columns: Sequence[tuple[str, SparkType]]) -> str:
    """The columns as an option of a read: a decimal as its precision and scale, other types by name."""
    forms = [[t.precision, t.scale] if isinstance(t, DecimalType) else t.spark for _, t in columns]
    return json.dumps([(name, form) for (name, _), form in zip(columns, forms, strict=True)])


def _decode_columns(option: str) -> list[tuple[str, SparkType]]:
    columns = json.loads(option)
    return [(name, PlainType(f) if isinstance(f, str) else DecimalType(*f)) for name, f in columns]


def _source_of(address: TaskAddress, format_name: str) -> type[DataSource]:
    """A data source for one database; a local class, so that it is pickled together with the address."""

    class PostgresSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return format_name

        def schema(self) -> str:
            columns = _decode_columns(self.options["columns"])
            return ", ".join(f"{quoted(name)} {form.spark}" for name, form in columns)

        def reader(self, schema: StructType) -> DataSourceReader:
            return PostgresReader(address, self.options)

    return PostgresSource


class PostgresReader(DataSourceReader):
    """Gives each share of the queries to one task."""

    def __init__(self, address: TaskAddress, options: MutableMapping[str, str]) -> None:
        self._address = address
        self._shares: list[list[Any]] = json.loads(options["shares"])
        self._columns = _decode_columns(options["columns"])
        self._settings: list[tuple[str, str]] = json.loads(options["settings"])
        self._snapshot = options["snapshot"]
        self._has_weight: bool = json.loads(options["weighted"])

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(share) for share in self._shares]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        queries: list[Any] | None = partition.value
        if queries is None:  # a read without queries still has one partition
            return
        schema = pa.schema([(name, arrow_type(form)) for name, form in self._columns])
        with self._address.connect() as connection:
            connection.execute("set transaction isolation level repeatable read read only")
            connection.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(self._snapshot)))
            bounds = {name: value for name, value in self._settings if name == STATEMENT_TIMEOUT}
            set_locally(connection, {n: v for n, v in self._settings if n not in bounds})
            for name, value in bounds.items():
                connection.execute(_SHORTEN, {"name": name, "value": value})
            for query in map(_decode_query, queries):
                if isinstance(query, str):
                    yield from read_batches(connection, query, schema, chunk_bytes=TASK_BYTES)
                else:
                    yield from self._columns_of(connection, query, schema)

    def _columns_of(
        self, connection: Connection, query: PagedQuery, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        reader = ColumnReader(connection, query.text, schema, self._has_weight)
        return reader.batches(query.pages, query.step)
