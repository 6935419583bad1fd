"""Two compilations, aligned instruction by instruction."""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterable, Iterator, Sequence

from ir_format.record import Record
from stages.diff.timed import Code, Line

#: Most lines of PTX in the table of cycles.
SHOWN = 12
#: '=' the same, '~' other registers or control words, '-' and '+' present in only one.
Row = tuple[str, Line | None, Line | None]


def aligned(a: Code, b: Code) -> Iterator[Row]:
    """The rows of two functions, aligned by mnemonics and modifiers."""
    matcher = difflib.SequenceMatcher(None, [x.key for x in a.lines], [x.key for x in b.lines], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            for x, y in zip(a.lines[i:j], b.lines[k:m]):
                yield "=" if (x.text, x.ctl) == (y.text, y.ctl) else "~", x, y
        else:
            yield from (("-", x, None) for x in a.lines[i:j])
            yield from (("+", None, y) for y in b.lines[k:m])


class Pair(Record):
    """A function of both, and its rows."""

    a: Code
    b: Code
    rows: list[Row]

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return all(mark == "=" for mark, _, _ in self.rows)


def pair(a: Code, b: Code) -> Pair:
    """Two functions, aligned."""
    return Pair(a, b, list(aligned(a, b)))


def paired(a: list[Code], b: list[Code]) -> list[Pair]:
    """The functions of both, by name, in the order of the first; a function of only one is paired with nothing."""
    others = {c.name: c for c in b}
    out = [pair(c, others.pop(c.name, Code(c.name, 0, []))) for c in a]
    return out + [pair(Code(c.name, 0, []), c) for c in others.values()]


def summary(p: Pair) -> list[str]:
    """The differences in numbers: in total, and the lines of PTX whose estimated cycles differ most."""
    a, b = p.a, p.b
    marks = [mark for mark, _, _ in p.rows]
    same, other, first, second = (marks.count(mark) for mark in "=~-+")
    out = [
        f"{a.name}: instructions {len(a.lines)} | {len(b.lines)}, registers {a.registers} | {b.registers}, "
        f"estimated cycles {a.cycles} | {b.cycles}; {same} the same, {other} with other registers or control words, "
        f"{first} in the first alone, {second} in the second alone"
    ]
    cost: dict[int, list[int]] = {}
    for side, code in enumerate((a, b)):
        for x in code.lines:
            cost.setdefault(x.line, [0, 0])[side] += x.cycles
    worst = sorted(((abs(x - y), line, x, y) for line, (x, y) in cost.items() if x != y and line), reverse=True)
    out += [f"  PTX line {line}: {x} | {y} cycles" for _, line, x, y in worst[:SHOWN]]
    return out


def _cell(x: Line | None) -> str:
    if x is None:
        return ""
    cycles = f" {x.cycles:3}" if x.ctl else ""
    return f"{x.line:5}{cycles} {x.text}" + (f"  {{{x.ctl}}}" if x.ctl else "") + (f"  ; {x.why}" if x.why else "")


def text(pairs: Iterable[Pair], everything: bool = False) -> Iterator[str]:
    """Lines for people: the summary of each function, then the differences (with the reasons of both), or
    everything."""
    for p in pairs:
        yield from summary(p)
        for mark, left, right in p.rows:
            if mark == "=":
                if everything:
                    yield f"  {_cell(left)}"
            elif mark == "~":
                yield f"< {_cell(left)}"
                yield f"> {_cell(right)}"
            else:
                yield f"{mark} {_cell(left if mark == '-' else right)}"


def page(pairs: Iterable[Pair], names: tuple[str, str], said: Sequence[str] = ()) -> str:
    """One HTML page with both side by side; ``said``: lines at the top."""
    style = (
        "body{font-family:sans-serif;margin:1em}table{border-collapse:collapse;font:12px monospace;width:100%}"
        "td{padding:0 .6em;vertical-align:top;white-space:pre-wrap;width:50%}.d{background:#ffe0b3;color:#111}"
        ".a{background:#cfe8ff;color:#111}.c{background:#ffffb0;color:#111}pre{white-space:pre-wrap}"
    )
    out = [f"<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>orias-diff</title><style>{style}</style>"]
    out.append(f"<h1>{html.escape(names[0])} | {html.escape(names[1])}</h1>")
    if said:
        out.append(f"<pre>{html.escape(chr(10).join(said))}</pre>")
    for p in pairs:
        out.append(f"<h2>{html.escape(p.a.name)}</h2><pre>{html.escape(chr(10).join(summary(p)))}</pre><table>")
        for mark, left, right in p.rows:
            kind = {"=": "", "~": " class=c", "-": " class=d", "+": " class=a"}[mark]
            out.append(f"<tr{kind}><td>{html.escape(_cell(left))}</td><td>{html.escape(_cell(right))}</td></tr>")
        out.append("</table>")
    return "\n".join([*out, "</html>\n"])
