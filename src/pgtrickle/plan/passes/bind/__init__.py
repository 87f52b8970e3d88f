"""Binding: the keys of a change are pushed down to the scans, where they become lookups."""

from pgtrickle.plan.passes.bind.binding import Binding, bind

__all__ = ["Binding", "bind"]
