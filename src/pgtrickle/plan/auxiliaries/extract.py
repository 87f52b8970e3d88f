"""The inner results of a query that are kept, and the indexes by which they are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.names import quoted
from pgtrickle.model.source import SourceKind
from pgtrickle.model.stream_table import RelationId
from pgtrickle.plan.analysis.block import Block
from pgtrickle.plan.analysis.context import Context
from pgtrickle.plan.auxiliaries.choice import Choice, scans_of
from pgtrickle.plan.auxiliaries.extraction import Extracted, Extraction
from pgtrickle.plan.auxiliaries.thresholds import with_thresholds
from pgtrickle.plan.expressions import Expression
from pgtrickle.plan.operators import Operator
from pgtrickle.plan.program import Program
from pgtrickle.plan.programs import Auxiliary
from pgtrickle.plan.properties import origin
from pgtrickle.plan.reads import Read
from pgtrickle.plan.targets.shape import Shape

_Index = tuple[RelationId, tuple[str, ...]]


def extract_auxiliaries(block: Block, context: Context) -> tuple[Block, list[Extracted]]:
    """The query over the results that are worth keeping, and these results."""
    use = context.definition.auxiliary
    if use is AuxiliaryUse.NEVER:
        return block, []
    extraction = Extraction(context, Choice(use))
    rewritten = extraction.rewrite(block)
    if not extraction.found:
        return block, []
    needed = frozenset(name for _, expression in block.outputs for name in expression.columns)
    return replace(rewritten, operator=with_thresholds(rewritten.operator, needed)), extraction.found


def indexed(
    auxiliaries: Sequence[Auxiliary], shape: Shape, kept: Sequence[Extracted]
) -> tuple[Auxiliary, ...]:
    """The results, each with the columns by which the query and the other results look it up."""
    relations = frozenset(auxiliary.source.relation for auxiliary in auxiliaries)
    every = relations.union(*(auxiliary.reads for auxiliary in auxiliaries))
    every |= frozenset(scan.source.relation for scan in scans_of(shape.operator))
    programs = [shape.program(every), *(one.shape.program(every) for one in kept)]
    wanted = [
        *(index for program in programs if program is not None for index in _lookups(program)),
        *(index for one in kept for index in _extrema(one)),
    ]
    found = []
    for auxiliary in auxiliaries:
        own = [names for relation, names in wanted if relation == auxiliary.source.relation]
        (keys,) = auxiliary.source.keys
        found.append(replace(auxiliary, indexes=tuple(dict.fromkeys([keys, *own] if keys else own))))
    return tuple(found)


def _lookups(program: Program) -> Iterator[_Index]:
    inner = (part.rows for read in program.reads for part in read.parts)
    for read in (*program.reads, *inner):
        yield from _lookups_of(read)


def _lookups_of(read: Read) -> Iterator[_Index]:
    source = read.source
    if source is None or source.kind is not SourceKind.AUXILIARY:
        return
    places = {f"t.{quoted(c.name)}": c.name for c in source.columns}
    for lookup in read.lookups:
        names = tuple(places[text] for text in lookup.columns if text in places)
        if names and len(names) == len(lookup.columns):
            yield source.relation, names


def _extrema(one: Extracted) -> Iterator[_Index]:
    """The columns by which the least and greatest values of a kept result are found."""
    for call in one.aggregate.calls:
        if call.function not in ("min", "max") or call.argument is None:
            continue
        expressions = [*(key.expression for key in one.aggregate.keys), call.argument]
        places = [_place(one.aggregate.child, expression) for expression in expressions]
        found = [place for place in places if place is not None]
        if len(found) == len(places) and len({relation for relation, _ in found}) == 1:
            yield found[0][0], tuple(name for _, name in found)


def _place(op: Operator, expression: Expression) -> tuple[RelationId, str] | None:
    """The kept result, and its column, that an expression over a tree shows as it is."""
    found = origin(op, expression.column) if expression.column is not None else None
    if found is None or found[0].source.kind is not SourceKind.AUXILIARY:
        return None
    scan, name = found
    bare = scan.expression(name).column
    return (scan.source.relation, scan.source_column(bare)) if bare is not None else None
