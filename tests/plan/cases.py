"""Reads and writes golden cases: a title, the tables, the query, and the text that explains it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
_SECTION = re.compile(r"^(tables|views|query|explain) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a golden file; statements of `tables` and `views` stand on lines of their own."""

    title: str
    tables: tuple[str, ...]
    views: tuple[str, ...]
    query: str
    explain: str

    def text(self, explain: str) -> str:
        """The case as its file shows it, with this explanation."""
        parts = [f"== {self.title}", _listed("tables", self.tables)]
        parts += [_listed("views", self.views)] if self.views else []
        parts += [_indented("query", self.query), _indented("explain", explain)]
        return "\n".join(parts) + "\n"


def cases(path: Path) -> list[Case]:
    """The cases of a file, in their order."""
    return [_case(part) for part in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]]


def _case(text: str) -> Case:
    title, _, body = text.partition("\n")
    pieces = _SECTION.split(body)[1:]
    sections = {name: _dedented(part) for name, part in zip(pieces[::2], pieces[1::2], strict=True)}
    return Case(
        title=title,
        tables=tuple(sections["tables"].splitlines()),
        views=tuple(sections.get("views", "").splitlines()),
        query=sections["query"],
        explain=sections.get("explain", ""),
    )


def _dedented(text: str) -> str:
    return "\n".join(line.removeprefix(" " * 8).rstrip() for line in text.strip().splitlines()).strip()


def _listed(name: str, lines: tuple[str, ...]) -> str:
    return _indented(name, "\n".join(lines))


def _indented(name: str, text: str) -> str:
    first, *rest = text.splitlines()
    return "\n".join([f"{name:<8}{first}", *((" " * 8 + line).rstrip() for line in rest)])
