"""Tokens of PTX text.

The text is cleaned once (comments become blanks, line markers are removed), then read by one compiled
regular expression at a position.  Byte positions map to lines through the offsets of the newlines.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from ir_format.diag import Diagnostic
from ir_format.late_pattern import late_pattern
from ir_format.typed import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from stages.parse.targets import Target

# Token kinds are small strings: identifiers "id", dotted words "dot" (directives, modifiers, selectors), integers
# "int", decimal floats "flt", bit-pattern floats "f32" and "f64", quoted strings "str", the end "eof"; punctuation is
# its own kind.
TOKEN = late_pattern(
    r"""[ \t\r\n\f\v]*(?:
      (?P<id>[A-Za-z_][A-Za-z0-9_$]*|[$%][A-Za-z0-9_$]+)
    | (?P<f32>0[fF][0-9A-Fa-f]{8})
    | (?P<f64>0[dD][0-9A-Fa-f]{16})
    | (?P<int>0[xX][0-9A-Fa-f]+U?|0[bB][01]+U?)
    | (?P<flt>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_])|[0-9]+[eE][+-]?[0-9]+)
    | (?P<dec>0[0-7]*U?|[1-9][0-9]*U?)
    | (?P<dot>\.[A-Za-z0-9_$]+(?:::[A-Za-z0-9_]+)*)
    | (?P<str>"[^"\n]*")
    | (?P<op><<|>>|<=|>=|==|!=|&&|\|\||[][(){},;:=<>+\-*/%!~&^|?@.#'"`\\])
    )""",
    re.VERBOSE,
)
_BLANK = late_pattern(r"[ \t\r\n\f\v]*")
_COMMENT = late_pattern(r'"[^"\n]*"|//[^\n]*|/\*')
_NOT_NEWLINE = late_pattern(r"[^\n]+")
_MARKER = late_pattern(r'^[ \t]*#[ \t]*(?:line[ \t]+)?([0-9]+)[ \t]+"([^"\n]*)"[^\n]*$', re.MULTILINE)
_NON_ASCII = late_pattern(r"[^\x01-\x7f]")


class Abort(Exception):
    """A fatal diagnostic was recorded; parsing stops."""


class Notes:
    """The diagnostics of one file, in the order in which they were found."""

    __slots__ = ("diags", "errors", "source")

    def __init__(self, source: Source) -> None:
        self.diags: list[Diagnostic] = []
        self.errors = 0
        self.source = source

    def add(self, severity: str, message: str, line: int) -> None:
        """Records a message at a line of the text (0: no place), through the line markers."""
        file, shown = self.source.place(line)
        self.diags.append(Diagnostic(severity, message, file, shown))
        if severity in ("error", "fatal"):
            self.errors += 1

    def error(self, message: str, line: int) -> None:
        """Records an error; parsing continues."""
        self.add("error", message, line)

    def warning(self, message: str, line: int) -> None:
        """Records a warning."""
        self.add("warning", message, line)

    def fatal(self, message: str, line: int) -> NoReturn:
        """Records a fatal error and stops the parse."""
        self.add("fatal", message, line)
        raise Abort


class Source:
    """Cleaned text with its line table."""

    __slots__ = ("filename", "markers", "newlines", "text")

    def __init__(self, text: str, filename: str) -> None:
        self.filename = filename
        self.text = text
        self.newlines = [m.start() for m in re.finditer("\n", text)]
        self.markers: list[tuple[int, int, str]] = []  # (line of the text, line it claims for the next one, file)

    def line(self, pos: int) -> int:
        """The 1-based line of a position."""
        return bisect_right(self.newlines, pos - 1) + 1 if pos else 1

    def place(self, line: int) -> tuple[str, int]:
        """File and line to show for a line of the text."""
        if self.markers and line:
            k = bisect_right(self.markers, (line, 0, "")) - 1
            if k >= 0:
                at, claimed, file = self.markers[k]
                return file, claimed + line - at - 1
        return self.filename, line


def load(text: str, filename: str) -> tuple[Source, Notes]:
    """Checks the characters, blanks comments and line markers.

    Records a fatal diagnostic and raises Abort for non-ASCII text, NUL bytes or an open comment; the notes is
    reachable as the exception's argument then.
    """
    source = Source(text, filename)
    notes = Notes(source)
    try:
        bad = _NON_ASCII.search(text)
        if bad:
            line = source.line(bad.start())
            what = "Unexpected EOF" if bad.group() == "\0" else "Unexpected non-ASCII character"
            notes.fatal(f"{what} encountered on line {line}", 0)
        source.text = _blank_comments(text, source, notes)
        _take_markers(source)
    except Abort:
        raise Abort(notes) from None
    return source, notes


def _blank_comments(text: str, source: Source, notes: Notes) -> str:
    if "//" not in text and "/*" not in text:
        return text
    parts: list[str] = []
    done = 0
    search = _COMMENT.search
    m = search(text)
    while m:
        start, end = m.span()
        lead = text[start]
        if lead == '"':
            m = search(text, end)
            continue
        parts.append(text[done:start])
        if text[start + 1] == "*":
            end = text.find("*/", start + 2)
            if end < 0:
                notes.fatal("Parsing error near '': unexpected EOF while scanning", source.line(max(0, len(text) - 1)))
            end += 2
            # Blanks keep the line numbers; positions of later tokens shift, so the line table is made again below.
            parts.append(" " + "\n" * text.count("\n", start, end))
        done = end
        m = search(text, end)
    parts.append(text[done:])
    cleaned = "".join(parts)
    source.newlines = [m.start() for m in re.finditer("\n", cleaned)]
    return cleaned


def _take_markers(source: Source) -> None:
    if "#" not in source.text:
        return

    def blank(m: re.Match[str]) -> str:
        source.markers.append((source.line(m.start(1)), int(m.group(1)), m.group(2)))
        return _NOT_NEWLINE.sub(lambda s: " " * len(s.group()), m.group())

    source.text = _MARKER.sub(blank, source.text)


class Scanner:
    """One token of look-ahead over the cleaned text.

    `kind` and `tok` describe the current token, `start` is its position and `pos` the position after it. `target` is
    what the file's header says, from there on.
    """

    __slots__ = ("end", "kind", "notes", "pos", "source", "start", "target", "text", "tok")

    target: Target

    def __init__(self, source: Source, notes: Notes) -> None:
        self.source = source
        self.notes = notes
        self.text = source.text
        self.end = len(source.text)
        self.pos = 0
        self.start = 0
        self.kind = ""
        self.tok = ""
        self.next()

    def seek(self, pos: int) -> None:
        """Goes to a position and reads the token there."""
        self.pos = pos
        self.next()

    def next(self) -> None:
        """Moves to the next token."""
        m = TOKEN.match(self.text, self.pos)
        if m is None:
            blank = _BLANK.match(self.text, self.pos)
            self.start = blank.end() if blank else self.pos
            if self.start < self.end:
                self.kind = "bad"
                self.tok = self.text[self.start]
                self.pos = self.start + 1
            else:
                self.kind = "eof"
                self.tok = ""
                self.pos = self.end
            return
        group = m.lastgroup
        self.start, self.pos = m.span(group)  # type: ignore[arg-type]
        tok = self.tok = self.text[self.start : self.pos]
        if group == "op":
            self.kind = tok
        elif group == "dec":
            self.kind = "int"
        else:
            self.kind = group  # type: ignore[assignment]

    @property
    def line(self) -> int:
        """Line of the current token."""
        return self.source.line(self.start)

    def syntax_error(self) -> NoReturn:
        """The fatal syntax error at the current token."""
        self.notes.fatal(f"Parsing error near '{self.tok}': syntax error", self.line)

    def accept(self, kind: str) -> bool:
        """Skips the current token if it is of the kind."""
        if self.kind == kind:
            self.next()
            return True
        return False

    def expect(self, kind: str) -> str:
        """Skips a token of the kind and returns its text, or stops with a syntax error."""
        if self.kind != kind:
            self.syntax_error()
        tok = self.tok
        self.next()
        return tok

    def accept_dot(self, word: str) -> bool:
        """Skips the given dotted word (with its dot)."""
        if self.kind == "dot" and self.tok == word:
            self.next()
            return True
        return False
