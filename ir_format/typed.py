"""What modules of a compile take from `typing`. That module imports `re`, `enum` and ten more, which takes as long as
Python's own start. Annotations are never evaluated (`from __future__ import annotations`), so stand-ins do at run time.

Type checkers see typing's.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true

if TYPE_CHECKING:
    from typing import IO as IO
    from typing import Any as Any
    from typing import AnyStr as AnyStr
    from typing import BinaryIO as BinaryIO
    from typing import Final as Final
    from typing import NoReturn as NoReturn
    from typing import ParamSpec as ParamSpec
    from typing import Protocol as Protocol
    from typing import TextIO as TextIO
    from typing import TypeAlias as TypeAlias
    from typing import TypedDict as TypedDict
    from typing import TypeVar as TypeVar
    from typing import cast as cast
    from typing import dataclass_transform as dataclass_transform
else:

    class _Hint:
        """Stands for a type in aliases."""

        def __getitem__(self, parameters):
            return self

        def __or__(self, other):
            return self

        __ror__ = __or__

    IO = Any = AnyStr = BinaryIO = Final = NoReturn = TextIO = TypeAlias = _Hint()

    class Protocol:
        """Base of classes that only describe others."""

    class TypedDict(dict):
        """Base of classes that describe dictionaries."""

        def __init_subclass__(cls, total=True):
            pass

    def TypeVar(name, *constraints, **options):
        """A type variable."""
        return _Hint()

    ParamSpec = TypeVar

    def cast(kind, value):
        """The value."""
        return value

    def dataclass_transform(**options):
        """A decorator that changes nothing."""
        return lambda made: made
