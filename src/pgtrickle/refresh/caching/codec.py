"""Encodes frozen values as bytes, and decodes them strictly by the types that their fields declare.

The decoded value decides which SQL the sidecar runs. So decoding calls nothing but the constructors of the
dataclasses that the wanted type can contain, checks each field against its declared type, and rejects the
whole if anything is unexpected. Equal values are written once.
"""

from __future__ import annotations

import hashlib
import json
import types
import zlib
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

_MARK: Final = b"pgtrickle plan 1\n"
_DIGEST: Final = 32
_MAX_BYTES: Final = 64 << 20
"""The most bytes of a plan."""

Value = TypeVar("Value")
_Reader = Callable[[Any, list[Any]], Any]


class Unreadable(Exception):
    """The bytes are not a value of the wanted type that was written under the wanted key."""


def encode(value: object, key: bytes) -> bytes:
    """The value as bytes, which can only be decoded with the same key."""
    pool = _Pool()
    root = pool.reference(value)
    text = json.dumps([pool.rows, root], ensure_ascii=False, separators=(",", ":"))
    body = zlib.compress(text.encode(), 6)
    return _MARK + _digest(key, body) + body


def decode(kind: type[Value], data: bytes, key: bytes) -> Value:
    """The value that was written under the key; raises Unreadable for anything else."""
    head = len(_MARK) + _DIGEST
    body = data[head:]
    if data[: len(_MARK)] != _MARK or data[len(_MARK) : head] != _digest(key, body):
        raise Unreadable("it is damaged, or was written for something else")
    try:
        inflating = zlib.decompressobj()
        text = inflating.decompress(body, _MAX_BYTES)
        if not inflating.eof:
            raise Unreadable("it is too large, or has no end")
        rows, root = json.loads(text)
        values: list[Any] = []
        known = _classes(cast(Hashable, kind))
        for name, *parts in rows:
            values.append(_build(known[name], parts, values))
        value = values[root]
    except (KeyError, IndexError, TypeError, ValueError, zlib.error, RecursionError) as error:
        raise Unreadable(f"it does not describe a {kind.__name__}") from error
    if type(value) is not kind:
        raise Unreadable(f"it describes a {type(value).__name__}")
    return value


class _Pool:
    """The dataclass values so far, each as its class and fields; fields refer to other values by number."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self._numbers: dict[tuple[type, object], int] = {}
        # most values occur again as the same object, which saves hashing everything it contains
        self._met: dict[int, int] = {}

    def reference(self, value: Any) -> int:
        known = self._met.get(id(value))
        if known is None:
            known = self._met[id(value)] = self._number(value)
        return known

    def _number(self, value: Any) -> int:
        kind = type(value)
        known = self._numbers.get((kind, value))
        if known is None:
            parts = [self._plain(getattr(value, field.name)) for field in fields(value)]
            self.rows.append([kind.__name__, *parts])
            known = self._numbers[kind, value] = len(self.rows) - 1
        return known

    def _plain(self, value: Any) -> Any:
        if value is None or type(value) in (str, int, bool):
            return value
        if isinstance(value, Enum):
            return value.value
        if isinstance(value, tuple):
            return [self._plain(part) for part in value]
        if is_dataclass(value):
            return self.reference(value)
        raise TypeError(f"a {type(value).__name__} cannot be written")


def _digest(key: bytes, body: bytes) -> bytes:
    return hashlib.sha256(len(key).to_bytes(8, "big") + key + body).digest()


def _build(kind: type, parts: list[Any], values: list[Any]) -> Any:
    readers = _readers(kind)
    if len(parts) != len(readers):
        raise ValueError(f"a {kind.__name__} has {len(readers)} fields")
    return kind(*[reader(part, values) for reader, part in zip(readers, parts, strict=True)])


@cache
def _classes(kind: Hashable) -> dict[str, type]:
    """The dataclasses that a value of this type can contain, by name."""
    found: dict[str, type] = {}
    waiting: list[Any] = [kind]
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, type) and is_dataclass(hint):
            if found.get(hint.__name__, hint) is not hint:
                raise TypeError(f"two classes are called {hint.__name__}")
            if hint.__name__ not in found:
                found[hint.__name__] = hint
                waiting += _hints(hint)
        else:
            waiting += get_args(hint)
    return found


def _hints(kind: type) -> list[Any]:
    hints = get_type_hints(kind)
    return [hints[field.name] for field in fields(kind)]


@cache
def _readers(kind: type) -> tuple[_Reader, ...]:
    return tuple(_reader(hint) for hint in _hints(kind))


def _reader(hint: Any) -> _Reader:
    """A function that turns the written form of a field into a value of its declared type, or raises."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, NewType):
        return _reader(hint.__supertype__)
    if origin in (Union, types.UnionType):
        return _one_of(arguments)
    if origin is tuple:
        return _tuple_of(arguments)
    if hint in (str, int, bool):
        return _exactly(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda part, values: hint(part)
    if isinstance(hint, type) and is_dataclass(hint):
        return _reference_to((hint,))
    raise TypeError(f"a field of type {hint} cannot be read")


def _exactly(kind: type) -> _Reader:
    def read(part: Any, values: list[Any]) -> Any:
        if type(part) is not kind:
            raise ValueError(f"{part!r} is not a {kind.__name__}")
        return part

    return read


def _reference_to(kinds: tuple[type, ...]) -> _Reader:
    def read(part: Any, values: list[Any]) -> Any:
        if type(part) is not int or part < 0 or type(values[part]) not in kinds:
            raise ValueError(f"{part!r} does not refer to a {kinds[0].__name__}")
        return values[part]

    return read


def _one_of(arguments: tuple[Any, ...]) -> _Reader:
    kinds = tuple(argument for argument in arguments if argument is not type(None))
    inner = _reference_to(kinds) if len(kinds) > 1 else _reader(kinds[0])
    if len(kinds) == len(arguments):
        return inner
    return lambda part, values: None if part is None else inner(part, values)


def _tuple_of(arguments: tuple[Any, ...]) -> _Reader:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        each = _reader(arguments[0])

        def read_all(part: Any, values: list[Any]) -> Any:
            return tuple(each(one, values) for one in _list_of(part))

        return read_all
    readers = tuple(_reader(argument) for argument in arguments)

    def read(part: Any, values: list[Any]) -> Any:
        return tuple(reader(one, values) for reader, one in zip(readers, _list_of(part), strict=True))

    return read


def _list_of(part: Any) -> list[Any]:
    if type(part) is not list:
        raise ValueError(f"{part!r} is not a list")
    return part
