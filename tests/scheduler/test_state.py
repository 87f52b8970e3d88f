"""What the sidecar keeps in memory: who is behind, who is in hand, and whose time has come."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pgtrickle.model.dependency import DependencyKind
from pgtrickle.model.frontier import Frontier
from pgtrickle.model.names import RelationName
from pgtrickle.model.stream_table import RelationId, Status, StreamTableId
from pgtrickle.model.tier import Tier
from pgtrickle.scheduler.policy.definitions import Definitions, TableDefinition, TableState
from pgtrickle.scheduler.policy.effective_schedules import RequestedSchedule
from pgtrickle.scheduler.policy.schedule import parse_schedule
from pgtrickle.scheduler.policy.state import BUSY_PAUSE, MANY, SchedulerState
from pgtrickle.scheduler.policy.tick import Tick

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ORDERS = RelationId(901)
SEEN = Frontier(100, 100)


def definition(number: int, *sources: int, schedule: str = "calculated") -> TableDefinition:
    """Stream table `number`, whose own relation is 1000 more."""
    kinds = {True: DependencyKind.STREAM_TABLE, False: DependencyKind.TABLE}
    return TableDefinition(
        id=StreamTableId(number),
        relation=RelationId(1000 + number),
        name=RelationName("public", f"t{number}"),
        asked=RequestedSchedule(parse_schedule(schedule)),
        is_gated=False,
        is_atomic=True,
        sources=tuple((kinds[source >= 1000], RelationId(source)) for source in sources),
    )


def state(frontier: Frontier | None = SEEN, upstream: Frontier | None = None) -> TableState:
    return TableState(Status.ACTIVE, True, NOW - 10 * SECOND, None, False, True, frontier, upstream)


def tick(touched: dict[int, tuple[int, ...]] | None = None, *, at: datetime = NOW, seen: int = 200) -> Tick:
    sources = {RelationId(source): xids for source, xids in (touched or {}).items()}
    nobody: frozenset[StreamTableId] = frozenset()
    return Tick(at, Frontier(seen, seen), nobody, False, sources, nobody, nobody)


def board(*tables: TableDefinition, **states: TableState) -> SchedulerState:
    known = {table.id: states.get(f"t{table.id}", state(SEEN, SEEN)) for table in tables}
    made = SchedulerState(Definitions.of(tables), known)
    assert made.take_due(NOW) == ()
    return made


def test_a_request_that_failed_is_not_tried_again_while_its_answer_is_on_the_way() -> None:
    one = board(definition(1, ORDERS))
    asked = replace(tick(), requested=frozenset({StreamTableId(1)}))
    one.apply_tick(asked)
    assert one.take_due(NOW) == (1,)
    failed = replace(state(), status=Status.ERROR, retry_at=NOW + 60 * SECOND)
    one.finish((StreamTableId(1),), {StreamTableId(1): failed}, (), NOW)
    one.apply_tick(replace(asked, now=NOW + SECOND / 2))
    assert one.take_due(NOW + SECOND / 2) == ()
    one.apply_tick(replace(asked, now=NOW + 2 * SECOND))
    assert one.take_due(NOW + 2 * SECOND) == (1,)


def test_tables_that_only_a_person_can_set_going_are_blocked() -> None:
    gated = replace(definition(2, ORDERS), is_gated=True)
    one = board(
        definition(1, ORDERS), gated, definition(3, ORDERS), t1=replace(state(), status=Status.SUSPENDED)
    )
    ids = frozenset(map(StreamTableId, (1, 2, 3)))
    assert one.blocked(ids) == {1, 2}


def test_a_touch_makes_exactly_the_readers_due() -> None:
    one = board(definition(1, ORDERS), definition(2, 902))
    one.apply_tick(tick({ORDERS: (150,)}))
    assert one.take_due(NOW) == (1,)


def test_a_transaction_that_was_followed_already_makes_nobody_due() -> None:
    one = board(definition(1, ORDERS), t1=state(Frontier(100, 160, frozenset({155}))))
    one.apply_tick(tick({ORDERS: (150,)}))
    assert one.take_due(NOW) == ()
    one.apply_tick(tick({ORDERS: (155,)}))
    assert one.take_due(NOW) == (1,)


def test_what_a_table_wrote_itself_is_followed_by_readers_that_went_along() -> None:
    tables = definition(1, ORDERS), definition(2, 1001)
    went_along = board(*tables, t2=state(SEEN, Frontier(100, 161, frozenset())))
    went_along.apply_tick(tick({1001: (160,)}))
    assert went_along.take_due(NOW) == ()
    stayed = board(*tables, t2=state(SEEN, Frontier(100, 160)))
    stayed.apply_tick(tick({1001: (160,)}))
    assert stayed.take_due(NOW) == (2,)


def test_a_table_that_is_defined_otherwise_waits_for_its_definition() -> None:
    frozen = replace(
        definition(1, ORDERS), asked=RequestedSchedule(parse_schedule("calculated"), Tier.FROZEN)
    )
    other = definition(2, ORDERS)
    one = board(definition(1, ORDERS), other)
    one.redefining.add(StreamTableId(1))
    one.apply_tick(tick({ORDERS: (150,)}))
    assert one.take_due(NOW) == (2,)
    one.redefining.clear()
    one.replace_definitions(Definitions.of([frozen, other]), {StreamTableId(1): state(SEEN, SEEN)})
    assert one.take_due(NOW) == ()
    one.replace_definitions(
        Definitions.of([definition(1, ORDERS), other]), {StreamTableId(1): state(SEEN, SEEN)}
    )
    assert 1 in one.take_due(NOW)


def test_the_tip_of_a_diamond_waits_for_the_definition_of_an_arm() -> None:
    tables = definition(1, ORDERS), definition(2, ORDERS), definition(3, 1001, 1002)
    one = board(*tables)
    one.redefining.add(StreamTableId(1))
    one.apply_tick(tick({ORDERS: (150,)}))
    assert one.take_due(NOW) == (2,)
    one.redefining.clear()
    one.replace_definitions(Definitions.of(tables), {StreamTableId(1): state(SEEN, SEEN)})
    assert one.take_due(NOW) == (1, 3)


def test_a_change_during_a_refresh_is_not_forgotten_when_it_ends() -> None:
    one = board(definition(1, ORDERS))
    one.apply_tick(tick({ORDERS: (150,)}))
    one.running.update(one.take_due(NOW))
    one.apply_tick(tick({ORDERS: (170,)}))
    assert one.take_due(NOW) == ()
    one.finish([StreamTableId(1)], {StreamTableId(1): state(Frontier(160, 160))}, (), NOW)
    assert one.take_due(NOW) == (1,)
    one.finish([StreamTableId(1)], {StreamTableId(1): state(Frontier(180, 180))}, (), NOW)
    assert one.take_due(NOW) == ()
    assert one.behind() == 0


def test_so_many_transactions_are_not_told_apart_for_ever() -> None:
    one = board(definition(1, ORDERS))
    one.apply_tick(tick({ORDERS: tuple(range(150, 150 + MANY + 5))}, seen=500))
    assert one.take_due(NOW) == (1,)
    one.finish([StreamTableId(1)], {StreamTableId(1): state(Frontier(450, 450))}, (), NOW)
    assert one.behind() == 1
    one.finish([StreamTableId(1)], {StreamTableId(1): state(Frontier(500, 500))}, (), NOW)
    assert one.behind() == 0


def test_a_table_waits_while_something_above_it_is_in_hand() -> None:
    one = board(definition(1, ORDERS), definition(2, 1001), definition(3, 1002, ORDERS))
    one.apply_tick(tick({ORDERS: (150,)}))
    assert one.take_due(NOW) == (1, 2, 3)
    one.running.add(StreamTableId(1))
    one.apply_tick(tick({ORDERS: (151,)}))
    assert one.take_due(NOW) == ()
    one.finish([StreamTableId(1)], {StreamTableId(1): state(Frontier(190, 190))}, (), NOW)
    assert one.take_due(NOW) == (3,)
    one.apply_tick(tick({1001: (160,)}))
    assert one.take_due(NOW) == (2, 3)


def test_an_interval_comes_by_a_timer_and_not_by_looking_all_the_time() -> None:
    one = board(definition(1, ORDERS, schedule="30s"))
    assert one.next_timer() is None
    one.apply_tick(tick({ORDERS: (150,)}))
    assert one.take_due(NOW) == ()
    assert one.next_timer() == NOW + 20 * SECOND
    one.apply_tick(tick(at=NOW + 19 * SECOND))
    assert one.take_due(NOW + 19 * SECOND) == ()
    one.apply_tick(tick(at=NOW + 20 * SECOND))
    assert one.take_due(NOW + 20 * SECOND) == (1,)


def test_a_table_that_another_session_holds_is_left_alone_for_a_moment() -> None:
    one = board(definition(1, ORDERS))
    one.apply_tick(tick({ORDERS: (150,)}))
    one.running.update(one.take_due(NOW))
    one.finish([StreamTableId(1)], {StreamTableId(1): state()}, [StreamTableId(1)], NOW)
    assert one.take_due(NOW) == ()
    one.apply_tick(tick(at=NOW + BUSY_PAUSE))
    assert one.take_due(NOW + BUSY_PAUSE) == (1,)


def test_the_tip_of_a_diamond_waits_for_an_arm_that_failed() -> None:
    failed = replace(state(), status=Status.ERROR, retry_at=NOW + 5 * SECOND)
    tables = definition(1, ORDERS), definition(2, ORDERS), definition(3, 1001, 1002)
    one = board(*tables, t1=failed)
    one.apply_tick(tick({ORDERS: (150,)}))
    assert one.take_due(NOW) == (2,)
    one.apply_tick(tick(at=NOW + 5 * SECOND))
    assert one.take_due(NOW + 5 * SECOND) == (1, 3)


def test_definitions_are_swapped_and_what_is_new_is_due() -> None:
    one = board(definition(1, ORDERS))
    before = one.definitions
    new = definition(2, ORDERS)
    after = before.with_changes([new.id], {new.id: new})
    assert before.graph.order == (1,)
    one.replace_definitions(
        after, {new.id: replace(state(None), status=Status.INITIALIZING, is_populated=False)}
    )
    assert one.take_due(NOW) == (2,)
    one.replace_definitions(after.with_changes([new.id], {}), {new.id: None})
    one.apply_tick(tick({ORDERS: (150,)}))
    assert one.take_due(NOW) == (1,)


def test_another_schedule_leaves_the_graph_as_it_is() -> None:
    before = Definitions.of([definition(1, ORDERS), definition(2, 1001)])
    slower = definition(1, ORDERS, schedule="1h")
    after = before.with_changes([slower.id], {slower.id: slower})
    assert after.graph is before.graph
    assert after.tables[slower.id] == slower
