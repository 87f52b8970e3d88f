"""The kinds of rules: which rows an operator needs besides the change itself."""

from __future__ import annotations

from enum import Enum


class RuleKind(Enum):
    """How the change of an operator depends on its children."""

    LINEAR = "linear"
    """The change of the child is enough."""
    BILINEAR = "bilinear"
    """The change of each side meets the rows of the other side that match it."""
    KEYED = "keyed"
    """A changed row needs all rows with its key."""
    WHOLE = "whole"
    """A changed row needs all rows."""
