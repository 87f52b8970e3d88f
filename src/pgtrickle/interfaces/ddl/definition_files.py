"""Reads a file of definitions: CREATE STREAM TABLE statements, as `pgtrickle export` writes them."""

from __future__ import annotations

from pgtrickle.commands.definitions import DefinitionFile, TableDefinition
from pgtrickle.interfaces.ddl.parser import parse
from pgtrickle.interfaces.ddl.statements import Create
from pgtrickle.model.errors import BadStatement


def read_definitions(text: str) -> DefinitionFile:
    """The definitions of a text; raise with line and column if it holds anything else."""
    found: list[TableDefinition] = []
    for placed in parse(text):
        create = placed.statement
        if not isinstance(create, Create):
            raise BadStatement(
                f"{placed.place}: a file of definitions has only CREATE STREAM TABLE statements",
                hint="run others with `pgtrickle sql`; to drop a stream table, remove it from the file"
                " of its set",
            )
        found.append(
            TableDefinition(create.name, create.query, create.options, placed.start, create.query_start)
        )
    return DefinitionFile(text, tuple(found))
