"""Diagnostics: the messages of every stage to the user.

Text format is ptxas's: ``ptxas FILE, line N; error   : MESSAGE`` (severity padded to 8), or ``ptxas error   : MESSAGE``
without a place (measured: all on stderr, exit code 255 after an error).
"""

from __future__ import annotations

from ir_format.record import NamedTuple


class Diagnostic(NamedTuple):
    """One message. ``severity``: info, warning, error or fatal. ``line`` is 1-based, 0 when there is no place."""

    severity: str
    message: str
    file: str = ""
    line: int = 0

    def render(self) -> str:
        """The message as ptxas prints it, without newline."""
        place = f"{self.file}, line {self.line}; " if self.file and self.line else ""
        return f"ptxas {place}{self.severity:<8}: {self.message}"


class OriasError(Exception):
    """Base of every error that reaches the user as a diagnostic."""


class StreamError(OriasError):
    """The stream is not a valid Ori stream: truncated, forged, wrong version or wrong level."""


class CompileError(OriasError):
    """The unit can't be compiled (unsupported instruction, impossible constraint). Names the reason and the place."""

    def __init__(self, message: str, line: int = 0, severity: str = "error") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.severity = severity
