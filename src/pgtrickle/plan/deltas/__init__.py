"""The delta rules, one file per operator, and the one table that names them."""

from pgtrickle.plan.deltas.rules import RULES, Kind, Rule, versions_of
from pgtrickle.plan.deltas.versions import Versions

__all__ = ["RULES", "Kind", "Rule", "Versions", "versions_of"]
