"""Regular expressions that are compiled when they are first used: most modules are imported for a kernel that needs few
of theirs, and compiling one takes as long as importing a module."""

from __future__ import annotations

from ir_format.typed import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:
    from re import Pattern


class _Late:
    """Stands for a compiled pattern."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        import re

        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found


def late_pattern(text: AnyStr, flags: int = 0) -> Pattern[AnyStr]:
    """As re.compile. The result has the methods and attributes of a pattern, but is no key and no argument of `re`."""
    return _Late(text, flags)  # type: ignore[return-value]
