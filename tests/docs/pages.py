"""The pages of the documentation, and what tests read in them: blocks, inline code, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))

_FENCE = re.compile(r"^(?P<fence>```+)(?P<language>\w*)(?:\s+title=\"(?P<title>[^\"]*)\")?\s*$")
_NOT_RUN = re.compile(r"^<!-- not run: .+ -->$")
_LINK = re.compile(r"(?<!\\)\]\(([^()\s]+)\)")
_INLINE = re.compile(r"`([^`\n]+)`")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `is_run` is false where the page says in a comment above it that no test runs it."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    is_run: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text().splitlines()
    number, above = 0, ""
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening:
            end = lines.index(opening["fence"], number + 1)
            text = "\n".join(lines[number + 1 : end]) + "\n"
            is_run = not _NOT_RUN.match(above)
            yield Block(page, number + 1, opening["language"], opening["title"] or "", text, is_run)
            number, above = end, ""
        elif lines[number].strip():
            above = lines[number].strip()
        number += 1


def prose(page: Path) -> str:
    """The text of a page without its fenced blocks."""
    kept, fence = [], ""
    for line in page.read_text().splitlines():
        opening = _FENCE.match(line)
        if fence:
            fence = "" if line == fence else fence
        elif opening:
            fence = opening["fence"]
        else:
            kept.append(line)
    return "\n".join(kept)


def inline_code(page: Path) -> list[str]:
    """What stands between backticks outside of blocks."""
    return _INLINE.findall(prose(page))


def links(page: Path) -> list[str]:
    """The targets of links and pictures."""
    return _LINK.findall(_INLINE.sub("", prose(page)))


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub and MkDocs make them."""
    return {_slug(heading) for heading in _HEADING.findall(prose(page))}


def _slug(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())
