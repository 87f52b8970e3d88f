"""Quotes names for Spark, and binds the text of a program to frames."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_BRACE: Final = re.compile(r"[{}]")


def quoted(name: str) -> str:
    """The name in backticks, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def plain(text: str) -> str:
    """The text with braces escaped for `SparkSession.sql`."""
    return _BRACE.sub(lambda brace: brace[0] * 2, text)


def bound(spark_sql: str, reads: Mapping[str, str]) -> str:
    """The program with each read defined in front of it by a query, in which `{…}` names a frame.

    Nothing is registered under the reads' names, so programs run side by side in one session.
    """
    definitions = ", ".join(f"{plain(quoted(name))} as ({query})" for name, query in reads.items())
    return f"with {definitions} ({plain(spark_sql)})"
