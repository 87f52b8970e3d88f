"""Every operator has a rule, and every field of it has an answer: none is passed over in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from inspect import isabstract
from typing import Any

import pytest

from pgtrickle.plan import operators
from pgtrickle.plan.expressions import Expression, column
from pgtrickle.plan.operators import (
    Aggregate,
    Distinct,
    Evaluated,
    Filter,
    GroupKey,
    Itself,
    Join,
    Mark,
    Nothing,
    Operator,
    OuterJoin,
    Project,
    Recursive,
    SetKind,
    SetOperation,
    Single,
    TableFunction,
    Threshold,
    Top,
    UnionAll,
    Values,
    Window,
    WindowCall,
)
from pgtrickle.plan.passes.bind import Binding, bind
from pgtrickle.plan.passes.postgres_sql import postgres_sql
from pgtrickle.plan.passes.prune import prune
from pgtrickle.plan.passes.spark_sql import spark_sql
from pgtrickle.plan.properties import (
    conditions_of,
    has_one_row,
    is_nullable,
    is_padded,
    is_unique,
    kind_of,
    narrowest,
    places_of,
    reads_holding,
    row_key,
)
from pgtrickle.plan.rules import RULES, RuleKind
from pgtrickle.plan.rules.needs import EVERYTHING
from pgtrickle.plan.rules.rule import READ_TO_THE_END, EarlyStop, Rule
from tests.laws.parts import Names, call, expression, scan
from tests.laws.sources import BOOLEAN, INTEGER, SOURCES

NAMES = Names()
LEFT, RIGHT = scan(SOURCES[0], NAMES, "{a} = 1"), scan(SOURCES[1], NAMES)
A, B, OTHER = f"{LEFT.alias}.a", f"{LEFT.alias}.b", f"{RIGHT.alias}.a"
ON = ((A, OTHER),)
CONDITION = expression(f'"{A}" = "{OTHER}"')
ITSELF = Itself("r", (NAMES.column("i", INTEGER),))
BASE = Project(LEFT, (NAMES.column("b", INTEGER),), (column(A),))
STEP = Project(ITSELF, (NAMES.column("s", INTEGER),), (column(ITSELF.columns[0].name),))
KEY = GroupKey(NAMES.column("k", INTEGER), column(A))
NUMBERED = WindowCall(NAMES.column("n"), expression(f'row_number() over (partition by "{A}")'))
CONSTANT = Values("select 1", (NAMES.column("v", INTEGER),))
CHANGED = frozenset({SOURCES[0].relation})


def _bound(op: Operator) -> Operator:
    return bind(op, CHANGED)[0]


EXAMPLES: Mapping[type[Operator], Operator] = {
    type(op): op
    for op in (
        LEFT,
        CONSTANT,
        Filter(LEFT, expression(f'"{A}" = 1')),
        Project(LEFT, (NAMES.column("p", INTEGER),), (column(A),)),
        TableFunction(LEFT, expression(f'generate_series(1, "{A}")'), (NAMES.column("f", INTEGER),)),
        UnionAll((LEFT, RIGHT)),
        Join(LEFT, RIGHT, ON, CONDITION),
        OuterJoin(LEFT, RIGHT, ON, CONDITION),
        Mark(LEFT, RIGHT, ON, CONDITION, NAMES.column("m", BOOLEAN)),
        Threshold(LEFT, RIGHT, A, "<", OTHER),
        Aggregate(LEFT, (KEY,), (call("count", None, NAMES),)),
        Distinct(LEFT),
        SetOperation(LEFT, RIGHT, SetKind.EXCEPT, is_all=False),
        Window(LEFT, (A,), (NUMBERED,)),
        Top(LEFT, (A,), (), 1),
        Single(LEFT, (A,)),
        Recursive(BASE, STEP, "r", (NAMES.column("r", INTEGER),), is_all=False),
        ITSELF,
        Evaluated(Distinct(LEFT), "it is an example"),
        _bound(LEFT),
        bind(CONSTANT, CHANGED, (EVERYTHING,))[0],
        Nothing(LEFT.columns),
    )
}


def _operators(kind: type[Operator] = Operator) -> Iterator[type[Operator]]:
    for below in kind.__subclasses__():
        yield from _operators(below)
        if not isabstract(below) and below.__module__.startswith(operators.__name__):
            yield below


def test_every_operator_has_a_rule_and_an_example():
    # a dataclass with slots is made twice, and the first class of that name is of no use
    assert {kind.__name__ for kind in _operators()} == {kind.__name__ for kind in RULES}
    assert EXAMPLES.keys() == RULES.keys()


def _named_columns(op: Operator) -> list[str]:
    return [c.name for c in op.columns]


def _has_places(op: Operator) -> bool:
    """Every column comes from columns that the children have."""
    places = [place for name in _named_columns(op) for place in places_of(op, name)]
    assert all(isinstance(is_padded(op, name), bool) for name in _named_columns(op))
    return all(place.column in op.children[place.child].names for place in places)


def _has_open_children(op: Operator) -> bool:
    """A further column of an open child passes through under its own name."""
    ways = RULES[type(op)].open_children(op)
    return all(op.children[way.child].names <= op.names for way in ways)


def _is_bound(op: Operator) -> bool:
    binding = Binding(CHANGED)
    needs = () if op.children else (EVERYTHING,)
    return binding.bind(op, needs).columns == op.columns


def _is_pruned(op: Operator) -> bool:
    kept = _named_columns(op)[0]
    return kept in prune(op, [kept]).names


def _has_spark_sql(op: Operator) -> bool:
    """Spark's SELECT of the bound operator; none of what PostgreSQL evaluates."""
    if RULES[type(op)].spark_sql is not None:
        return spark_sql(_bound(op) if op.children else op).startswith("select ")
    with pytest.raises(TypeError, match="never evaluated by Spark"):
        spark_sql(op)
    return True


def _restricted(op: Operator, condition: Expression) -> Operator:
    return Filter(op, condition)


def _is_pushed(op: Operator) -> bool:
    """A condition that moves below an operator leaves its columns as they are, or stays above."""
    pushed = RULES[type(op)].push(op, _condition_on(op), _restricted)
    return pushed is None or pushed.columns == op.columns


def _is_tightened(op: Operator) -> bool:
    tightened = RULES[type(op)].tighten(op, _condition_on(op), lambda below, condition: below)
    return tightened.names == op.names


def _condition_on(op: Operator) -> Expression:
    return expression(f'"{_named_columns(op)[0]}" = 1')


def _has_groups(op: Operator) -> bool:
    groups = RULES[type(op)].groups(op)
    return groups is None or groups.names <= op.names


def _stops(op: Operator) -> bool:
    found = RULES[type(op)].early_stops(op, EarlyStop(is_cut=True))
    assert len(RULES[type(op)].early_stops(op, READ_TO_THE_END)) == len(op.children)
    return len(found) == len(op.children) and all(isinstance(stop, EarlyStop) for stop in found)


QUESTIONS: Mapping[str, Callable[[Any], bool]] = {
    "label": lambda op: bool(RULES[type(op)].label(op)),
    "kind": lambda op: isinstance(kind_of(op), RuleKind),
    "bind": _is_bound,
    "spark_sql": _has_spark_sql,
    "obstacle": lambda op: isinstance(RULES[type(op)].obstacle(op), str | None),
    "postgres_sql": lambda op: postgres_sql(op).startswith(("select", "with")),
    "places": _has_places,
    "open_children": _has_open_children,
    "held_by": lambda op: isinstance(reads_holding(op, (_named_columns(op)[0],)), tuple | None),
    "is_nullable": lambda op: isinstance(is_nullable(op, _named_columns(op)[0]), bool),
    "is_unique": lambda op: isinstance(is_unique(op, op.names), bool),
    "row_key": lambda op: set(row_key(op) or ()) <= op.names,
    "groups": _has_groups,
    "prune": _is_pruned,
    "push": _is_pushed,
    "tighten": _is_tightened,
    "expressions": lambda op: all(isinstance(e, Expression) for e in RULES[type(op)].expressions(op)),
    "spark_expressions": lambda op: all(
        isinstance(text, str) for text in RULES[type(op)].spark_expressions(op)
    ),
    "early_stops": _stops,
    "has_one_row": lambda op: isinstance(has_one_row(op), bool),
    "group_child": lambda op: RULES[type(op)].group_child(op) in (None, *op.children),
    "widened_child": lambda op: narrowest(op, op.names) == op,
    "conditions": lambda op: all(isinstance(e, Expression) for e in conditions_of(op)),
    "endless_part": lambda op: isinstance(RULES[type(op)].endless_part(op, conditions_of), str | None),
}


def test_every_field_of_a_rule_is_asked():
    assert QUESTIONS.keys() == {field.name for field in fields(Rule)}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_every_rule_answers(kind, question):
    assert QUESTIONS[question](EXAMPLES[kind])


@pytest.mark.parametrize("kind", EXAMPLES, ids=lambda kind: kind.__name__)
def test_an_operator_over_its_own_children_is_the_same(kind):
    op = EXAMPLES[kind]
    assert op.with_children(op.children) == op
