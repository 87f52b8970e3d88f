"""Parses statements about stream tables. The text of a query stays unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from pgtrickle.interfaces.ddl.options import ALTER, CREATE, known_option, read_value
from pgtrickle.interfaces.ddl.statements import (
    Alter,
    Create,
    Drop,
    PlacedStatement,
    Refresh,
    Statement,
    Value,
)
from pgtrickle.interfaces.ddl.tokens import Token, TokenKind, place, tokens
from pgtrickle.model.errors import BadStatement
from pgtrickle.model.options import TableOption

_FORMS = (
    "the statements are CREATE, ALTER, DROP and REFRESH STREAM TABLE; for everything else, use psql and the "
    "functions of the schema pgtrickle"
)


def parse(text: str) -> list[PlacedStatement]:
    """The statements of a text, separated by semicolons; raise if any of them is wrong."""
    return _Parser(text).statements()


class _Parser:
    """Reads the tokens once, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._at = 0

    def statements(self) -> list[PlacedStatement]:
        found: list[PlacedStatement] = []
        while self._peek().kind is not TokenKind.END:
            if self._accept_sign(";"):
                continue
            start = self._peek().start
            found.append(PlacedStatement(self._statement(), place(self._text, start), start))
            if self._peek().kind is not TokenKind.END and not self._accept_sign(";"):
                raise self._syntax_error("the end of the statement")
        return found

    def _statement(self) -> Statement:
        if self._accept("create"):
            return self._create()
        if self._accept("alter"):
            return self._alter()
        if self._accept("drop"):
            return self._drop()
        if self._accept("refresh"):
            self._expect("stream", "table")
            return Refresh(self._name())
        raise BadStatement(
            f"{self._place}: {self._token_text} does not begin a statement about stream tables", hint=_FORMS
        )

    def _create(self) -> Create:
        or_replace = self._accept("or", "replace")
        self._expect("stream", "table")
        if_not_exists = self._accept("if", "not", "exists")
        if or_replace and if_not_exists:
            raise BadStatement(
                f"{self._place}: OR REPLACE and IF NOT EXISTS exclude each other", hint="use one of them"
            )
        name = self._name()
        options = self._options(CREATE) if self._accept("with") else {}
        self._expect("as")
        start = self._peek().start
        return Create(name, self._query(), options, if_not_exists, or_replace, start)

    def _alter(self) -> Alter:
        self._expect("stream", "table")
        name = self._name()
        options = self._options(ALTER) if self._accept("set") else {}
        if self._accept("as"):
            return Alter(name, options, self._query())
        if not options:
            raise self._syntax_error("SET (option = value) or AS query")
        return Alter(name, options)

    def _drop(self) -> Drop:
        self._expect("stream", "table")
        if_exists = self._accept("if", "exists")
        name = self._name()
        cascade = self._accept("cascade")
        if not cascade:
            self._accept("restrict")
        return Drop(name, if_exists, cascade)

    def _name(self) -> str:
        parts = [self._part()]
        while self._accept_sign("."):
            parts.append(self._part())
        return ".".join(parts)

    def _part(self) -> str:
        if self._peek().kind not in (TokenKind.WORD, TokenKind.QUOTED):
            raise self._syntax_error("the name of a stream table")
        return self._take().text

    def _options(self, allowed: Mapping[str, TableOption]) -> dict[str, Value]:
        found: dict[str, Value] = {}
        self._expect_sign("(")
        while True:
            if self._peek().kind is not TokenKind.WORD:
                raise self._syntax_error("the name of an option")
            where, name = self._place, self._take().text.lower()
            option = known_option(allowed, name, where)
            if name in found:
                raise BadStatement(f"{where}: the option {name} is given twice", hint="give it once")
            self._expect_sign("=")
            where = self._place
            found[name] = read_value(option, self._value(), where)
            if not self._accept_sign(","):
                self._expect_sign(")")
                return found

    def _value(self) -> str | None:
        if self._peek().kind is TokenKind.STRING:
            token = self._take()
            return _string_value(token, self._text)
        if self._peek().kind is TokenKind.WORD:
            word = self._take().text
            return None if word.lower() == "null" else word
        if self._peek().kind is TokenKind.NUMBER:
            return self._take().text
        raise self._syntax_error("a value", "write text in single quotes")

    def _query(self) -> str:
        start = self._peek().start
        if self._peek().kind is TokenKind.END or self._peek().is_sign(";"):
            raise self._syntax_error("a query")
        while self._peek().kind is not TokenKind.END and not self._peek().is_sign(";"):
            end = self._take().end
        return self._text[start:end]

    def _peek(self) -> Token:
        return self._tokens[self._at]

    @property
    def _place(self) -> str:
        return place(self._text, self._peek().start)

    @property
    def _token_text(self) -> str:
        return "the end" if self._peek().kind is TokenKind.END else repr(self._peek().text)

    def _take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, *words: str) -> bool:
        """Consume these words if they come next."""
        ahead = self._tokens[self._at : self._at + len(words)]
        if len(ahead) < len(words) or not all(t.is_word(w) for t, w in zip(ahead, words, strict=True)):
            return False
        self._at += len(words)
        return True

    def _accept_sign(self, sign: str) -> bool:
        if not self._peek().is_sign(sign):
            return False
        self._at += 1
        return True

    def _expect(self, *words: str) -> None:
        for word in words:
            if not self._accept(word):
                raise self._syntax_error(word.upper())

    def _expect_sign(self, sign: str) -> None:
        if not self._accept_sign(sign):
            raise self._syntax_error(repr(sign))

    def _syntax_error(self, wanted: str, hint: str = _FORMS) -> BadStatement:
        return BadStatement(f"{self._place}: expected {wanted}, found {self._token_text}", hint=hint)


def _string_value(token: Token, text: str) -> str:
    """The value of a string token. Escape strings are refused: no option needs them."""
    given = token.text
    if given.startswith("$"):
        mark = given[: given.index("$", 1) + 1]
        return given[len(mark) : -len(mark)]
    if not given.startswith("'"):
        raise BadStatement(
            f"{place(text, token.start)}: a string of this kind is not allowed here",
            hint="use plain single quotes",
        )
    return given[1:-1].replace("''", "'")
