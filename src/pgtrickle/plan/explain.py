"""What a compiled query does, in words and SQL that stay the same from run to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pgtrickle.model.source import STORED, Source, SourceKind
from pgtrickle.plan.compile import Compiled
from pgtrickle.plan.expressions.clock import shown_with_clock
from pgtrickle.plan.operators import Evaluated, Operator, Scan
from pgtrickle.plan.passes.bind.reads import same_text
from pgtrickle.plan.program import Program
from pgtrickle.plan.programs import Auxiliary, programs_for_all
from pgtrickle.plan.properties import kind_of
from pgtrickle.plan.reads import Lookup, Part, Read, ReadKind, Version
from pgtrickle.plan.rules import RULES

_VERSIONS = {
    Version.NOW: "as it is now",
    Version.BEFORE: "as it was before the window",
    Version.CHANGED: "now and before the window: what differs",
    Version.STAYED: "now and before the window: what both have",
}


def explanation(compiled: Compiled) -> str:
    """The whole text: operators, reads, where expressions run, and the indexes that lookups lack."""
    program = compiled.program(compiled.sources)
    lines = [f"result: {compiled.shape.description}", "", "operators, with the kind of each delta rule:"]
    lines += [f"  {line}" for line in tree_lines(compiled.root)]
    lines += _evaluated_lines(compiled.shape.operator)
    lines += _auxiliary_lines(compiled)
    lines += compared_lines(op.source for op in compiled.root.walk() if isinstance(op, Scan))
    if program is not None:
        lines += ["", "reads from PostgreSQL, if every source has changed:"]
        lines += [f"  {line}" for read in program.reads for line in _read_lines(read)]
        lines += _extrema_lines(program)
        lines += ["", "expressions evaluated:"]
        lines += [f"  {line}" for line in _expression_lines(compiled, program)]
        lines += ["", "indexes that lookups lack:"]
        lines += [f"  {line}" for line in missing_indexes(*programs_for_all(compiled))] or ["  none"]
    return "\n".join(lines)


def _auxiliary_lines(compiled: Compiled) -> list[str]:
    """The inner results that are kept: what each is, what it reads, and by what it is looked up."""
    lines: list[str] = []
    for auxiliary in compiled.auxiliaries:
        assert isinstance(auxiliary.programs, Compiled)
        lines.append(f"  {auxiliary.source.name}, with {_index_words(auxiliary)}:")
        lines += [f"    {line}" for line in tree_lines(auxiliary.programs.root)]
        program = auxiliary.programs.program(auxiliary.reads)
        if program is not None:
            lines += [f"    {line}" for read in program.reads for line in _read_lines(read)]
            lines += [f"    {line.strip()}" for line in _extrema_lines(program)]
    if not lines:
        return []
    return ["", "inner results kept beside it, followed first and in the same transaction:", *lines]


def _index_words(auxiliary: Auxiliary) -> str:
    listed = [f"({', '.join(names)})" for names in auxiliary.indexes]
    if not listed:
        return "one row"
    return f"{'an index' if len(listed) == 1 else 'indexes'} on {' and '.join(listed)}"


def _evaluated_lines(operator: Operator) -> list[str]:
    """What PostgreSQL evaluates over the rows that are reached, and what Spark would not give exactly."""
    found = [op for op in operator.walk() if isinstance(op, Evaluated)]
    lines = [f"  {label(op.child)}: because of {op.because}" for op in found]
    return ["", "evaluated by PostgreSQL, with all below it:", *dict.fromkeys(lines)] if lines else []


_COMPARED = {
    SourceKind.MATERIALIZED_VIEW: "after each REFRESH, because a materialized view can have no triggers;"
    " the whole view is read then, and not otherwise",
    SourceKind.FOREIGN_TABLE: "at each refresh, because a foreign table may change without firing triggers"
    " here; the whole table is read each time",
}


def compared_lines(sources: Iterable[Source]) -> list[str]:
    """Which sources are compared with our copy of them, when and why; nothing where none is."""
    copied = sorted({source.name: source for source in sources if source.copy}.items())
    compared = [
        f"  {name}: compared with {one.copy} {_COMPARED[one.kind]}"
        for name, one in copied
        if one.kind in _COMPARED
    ]
    attached = [
        f"  {name}: read from {one.copy}, to which the changes that the other database captures are added"
        for name, one in copied
        if one.kind is SourceKind.ATTACHED_TABLE
    ]
    return [
        *(["", "sources followed by comparing snapshots:", *compared] if compared else []),
        *(
            ["", "sources in other databases, each at one snapshot of its database:", *attached]
            if attached
            else []
        ),
    ]


def change_reads(*programs: Program) -> list[str]:
    """What a refresh reads of each source if every source has changed, one line for each read."""
    lines = []
    for read in (read for program in programs for read in program.reads):
        origin = str(read.source.name) if read.source else "a part of the query"
        lines.append(f"{origin}: {_access(read)}")
        lines += [f"{origin}: {_part_access(part)}" for part in read.parts]
    return list(dict.fromkeys(lines))


def missing_indexes(*programs: Program) -> list[str]:
    """The statements that create an index for each lookup that has none."""
    found = []
    reads = [read for program in programs for read in program.reads]
    inner = [part.rows for read in reads for part in read.parts]
    for read in (*reads, *inner):
        if read.source is None or read.source.kind is SourceKind.AUXILIARY or read.source.relation == STORED:
            continue
        for lookup in (one for one in read.lookups if one.columns):
            columns = [_source_text(column) for column in lookup.columns]
            wanted = {same_text(column) for column in lookup.columns}
            if not any(index and same_text(index[0]) in wanted for index in read.source.indexes):
                listed = ", ".join(columns)
                found.append(f"create index on {read.source.table} ({listed})")
    return list(dict.fromkeys(found))


def _source_text(column: str) -> str:
    """A column as people write it: without the alias, without quotes it does not need."""
    text = column.replace("t.", "", 1) if column.startswith("t.") else column.replace("t.", "")
    bare = text[1:-1] if text.startswith('"') and text.endswith('"') else text
    is_plain = bare.replace("_", "").isalnum() and bare == bare.lower()
    if text != bare and is_plain:
        return bare
    return text if text == bare and is_plain else (text if text.startswith('"') else f"({text})")


def _read_lines(read: Read) -> Iterator[str]:
    yield f"{read.name}: {_access(read)}"
    columns = ", ".join(dict.fromkeys(read.expressions))
    origin = str(read.source.name) if read.source else f"({read.query})"
    origin = f"changes of {origin}" if read.kind is ReadKind.CHANGES else origin
    where = f" where {shown_with_clock(read.condition)}" if read.condition else ""
    yield f"    select {columns} from {origin} as t{where}"
    for part in read.parts:
        yield f"    {part.name}: {_part_access(part)}"


def _access(read: Read) -> str:
    if read.kind is ReadKind.CHANGES:
        return "the window of changes"
    if read.closure is not None:
        return "evaluated by PostgreSQL: what the derivations that changed add to the stored rows, and remove"
    if read.kind is ReadKind.ANSWER:
        return f"evaluated by PostgreSQL, {_VERSIONS[read.version]}{_gate(read)}"
    return _lookups_text(read)


def _gate(read: Read) -> str:
    """Which rows of a recursion are asked for, and when."""
    if not any(part.is_recursed for part in read.parts):
        return ""
    gates = [p.read for lookup in read.lookups if not lookup.columns for p in lookup.providers]
    if gates:
        return f"; only if {' or '.join(dict.fromkeys(gates))} has rows"
    return "".join(f"; {_lookup(lookup)}" for lookup in read.lookups)


def _part_access(part: Part) -> str:
    assert part.rows.source is not None
    if part.is_recursed:
        return f"{part.rows.source.name}: whole table, because the recursion may reach every row"
    found = _lookups_text(part.rows) if part.is_reached else "only its change"
    if part.rows.source.relation == STORED:
        return f"the rows of the stream table itself: {found}"
    return f"{part.rows.source.name}: {found}"


def _lookups_text(read: Read) -> str:
    if not read.lookups:
        return "whole table, because all of it is asked for"
    return "; ".join(_lookup(lookup) for lookup in read.lookups)


def _lookup(lookup: Lookup) -> str:
    if not lookup.columns:
        reads = " or ".join(dict.fromkeys(p.read for p in lookup.providers))
        return f"whole table, because no key leads from {reads} to it; read only if that has rows"
    origins = " and ".join(f"{p.read} ({', '.join(p.fields)})" for p in lookup.providers)
    manner = "rows between the bounds of" if lookup.comparison else "from"
    return f"lookup by ({', '.join(lookup.columns)}) {manner} {origins}"


def _extrema_lines(program: Program) -> list[str]:
    rescan = getattr(program.target, "rescan", None)
    if rescan is None:
        return []
    way = "found by an index" if rescan.by_index else "evaluated by PostgreSQL"
    return [f"  extrema: groups whose least or greatest value went away, {way}"]


def _expression_lines(compiled: Compiled, program: Program) -> Iterator[str]:
    yield f"by PostgreSQL while reading: {_join_texts(_read_expressions(program))}"
    yield f"by Spark: {_join_texts(_spark_expressions(compiled))}"
    computed = [f"{o.name} = {o.sql}" for o in program.target.outputs if not _is_name(o.sql)]
    having = getattr(program.target, "having", None)
    if having:
        computed.append(f"having {having}")
    yield f"by PostgreSQL on apply: {_join_texts(computed)}"


def _join_texts(texts: list[str]) -> str:
    return "; ".join(dict.fromkeys(texts)) or "none"


def _read_expressions(program: Program) -> list[str]:
    texts = [
        e for read in program.reads if read.source for e in read.expressions if not _is_column(e, read.source)
    ]
    return texts + [shown_with_clock(read.condition) for read in program.reads if read.condition]


def _is_column(text: str, source: Source) -> bool:
    return any(text == f't."{column.name}"' for column in source.columns)


def _is_name(text: str) -> bool:
    return text.startswith('"') and text.endswith('"') and text.count('"') == 2


def _in_spark(operator: Operator) -> Iterator[Operator]:
    if not isinstance(operator, Evaluated):
        yield operator
        for child in operator.children:
            yield from _in_spark(child)


def _spark_expressions(compiled: Compiled) -> list[str]:
    texts = [
        text for op in _in_spark(compiled.shape.operator) for text in RULES[type(op)].spark_expressions(op)
    ]
    return texts + [str(call.expression) for call in compiled.shape.merged_calls]


def tree_lines(op: Operator, *, has_kinds: bool = True, depth: int = 0) -> Iterator[str]:
    """One line per operator, children indented; with the kind of its rule if asked."""
    kind = f"  [{kind_of(op).value}]" if has_kinds else ""
    yield f"{'  ' * depth}{label(op)}{kind}"
    for child in op.children:
        yield from tree_lines(child, has_kinds=has_kinds, depth=depth + 1)


def label(op: Operator) -> str:
    """One operator in one line."""
    return RULES[type(op)].label(op)
