"""Records: slotted classes that are declared like dataclasses and import fast.

``class Point(Record)`` with annotated fields gets ``__slots__``, ``__init__``, ``__eq__`` and ``__repr__``; type
checkers treat it as a dataclass. The module `dataclasses` compiles several methods for each class and imports
`inspect`: 20 ms of the 100 that a small kernel takes. Here the one method that has to be fast, ``__init__``, is
compiled once for each shape (number of fields, which have a :func:`fresh` default) and renamed for each class.

:class:`NamedTuple` replaces typing's for the same reason: one ``__new__`` is compiled for each number of fields. Type
checkers see typing's.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.kept import kept
from ir_format.typed import TYPE_CHECKING, Any, TypeVar, dataclass_transform

T = TypeVar("T")
R = TypeVar("R", bound="Record")


class Fresh:
    """Default of a field: a new value for every record."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def fresh(*, default_factory: Callable[[], T]) -> T:
    """A default that is a new value for every record: ``names: list[str] = fresh(default_factory=list)``."""
    return Fresh(default_factory)  # type: ignore[return-value]


_GLOBALS: dict[str, Any] = {"_fresh_": Fresh, "_type_": type}
_shapes: dict[tuple[bool, ...], Any] = {}
_Function: Any = type(fresh)


@kept
def _shape(made: tuple[bool, ...]) -> Any:
    """Code of an ``__init__`` with fields a0, a1, ...; ``made``: which have a Fresh default."""
    lines = [
        f" self.a{i} = a{i}.make() if _type_(a{i}) is _fresh_ else a{i}" if m else f" self.a{i} = a{i}"
        for i, m in enumerate(made)
    ]
    space: dict[str, Any] = {}
    exec(f"def __init__(self{''.join(f', a{i}' for i in range(len(made)))}):\n" + "\n".join(lines or [" pass"]), space)
    return space["__init__"].__code__


def _init(names: tuple[str, ...], defaults: tuple[Any, ...], owner: str) -> Any:
    plain = len(names) - len(defaults)
    made = tuple(i >= plain and type(defaults[i - plain]) is Fresh for i in range(len(names)))
    code = _shapes.get(made)
    if code is None:
        code = _shapes[made] = _shape(made)
    given = {f"a{i}": name for i, name in enumerate(names)}
    code = code.replace(
        co_varnames=("self", *names),
        co_names=tuple([given.get(n, n) for n in code.co_names]),
        co_qualname=f"{owner}.__init__",
    )
    return _Function(code, _GLOBALS, "__init__", defaults)


@dataclass_transform(field_specifiers=(fresh,))
class _Meta(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], frozen: bool = False) -> _Meta:
        if bases:
            names = tuple(space.get("__annotations__", ()))
            defaults = tuple([space.pop(n) for n in names if n in space])
            space["__slots__"] = names
            space["__init__"] = _init(names, defaults, name)
            if frozen:
                space["__hash__"] = Record._hash
        return type.__new__(mcs, name, bases, space)


class Record(metaclass=_Meta):
    """Base of records; compare by value. ``class X(Record, frozen=True)``: hashable, and no field may be assigned (type
    checkers see to that)."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, f) == getattr(other, f) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]

    def _hash(self) -> int:
        return hash(tuple([getattr(self, f) for f in fields(self)]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{f}={getattr(self, f)!r}' for f in fields(self))})"


def fields(record: Record | type[Record]) -> tuple[str, ...]:
    """Names of the fields, in order."""
    names: tuple[str, ...] = record.__slots__
    return names


def replace(record: R, **changes: Any) -> R:
    """A copy with some fields changed."""
    cls: Any = type(record)
    return cls(**{f: getattr(record, f) for f in fields(record)} | changes)  # type: ignore[no-any-return]


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import _tuplegetter

    _TUPLE_GLOBALS = {"_new_": tuple.__new__}
    _makers: dict[int, Any] = {}  # number of fields -> code of a __new__ with fields a0, a1, ...

    @kept
    def _maker(count: int) -> Any:
        names = ", ".join([f"a{i}" for i in range(count)])
        space: dict[str, Any] = {}
        exec(f"def __new__(_cls, {names}):\n return _new_(_cls, ({names},))", space)
        return space["__new__"].__code__

    class _TupleMeta(type):
        def __new__(mcs, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> type:
            names = tuple(space.get("__annotations__", ()))
            defaults = tuple([space[n] for n in names if n in space])
            code = _makers.get(len(names))
            if code is None:
                code = _makers[len(names)] = _maker(len(names))
            code = code.replace(co_varnames=("_cls", *names), co_qualname=f"{name}.__new__")
            space = _TUPLE_METHODS | space | {n: _tuplegetter(i, "") for i, n in enumerate(names)}
            space["__new__"] = _Function(code, _TUPLE_GLOBALS, "__new__", defaults)
            space["__slots__"] = ()
            space["_fields"] = space["__match_args__"] = names
            space["_index"] = {n: i for i, n in enumerate(names)}
            return type.__new__(type, name, (tuple,), space)

    NamedTuple = type.__new__(_TupleMeta, "NamedTuple", (), {})

    def _tuple_replace(self: Any, /, **changes: Any) -> Any:
        values = list(self)
        index = self._index
        for name, value in changes.items():
            values[index[name]] = value
        return tuple.__new__(type(self), values)

    _TUPLE_METHODS = {
        "_replace": _tuple_replace,
        "_asdict": lambda self: dict(zip(self._fields, self)),
        "__repr__": lambda self: (
            f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self))})"
        ),
        "__getnewargs__": lambda self: tuple(self),
    }
