"""Restriction: the keys of a change are pushed down to the scans, where they become lookups."""

from pgtrickle.plan.restriction.binding import Binding
from pgtrickle.plan.restriction.wants import EVERYTHING, Want

__all__ = ["EVERYTHING", "Binding", "Want"]
