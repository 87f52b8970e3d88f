"""How tests speak of what the doctor has found."""

from __future__ import annotations

from collections.abc import Callable

from pgtrickle.model.finding import Finding, Severity

Examine = Callable[..., list[Finding]]


def severities(found: list[Finding]) -> set[str]:
    return {one.severity.value for one in found}


def troubles(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.severity in (Severity.WARN, Severity.ERROR)]
