"""Names that the lowering uses beside the columns of a relation: no column of a plan has one."""

from __future__ import annotations

import re

_INTERNAL = re.compile(r"[wcnlr][01]|a\d+_[01]|matches|found|again|rows_in_all|(number|rank)_in_order")


def is_internal(name: str) -> bool:
    """Whether a column of this name could be taken for one of the lowering's own."""
    return _INTERNAL.fullmatch(name) is not None
