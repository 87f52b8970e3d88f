"""Reads queries and statements from files and standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from typer import BadParameter


def query_text(query: str | None, query_file: str | None) -> str | None:
    """The query from --query or --query-file; None if neither is given."""
    if query is not None and query_file is not None:
        raise BadParameter("--query and --query-file exclude each other: give one of them")
    return query if query_file is None else read_text(query_file)


def read_text(file: str) -> str:
    """Read a file; `-` is standard input."""
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadParameter(f"cannot read {file}: {reason}") from None
