"""Splits SQL into tokens as PostgreSQL does: quotes, dollar quotes, nested comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from pgtrickle.model.errors import BadStatement
from pgtrickle.model.places import place

__all__ = ["Token", "TokenKind", "place", "tokens"]


class TokenKind(Enum):
    """The kind of a token."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SIGN = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, from `start` up to `end`."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, word: str) -> bool:
        """Whether it is this keyword, in upper or lower case."""
        return self.kind is TokenKind.WORD and self.text.lower() == word

    def is_sign(self, sign: str) -> bool:
        """Whether it is this sign."""
        return self.kind is TokenKind.SIGN and self.text == sign


_BLANK: Final = re.compile(r"\s+|--[^\n\r]*")
_PLAIN_STRING: Final = re.compile(r"(?:[NnBbXx]|[Uu]&)?'(?:[^']|'')*'")
_ESCAPE_STRING: Final = re.compile(r"[Ee]'(?:[^'\\]|''|\\.)*'", re.DOTALL)
_QUOTED: Final = re.compile(r'(?:[Uu]&)?"(?:[^"]|"")*"')
_DOLLAR: Final = re.compile(r"\$(?:[^\W\d]\w*)?\$")
_WORD: Final = re.compile(r"[^\W\d][\w$]*")
_NUMBER: Final = re.compile(r"\d[\w.]*|\.\d[\w.]*")
_OPENED: Final = re.compile(r"(?:[A-Za-z]|[Uu]&)?(['\"])")


def tokens(text: str) -> Iterator[Token]:
    """The tokens of the text without blanks and comments, followed by an END token."""
    at = 0
    while at < len(text):
        if blank := _BLANK.match(text, at):
            at = blank.end()
        elif text.startswith("/*", at):
            at = _after_comment(text, at)
        else:
            token = _token(text, at)
            yield token
            at = token.end
    yield Token(TokenKind.END, "", len(text), len(text))


def _token(text: str, at: int) -> Token:
    for kind, pattern in (
        (TokenKind.STRING, _ESCAPE_STRING),
        (TokenKind.STRING, _PLAIN_STRING),
        (TokenKind.QUOTED, _QUOTED),
    ):
        if match := pattern.match(text, at):
            return Token(kind, match.group(), at, match.end())
    if opened := _OPENED.match(text, at):
        what = "text" if opened.group(1) == "'" else "name"
        raise _unterminated_error(text, at, what, f"close it with {opened.group(1)}")
    if dollar := _DOLLAR.match(text, at):
        closing = text.find(dollar.group(), dollar.end())
        if closing < 0:
            raise _unterminated_error(text, at, "text", f"close it with {dollar.group()}")
        return Token(
            TokenKind.STRING, text[at : closing + len(dollar.group())], at, closing + len(dollar.group())
        )
    if word := _WORD.match(text, at):
        return Token(TokenKind.WORD, word.group(), at, word.end())
    if number := _NUMBER.match(text, at):
        return Token(TokenKind.NUMBER, number.group(), at, number.end())
    return Token(TokenKind.SIGN, text[at], at, at + 1)


def _after_comment(text: str, start: int) -> int:
    depth, at = 1, start + 2
    while depth:
        found = re.compile(r"/\*|\*/").search(text, at)
        if found is None:
            raise _unterminated_error(text, start, "comment", "close it with */")
        depth += 1 if found.group() == "/*" else -1
        at = found.end()
    return at


def _unterminated_error(text: str, at: int, what: str, hint: str) -> BadStatement:
    return BadStatement(f"{place(text, at)}: this {what} is not closed", hint=hint)
