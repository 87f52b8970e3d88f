"""Syntax of PostgreSQL that our parser does not know by meaning, kept as it is written.

A call such as `JSON_OBJECT('a' : x ABSENT ON NULL)` has words between its arguments. We keep the words as
text and parse only the expressions between them, so that their columns can be found and replaced. PostgreSQL
alone evaluates such a call. The same holds for operators by any name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from sqlglot import exp
from sqlglot.generator import Generator


class WordedCall(exp.Expression, exp.Func):
    """A call with words between its arguments: `words` has one text more than there are `expressions`.

    `columns` are the names of the columns that a call in FROM makes.
    """

    arg_types: ClassVar = {"call": True, "words": True, "expressions": False, "columns": False}
    is_var_len_args: ClassVar = True

    @property
    def name(self) -> str:
        return str(self.args["call"])

    @property
    def output_names(self) -> list[str]:
        """The names of the columns that the call makes, if it says so itself."""
        return list(self.args.get("columns") or [])


class WordedAggregate(WordedCall, exp.AggFunc):
    """An aggregate of that kind."""


class NamedOperator(exp.Expression, exp.Binary):
    """A binary operator that is known by its name alone."""

    arg_types: ClassVar = {"this": True, "expression": True, "operator": True}


class PrefixOperator(exp.Unary):
    """A prefix operator that is known by its name alone."""

    arg_types: ClassVar = {"this": True, "operator": True}


class Test(exp.Unary):
    """A test after its operand, such as `x IS NOT NORMALIZED`."""

    arg_types: ClassVar = {"this": True, "words": True}


_SQL_JSON: Final = frozenset({"(", ",", "PASSING", "DEFAULT"})
_LISTED: Final = frozenset({"(", ","})

OPENERS: Final[Mapping[str, frozenset[str]]] = {
    "JSON": frozenset({"("}),
    "JSON_ARRAY": _LISTED,
    "JSON_ARRAYAGG": frozenset({"("}),
    "JSON_EXISTS": _SQL_JSON,
    "JSON_OBJECT": frozenset({"(", ",", ":"}),
    "JSON_OBJECTAGG": frozenset({"(", ":"}),
    "JSON_QUERY": _SQL_JSON,
    "JSON_SERIALIZE": frozenset({"("}),
    "JSON_TABLE": frozenset({"(", ",", "PASSING"}),
    "JSON_VALUE": _SQL_JSON,
    "NORMALIZE": frozenset({"("}),
    "SUBSTRING": frozenset({"(", ",", "FROM", "FOR", "SIMILAR", "ESCAPE"}),
    "TRIM": frozenset({"(", ",", "BOTH", "LEADING", "TRAILING", "FROM"}),
    "XMLATTRIBUTES": _LISTED,
    "XMLELEMENT": frozenset({","}),
    "XMLEXISTS": frozenset({"(", "PASSING"}),
    "XMLFOREST": _LISTED,
    "XMLNAMESPACES": _LISTED,
    "XMLPARSE": frozenset({"DOCUMENT", "CONTENT"}),
    "XMLPI": frozenset({","}),
    "XMLROOT": frozenset({"(", "VERSION"}),
    "XMLSERIALIZE": frozenset({"DOCUMENT", "CONTENT"}),
    "XMLTABLE": frozenset({"(", ",", "PASSING", "PATH", "DEFAULT"}),
}
"""The calls with words, and after what in each an expression stands; `(` is the one that begins it."""

AGGREGATES: Final = frozenset({"JSON_ARRAYAGG", "JSON_OBJECTAGG"})
VALUELESS: Final = frozenset({"NO"})
"""Words that stand where an expression could: `VERSION NO VALUE`."""


def _call_sql(generator: Generator, node: WordedCall) -> str:
    values = [generator.sql(value) for value in node.expressions]
    parts = [part for pair in zip(node.args["words"], [*values, ""], strict=True) for part in pair if part]
    text = parts[0] if parts else ""
    for part in parts[1:]:
        text += part if part.startswith(",") else f" {part}"
    return f"{node.name}({text})"


def _operator_sql(generator: Generator, node: NamedOperator) -> str:
    return f"{generator.sql(node, 'this')} {node.args['operator']} {generator.sql(node, 'expression')}"


def _prefix_sql(generator: Generator, node: PrefixOperator) -> str:
    return f"{node.args['operator']} {generator.sql(node, 'this')}"


def _test_sql(generator: Generator, node: Test) -> str:
    return f"{generator.sql(node, 'this')} {node.args['words']}"


WRITERS: Final[Mapping[type[exp.Expr], Callable[..., str]]] = {
    WordedCall: _call_sql,
    WordedAggregate: _call_sql,
    NamedOperator: _operator_sql,
    PrefixOperator: _prefix_sql,
    Test: _test_sql,
}
"""How each is written again."""
