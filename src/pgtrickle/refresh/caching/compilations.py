"""The compiled queries of a process: cached in memory, on the host and in the catalog, or compiled now.

The levels are asked in this order: the process, the files of the host, the catalog, the compiler; a level
that misses is filled. A key contains the definition, the state of what it reads, the limits, the version of
the code and how often the caches were cleared, so an outdated entry is never found and need not be deleted.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgtrickle.catalog.compiled import compiled_from, load_compiled, save_compiled
from pgtrickle.model.auxiliary import AuxiliaryUse
from pgtrickle.model.lru import LruCache
from pgtrickle.model.settings import TEMPLATE_CACHE_MAX_ENTRIES
from pgtrickle.model.stream_table import RelationId, StreamTable, StreamTableId
from pgtrickle.plan.compile import Compiled
from pgtrickle.plan.limits import USUAL_LIMITS, QueryLimits
from pgtrickle.postgres.connection import Connection, DatabaseError
from pgtrickle.refresh.caching.codec import Unreadable, decode, encode
from pgtrickle.refresh.caching.host import HostFiles
from pgtrickle.refresh.caching.saved import (
    MAX_SAVED,
    SavedCompilation,
    SavedFollowing,
    restored_compilation,
    saved_compilation,
)
from pgtrickle.refresh.caching.version import code_version
from pgtrickle.refresh.compilation import Compilation, compile_table
from pgtrickle.refresh.plan_text import plan_lines


@dataclass(frozen=True, slots=True)
class _CompilationKey:
    """Everything that one compilation depends on."""

    table: StreamTableId
    database: str
    fingerprint: str
    generation: int

    @property
    def text(self) -> bytes:
        parts = (self.table, self.database, code_version(), self.fingerprint, self.generation)
        return "|".join(map(str, parts)).encode()

    @property
    def file(self) -> str:
        return f"{self.prefix}{hashlib.sha256(self.text).hexdigest()}"

    @property
    def prefix(self) -> str:
        """The beginning of the names of files that are still in use."""
        return f"{self.generation}-"


@dataclass(frozen=True, slots=True)
class _CachedCompilation:
    """A compilation in use, and the windows whose programs the other levels have."""

    found: Compilation
    auxiliary: AuxiliaryUse
    generation: int
    ground_generation: int
    saved: frozenset[frozenset[RelationId]]

    def fits(self, table: StreamTable) -> bool:
        return (
            self.found.query,
            self.found.mode,
            self.auxiliary,
            self.generation,
            self.ground_generation,
        ) == (
            table.query,
            table.mode,
            table.auxiliary,
            table.cache_generation,
            table.ground_generation,
        )

    @property
    def owes_a_program(self) -> bool:
        """Whether a window occurred whose program is missing here or in the other levels."""
        plan = self.found.compiled
        if isinstance(plan, SavedFollowing):
            return bool(plan.missed)
        return (
            isinstance(plan, Compiled)
            and len(self.saved) < MAX_SAVED
            and not self.saved.issuperset(plan.made)
        )


class Compilations:
    """All levels together. Safe to use from many threads."""

    def __init__(
        self,
        max_entries: int = TEMPLATE_CACHE_MAX_ENTRIES.default,
        directory: Path | None = None,
        limits: QueryLimits = USUAL_LIMITS,
    ) -> None:
        self._limits = limits
        self._kept: LruCache[StreamTableId, _CachedCompilation] = LruCache(max_entries)
        self._files = HostFiles(directory) if directory else None
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._databases: set[str] = set()

    def of(self, connection: Connection, table: StreamTable) -> Compilation:
        """The compilation of the table's query, made now or before, here or elsewhere."""
        entry = self._kept.get(table.id)
        if entry is None or not entry.fits(table):
            self._count("misses")
            entry = self._load(connection, table) or self._compile(connection, table)
            self._kept.put(table.id, entry)
            return entry.found
        self._count("hits")
        if entry.owes_a_program:
            entry = self._extend(connection, table, entry)
            self._kept.put(table.id, entry)
        return entry.found

    def in_memory(self, table: StreamTable) -> Compilation | None:
        """The table's query, if this process has it and owes nothing to the other levels."""
        entry = self._kept.get(table.id)
        if entry is None or not entry.fits(table) or entry.owes_a_program:
            return None
        self._count("hits")
        return entry.found

    def is_outdated(self, table: StreamTable) -> bool:
        """Whether what this process has was compiled for another definition, or on another ground."""
        entry = self._kept.get(table.id)
        return entry is not None and not entry.fits(table)

    def with_operators(self, connection: Connection, table: StreamTable) -> Compilation:
        """The compilation with its operators, which only the level of the process keeps."""
        found = self.of(connection, table)
        if not isinstance(found.compiled, SavedFollowing):
            return found
        entry = self._compile(connection, table)
        self._kept.put(table.id, entry)
        return entry.found

    def last(self, table: StreamTableId) -> Compilation | None:
        """The compilation that this process has, even if it is out of date."""
        entry = self._kept.peek(table)
        return entry.found if entry else None

    def forget(self, table: StreamTableId) -> None:
        """Drop the compilation of a table: something that its query relies on has changed."""
        self._kept.drop(table)

    def clear(self) -> None:
        """Clear the levels of this process and this host."""
        self._kept.clear()
        with self._lock:
            databases, self._databases = self._databases, set()
        for database in databases:
            if self._files:
                self._files.clear(database)
        self._count("clears")

    def counters(self) -> Mapping[str, int]:
        """How often each level was hit since the process began."""
        names = ("hits", "misses", "host_hits", "catalog_hits", "compiles", "unsaved", "clears")
        with self._lock:
            counts = {name: self._counts[name] for name in names}
        return {**counts, "evictions": self._kept.evictions, "entries": len(self._kept)}

    def _load(self, connection: Connection, table: StreamTable) -> _CachedCompilation | None:
        key = self._key(connection, table)
        data = self._files.read(key.database, key.file) if self._files else None
        found = _read(data, key)
        if found is not None:
            self._count("host_hits")
        else:
            data = load_compiled(connection, table.id, code_version(), key.fingerprint, key.generation)
            found = _read(data, key)
            if found is None:
                return None
            self._count("catalog_hits")
            if data is not None:
                self._write(key, data)
        return _CachedCompilation(
            restored_compilation(found),
            table.auxiliary,
            key.generation,
            table.ground_generation,
            _windows(found),
        )

    def _compile(self, connection: Connection, table: StreamTable) -> _CachedCompilation:
        self._count("compiles")
        return self._save(connection, table, compile_table(connection, table, self._limits))

    def _extend(
        self, connection: Connection, table: StreamTable, entry: _CachedCompilation
    ) -> _CachedCompilation:
        """Make the program of a window that the other levels do not have, and save it there."""
        found, plan = entry.found, entry.found.compiled
        if isinstance(plan, SavedFollowing):
            self._count("compiles")
            found = compile_table(connection, table, self._limits)
            if isinstance(found.compiled, Compiled):
                for window in entry.saved | plan.missed:
                    found.compiled.program(window)
        return self._save(connection, table, found)

    def _save(self, connection: Connection, table: StreamTable, found: Compilation) -> _CachedCompilation:
        """Save a compilation on the host and in the catalog."""
        key, values = self._key(connection, table), saved_compilation(found)
        data = encode(values, key.text)
        self._write(key, data)
        try:
            with connection.transaction():
                plan = "\n".join(plan_lines(found))
                save_compiled(
                    connection, table.id, code_version(), key.fingerprint, key.generation, data, plan
                )
        except DatabaseError:
            # other sidecars compile it themselves
            self._count("unsaved")
        return _CachedCompilation(
            found, table.auxiliary, key.generation, table.ground_generation, _windows(values)
        )

    def _write(self, key: _CompilationKey, data: bytes) -> None:
        if self._files:
            self._files.write(key.database, key.file, data, still_used=key.prefix)

    def _key(self, connection: Connection, table: StreamTable) -> _CompilationKey:
        """The key of what the compiler would read now."""
        origin = compiled_from(connection, table.id)
        parts = (
            table.query,
            table.mode.value,
            table.auxiliary.value,
            table.settings,
            origin.text,
            self._limits,
        )
        with self._lock:
            self._databases.add(origin.database)
        fingerprint = hashlib.sha256(repr(parts).encode()).hexdigest()
        return _CompilationKey(table.id, origin.database, fingerprint, table.cache_generation)

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1


def _read(data: bytes | None, key: _CompilationKey) -> SavedCompilation | None:
    if data is None:
        return None
    try:
        return decode(SavedCompilation, data, key.text)
    except Unreadable:
        return None


def _windows(found: SavedCompilation) -> frozenset[frozenset[RelationId]]:
    programs = found.plan.programs if found.plan else ()
    return frozenset(frozenset(one.changed) for one in programs)
