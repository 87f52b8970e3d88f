"""The class of all errors."""

from __future__ import annotations

from typing import ClassVar

from pgtrickle.model.hints import Interface, render


class PgTrickleError(Exception):
    """An error that pgtrickle did not expect. All its errors are of subclasses of this class.

    Cause: a defect in pgtrickle, or in something it relies on.
    Remedy: run the command again with `pgtrickle --debug …` and report what it prints.
    """

    code: ClassVar[str] = "PGT-X000"
    sqlstate: ClassVar[str] = "XX000"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(
        self, message: str, *, hint: str | None = None, detail: str | None = None, excerpt: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        """What to do, as `model.hints` describes."""
        self.detail = detail
        self.excerpt = excerpt
        """The line of the query with the mistake, and a caret below it."""
        self.position: int | None = None
        """Where in the query the mistake is: the number of its character, from 1."""

    def __str__(self) -> str:
        excerpt = f"\n{self.excerpt}" if self.excerpt else ""
        return self.text_for(Interface.PYTHON) + excerpt

    @property
    def reported_sqlstate(self) -> str:
        """The SQLSTATE of this error: that of its class, or of PostgreSQL if that is more precise."""
        return self.sqlstate

    def text_for(self, interface: Interface) -> str:
        """Code, message, detail and hint on one line. The catalog stores the text for SQL."""
        text = f"{self.code}: {self.message}"
        if self.detail:
            text += f". {self.detail}"
        return f"{text} ({self.hint_for(interface)})" if self.hint else text

    def hint_for(self, interface: Interface) -> str | None:
        """The hint in the language of an interface."""
        return render(self.hint, interface) if self.hint else None
