"""How much of the corpus is followed incrementally, how much is recomputed and why, and what is refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from pgtrickle.embedded import SUPERUSER
from pgtrickle.model.errors import CommandRefused, UnsupportedQuery
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.context import QueryDefinition
from pgtrickle.plan.compile import compile_query, regenerate
from pgtrickle.postgres.introspect import (
    aggregate_names,
    canonical,
    describe_sources,
    expression_types,
    set_function_names,
    view_texts,
)
from tests.corpus.asked import FILES, QUERIES, SUMMARY, queries_of
from tests.fixtures.databases import APP, TRICKLE, Database

pytestmark = pytest.mark.on_postgres(18)

FOLLOWED, RECOMPUTED, REFUSED, UNKNOWN = "followed", "recomputed", "refused", "unknown to this server"
KINDS = (FOLLOWED, RECOMPUTED, REFUSED, UNKNOWN)
LEAST_FOLLOWED = 0.98
_RELATIONS = """
select oid::bigint from pg_class
where relnamespace = 'public'::regnamespace and relkind = any (%s) order by relname
"""


class Corpus:
    """The corpus in one database: what becomes of each of its queries."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        sources = describe_sources(connection, self._relations("rp"))
        self._sources = {source.name: source for source in sources.values()}
        self._views = view_texts(connection, self._relations("v"))
        self._aggregates = aggregate_names(connection)
        self._set_functions = set_function_names(connection)

    def fate(self, query: str) -> tuple[str, str]:
        """What becomes of a query under AUTO, and the reason."""
        with self._connection.transaction(force_rollback=True):
            try:
                self._connection.execute(f"set local role {APP}")
                with self._connection.transaction():
                    self._connection.execute(f"create temporary view asked as {query}")
            except psycopg.Error as error:
                return UNKNOWN, _first_line(error)
            self._connection.execute(f"set local role {TRICKLE}")
            try:
                with self._connection.transaction():
                    self._connection.execute(
                        "select pgtrickle_internal.check_query('pg_temp.asked'::regclass, %s::regrole)",
                        (APP,),
                    )
            except psycopg.Error as error:
                return REFUSED, _first_line(error)
            self._connection.execute("set local search_path = ''")
            row = self._connection.execute("select pg_get_viewdef('pg_temp.asked'::regclass)").fetchone()
            assert row is not None
            return self._compiled(row[0].strip().removesuffix(";"))

    def _compiled(self, query: str) -> tuple[str, str]:
        given = canonical(self._connection, query)
        definition = QueryDefinition(
            query=given.query,
            sources=self._sources,
            views=self._views,
            aggregates=self._aggregates,
            set_functions=self._set_functions,
            outputs=given.outputs,
        )
        try:
            again = canonical(self._connection, regenerate(given.query)).query
        except UnsupportedQuery as refusal:
            return RECOMPUTED, refusal.message
        except CommandRefused as refusal:
            return RECOMPUTED, f"our parser makes an error of the query: {refusal.message}"
        if again != given.query:
            return RECOMPUTED, "our parser reads the query otherwise than PostgreSQL does"
        try:
            compile_query(definition, lambda rows, asked: expression_types(self._connection, rows, asked))
        except UnsupportedQuery as refusal:
            return RECOMPUTED, refusal.message
        return FOLLOWED, ""

    def _relations(self, kinds: str) -> list[RelationId]:
        found = self._connection.execute(_RELATIONS, (list(kinds),))
        return [RelationId(relation) for (relation,) in found]


def _first_line(error: psycopg.Error) -> str:
    return str(error).splitlines()[0]


@pytest.fixture
def corpus(database: Database) -> Iterator[Corpus]:
    with closing(database.connect(SUPERUSER)) as connection:
        yield Corpus(connection)


def section(file: str, fates: dict[str, tuple[str, str]]) -> str:
    """The summary of one file: how many queries are of each kind, and each that is not followed."""
    counts = [f"{kind} {sum(1 for own, _ in fates.values() if own == kind)}" for kind in KINDS]
    lines = [f"== {file}: {', '.join(counts)}"]
    for name, (kind, reason) in fates.items():
        if kind != FOLLOWED:
            lines.append(f"{kind}: {name.removeprefix(file).removeprefix(': ')}: {reason}")
    return "\n".join(lines) + "\n"


def sections() -> dict[str, str]:
    """The summary as it is written down, by file."""
    parts = SUMMARY.read_text().split("== ")[1:] if SUMMARY.exists() else []
    return {part.partition(":")[0]: f"== {part}" for part in parts}


@pytest.mark.parametrize("file", FILES)
def test_the_shares_of_a_file_are_those_of_the_summary(
    file: str, corpus: Corpus, pytestconfig: pytest.Config
) -> None:
    found = section(file, {name: corpus.fate(query) for name, query in queries_of(file).items()})
    if pytestconfig.getoption("--update-golden"):
        SUMMARY.write_text("".join(text for _, text in sorted({**sections(), file: found}.items())))
    assert found == sections().get(file)


def test_nearly_all_that_is_accepted_is_followed() -> None:
    counts: Counter[str] = Counter()
    for text in sections().values():
        for kind, number in re.findall(rf"({'|'.join(KINDS)}) (\d+)", text.partition("\n")[0]):
            counts[kind] += int(number)
    assert sum(counts.values()) == len(QUERIES)
    assert counts[FOLLOWED] / (counts[FOLLOWED] + counts[RECOMPUTED]) >= LEAST_FOLLOWED


def test_the_corpus_has_at_least_five_hundred_queries() -> None:
    assert len(set(QUERIES.values())) == len(QUERIES) >= 500
