"""Every golden case explains its query in the same words as its file does."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.errors import UnsupportedQuery
from pgtrickle.plan.explain import explanation
from tests.plan.cases import GOLDEN, Case, cases
from tests.plan.queries import compile_query

FILES = sorted(GOLDEN.glob("*.txt"))


@pytest.fixture
def explained(connection, source, app):
    """Explains the query of a case over its tables and views, or says why it is refused."""

    def explain(case: Case, auxiliary: AuxiliaryUse) -> str:
        for table in case.tables:
            source(table)
        for view in case.views:
            app.execute(f"create view {view}")
            app.execute("grant select on all tables in schema public to trickle")
        try:
            return explanation(compile_query(connection, case.query, auxiliary))
        except UnsupportedQuery as refusal:
            return f"refused: {refusal.message}"
        finally:
            connection.rollback()
            app.execute("drop owned by app cascade")
            app.execute("grant usage on schema public to trickle")

    return explain


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_each_explanation_is_the_golden_one(path: Path, explained, request):
    use = AuxiliaryUse.AUTO if path.stem == "auxiliaries" else AuxiliaryUse.NEVER
    text = "\n".join(case.text(explained(case, use)) for case in cases(path))
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text()
