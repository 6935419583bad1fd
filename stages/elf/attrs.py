"""Read unit attributes with the checks that hostile input needs. The keys are listed in docs/stream.md."""

from __future__ import annotations

from ir_format.diag import CompileError
from ir_format.model import Unit


def bad(unit: Unit, key: str) -> CompileError:
    """The error for an attribute of the wrong shape."""
    return CompileError(f"unit '{unit.name}': attribute '{key}' has an illegal value")


def number(unit: Unit, key: str, default: int, high: int, low: int = 0) -> int:
    """An integer attribute within ``low..high``."""
    value = unit.attrs.get(key, default)
    if not isinstance(value, int) or not low <= value <= high:
        raise bad(unit, key)
    return int(value)


def numbers(unit: Unit, key: str, count: int, high: int) -> tuple[int, ...] | None:
    """A tuple of ``count`` integers (any number when ``count`` is negative) within ``0..high``, or None when absent."""
    value = unit.attrs.get(key)
    if value is None:
        return None
    if not isinstance(value, tuple) or (count >= 0 and len(value) != count):
        raise bad(unit, key)
    out = []
    for v in value:
        if not isinstance(v, int) or not 0 <= v <= high:
            raise bad(unit, key)
        out.append(int(v))
    return tuple(out)


def names(unit: Unit, key: str) -> tuple[str, ...]:
    """A tuple of names, empty when absent."""
    value = unit.attrs.get(key, ())
    if not isinstance(value, tuple):
        raise bad(unit, key)
    out = []
    for v in value:
        if not isinstance(v, str) or not v:
            raise bad(unit, key)
        out.append(v)
    return tuple(out)
