"""Reads PostgreSQL's canonical text: operators by name, and calls with words between their arguments."""

from __future__ import annotations

from typing import ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from pgtrickle.plan.expressions.syntax import (
    AGGREGATES,
    OPENERS,
    VALUELESS,
    NamedOperator,
    PrefixOperator,
    Test,
    WordedAggregate,
    WordedCall,
)

_KNOWN = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX", "BOOL_AND", "BOOL_OR", "COALESCE", "NULLIF", "ARRAY"}
)
_SPECIAL = frozenset({"CAST", "EXTRACT", "OVERLAY", "POSITION", "STRING_AGG"})

_OPERATOR_CHARACTERS: Final = frozenset("+-*/<>=~!@#%^&|`?")
_BY_MEANING: Final = frozenset(
    {
        "+", "-", "*", "/", "%", "||", "=", "<>", "<", ">", "<=", ">=", "=>", "->", "->>", "#>", "#>>", "~~",
        "!~~", "~~*", "!~~*", "~", "~*", "&", "|", "#", "<<", ">>", "@>", "<@", "&&", "@@", "?", "?|", "?&",
        "@?", "#-",
    }
)  # fmt: skip
"""Operators that the parser knows and writes as they came. All others are known by their name."""

_ANY_OPERATOR: Final = TokenType.CARET_AT
"""The token of an operator that is known by its name."""

_TESTS: Final = frozenset({"DOCUMENT", "NORMALIZED", "NFC", "NFD", "NFKC", "NFKD", "UNKNOWN"})


class CanonicalTokenizer(Postgres.Tokenizer):
    """Splits the text as PostgreSQL does: an operator is as long as its characters go on."""

    def tokenize(self, sql: str) -> list[Token]:
        return _types_in_one_word(_whole_operators(super().tokenize(sql), sql))


def _whole_operators(tokens: list[Token], sql: str) -> list[Token]:
    found: list[Token] = []
    position = 0
    while position < len(tokens):
        end = position
        while end < len(tokens) and _is_operator(tokens[end], sql) and _follows(tokens, position, end):
            end += 1
        text = sql[tokens[position].start : tokens[end - 1].end + 1] if end > position else ""
        if text and text not in _BY_MEANING:
            first = tokens[position]
            last = tokens[end - 1].end
            found.append(Token(_ANY_OPERATOR, text, first.line, first.col, first.start, last))
        else:
            found += tokens[position : max(end, position + 1)]
        position = max(end, position + 1)
    return found


def _is_operator(token: Token, sql: str) -> bool:
    text = sql[token.start : token.end + 1]
    return bool(text) and set(text) <= _OPERATOR_CHARACTERS


def _follows(tokens: list[Token], first: int, last: int) -> bool:
    return last == first or tokens[last - 1].end + 1 == tokens[last].start


def _types_in_one_word(tokens: list[Token]) -> list[Token]:
    """`bit varying` as `varbit`, which the parser reads as a type."""
    found: list[Token] = []
    for token in tokens:
        is_varying = token.text.lower() == "varying" and token.token_type is not TokenType.IDENTIFIER
        if is_varying and found and found[-1].token_type is TokenType.BIT:
            before = found.pop()
            token = Token(TokenType.VAR, "varbit", before.line, before.col, before.start, token.end)
        found.append(token)
    return found


class CanonicalParser(PostgresParser):
    """Functions keep the names they came with."""

    QUOTED_TYPES_TO_PRESERVE: ClassVar = {"char", "bit"}

    FUNCTIONS: ClassVar = {n: make for n, make in PostgresParser.FUNCTIONS.items() if n in _KNOWN}
    FUNCTION_PARSERS: ClassVar = {
        **{n: parse for n, parse in PostgresParser.FUNCTION_PARSERS.items() if n in _SPECIAL},
        **dict.fromkeys(OPENERS, lambda self: self._parse_words()),
    }
    RANGE_PARSERS: ClassVar = {
        **PostgresParser.RANGE_PARSERS,
        _ANY_OPERATOR: lambda self, this: self._parse_named_operator(this),
    }
    UNARY_PARSERS: ClassVar = {
        **{
            token: parse
            for token, parse in PostgresParser.UNARY_PARSERS.items()
            if token not in {TokenType.PIPE_SLASH, TokenType.DPIPE_SLASH}
        },
        _ANY_OPERATOR: lambda self: self._parse_prefix_operator(),
    }

    def _parse_named_operator(self, this: exp.Expr) -> exp.Expr:
        operator = self._prev.text
        return NamedOperator(this=this, expression=self._parse_bitwise(), operator=operator)

    def _parse_prefix_operator(self) -> exp.Expr:
        operator = self._prev.text
        return PrefixOperator(this=self._parse_unary(), operator=operator)

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        index = self._index
        words = ["IS", "NOT"] if self._match(TokenType.NOT) else ["IS"]
        if (
            self._curr
            and self._curr.text.upper() in _TESTS
            and self._curr.token_type is not TokenType.IDENTIFIER
        ):
            while self._curr and self._curr.text.upper() in _TESTS:
                words.append(self._curr.text.upper())
                self._advance()
            return Test(this=this, words=" ".join(words))
        self._retreat(index)
        return super()._parse_is(this)

    def _parse_at_time_zone(self, this: exp.Expr | None) -> exp.Expr | None:
        if this is not None and self._match_text_seq("AT", "LOCAL"):
            return self._parse_at_time_zone(Test(this=this, words="AT LOCAL"))
        return super()._parse_at_time_zone(this)

    def _parse_lateral(self) -> exp.Expr | None:  # type: ignore[override]
        # a call in FROM may always read what stands before it
        if self._curr and self._curr.token_type is TokenType.LATERAL and self._next.text.upper() == "ROWS":
            self._advance()
            return self._parse_table()
        return super()._parse_lateral()

    def _parse_join(self, *args: object, **kwargs: object) -> exp.Join | None:
        join = super()._parse_join(*args, **kwargs)  # type: ignore[arg-type]
        if join is not None and join.args.get("using") and self._match(TokenType.ALIAS):
            join.set("using_alias", self._parse_id_var())
        return join

    def _parse_words(self) -> WordedCall:
        """A call with words between its arguments; its name and the parenthesis are behind us."""
        call = self._tokens[self._index - 2]
        name = call.text.upper()
        openers = OPENERS[name]
        words: list[str] = [""]
        values: list[exp.Expr] = []
        columns: list[str] = []
        is_listing = False
        opens = "(" in openers
        while self._curr and self._curr.token_type is not TokenType.R_PAREN:
            if opens and not self._is_word(openers):
                value = self._parse_between_words(name)
                if value is None:
                    raise ParseError("an expression is missing")
                values.append(value)
                words.append("")
                opens = False
                continue
            word = self._curr
            if is_listing and (words[-1].endswith(("COLUMNS", ","))):
                columns.append(word.text)
                words[-1] += f" {self._take()}"
                continue
            if word.text.upper() == "COLUMNS" and word.token_type is not TokenType.IDENTIFIER:
                is_listing = True
                if name == "JSON_TABLE":
                    words[-1] += f" {self._take()} {self._take_columns(columns)}"
                    continue
            opens = word.text.upper() in openers and not (is_listing and word.token_type is TokenType.COMMA)
            words[-1] += f" {self._take_group() if word.token_type is TokenType.L_PAREN else self._take()}"
        kind = WordedAggregate if name in AGGREGATES else WordedCall
        stripped = [text.strip() for text in words]
        return kind(call=call.text, words=stripped, expressions=values, columns=columns or None)

    def _parse_between_words(self, name: str) -> exp.Expr | None:
        if name in AGGREGATES:
            return self._parse_lambda()
        # NOT NULL may follow there
        return self._parse_bitwise() if name == "XMLTABLE" else self._parse_disjunction()

    def _is_word(self, openers: frozenset[str]) -> bool:
        """Whether a word stands here, and no expression."""
        assert self._curr is not None
        if self._curr.token_type in {TokenType.IDENTIFIER, TokenType.STRING}:
            return False
        text = self._curr.text.upper()
        return text in VALUELESS or text == "RETURNING" or (text in openers and text.isalpha())

    def _take(self) -> str:
        """The text of the token that stands here, which is behind us then."""
        assert self._curr is not None
        text = self.sql[self._curr.start : self._curr.end + 1]
        self._advance()
        return text

    def _take_group(self) -> str:
        """The text up to the parenthesis that closes this one."""
        parts = [self._take()]
        while self._curr and self._curr.token_type is not TokenType.R_PAREN:
            parts.append(self._take_group() if self._curr.token_type is TokenType.L_PAREN else self._take())
        return " ".join([*parts, self._take()])

    def _take_columns(self, columns: list[str]) -> str:
        """The columns of JSON_TABLE, which read no columns of others; their names are added to the list."""
        parts = [self._take()]
        is_first = True
        while self._curr and self._curr.token_type is not TokenType.R_PAREN:
            if is_first and not (self._curr.text.upper() == "NESTED" and self._next.text.upper() == "PATH"):
                columns.append(self._curr.text)
            is_first = self._curr.token_type is TokenType.COMMA
            is_nested = self._curr.text.upper() == "COLUMNS" and self._next.token_type is TokenType.L_PAREN
            parts.append(self._take_group() if self._curr.token_type is TokenType.L_PAREN else self._take())
            if is_nested:
                parts.append(self._take_columns(columns))
        return " ".join([*parts, self._take()])
