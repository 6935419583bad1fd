"""Parts of the page of a kernel, for what makes one: the report of a compile (--report NAME.html) and the view of saved
streams (orias-show -f html).

`page/report.js` shows the facts. The graph is laid out in the browser by dagre, whose code and licence are next to it;
PTX is highlighted by Pygments.
"""

from __future__ import annotations

import difflib
import html
import json
import os
import re
from collections.abc import Mapping, Sequence

from ir_format.model import Unit
from ir_format.typed import Any, Final
from stages.plumbing.observe import PassRow, Picture

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "page")
_LINE: Final = re.compile(r" ; line (\d+)")
_OPS: Final = {"equal": 0, "replace": 1, "delete": 1, "insert": 1}


def page(title: str, data: Mapping[str, Any]) -> bytes:
    """One HTML file that needs nothing else."""

    def part(name: str) -> str:
        with open(os.path.join(_FOLDER, name), encoding="utf-8") as f:
            return f.read()

    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True).replace("</", "<\\/")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{part("report.css")}</style></head>'
        f'<body>{part("report.html")}<script type="application/json" id="data">{text}</script>'
        f'<script id="dagre">{part("dagre.min.js")}</script>'
        f"<script>{part('report.js')}</script></body></html>\n"
    ).encode()


def highlighted(text: str) -> list[str]:
    """Lines of PTX as HTML. Without Pygments they are plain."""
    try:
        from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
        from pygments.token import Token  # type: ignore[import-untyped]
    except ImportError:
        return [html.escape(line) for line in text.split("\n")]
    kinds = {Token.Comment: "c", Token.Keyword: "k", Token.Name.Function: "k", Token.Name.Label: "l"}
    kinds |= {Token.Name.Variable: "v", Token.Literal.Number: "n", Token.Literal.String: "s"}
    out = [""]
    for kind, piece in get_lexer_by_name("ptx", stripnl=False, ensurenl=False).get_tokens(text):
        name = next((short for token, short in kinds.items() if kind in token), "")
        for n, line in enumerate(piece.split("\n")):
            if n:
                out.append("")
            if line:
                out[-1] += f'<i class="{name}">{html.escape(line)}</i>' if name else html.escape(line)
    return out


# ------------------------------------------------------------------ stages and passes


class _Texts:
    """Lines by number: pictures share most of theirs."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []
        self.number: dict[str, int] = {}

    def of(self, line: str) -> int:
        """The number of a line."""
        found = self.number.get(line)
        if found is None:
            found = self.number[line] = len(self.lines)
            place = _LINE.search(line)
            self.lines.append((_LINE.sub("", line, count=1), int(place[1]) if place else 0))
        return found


def states(rows: Sequence[PassRow], pictures: Sequence[Picture]) -> dict[str, Any]:
    """The stages with their passes, and what each changed: `states` holds the lines after a pass, `diff` of a pass
    how they align with those before it: (0 the same in number, 1 not, how many left, how many right)."""
    texts = _Texts()
    texts_of: list[list[int]] = []
    keys: list[list[str]] = []
    painted = {(p.stage, p.name): p for p in pictures}
    out: list[dict[str, Any]] = []
    for row in rows:
        row_of: dict[str, Any] = {
            "stage": row.stage, "name": row.name, "ms": round(row.spent / 1e6, 3), "before": row.before,
            "after": row.after, "rewrites": row.rewrites, "memory": row.memory, "state": -1, "diff": [],
        }  # fmt: skip
        picture = painted.pop((row.stage, row.name), None)
        if picture is not None:
            lines = picture.text.split("\n")
            texts_of.append([texts.of(line) for line in lines])
            keys.append([_key(line) for line in lines])
            row_of["state"] = len(texts_of) - 1
            if len(texts_of) > 1:
                row_of["diff"] = _diff(keys[-2], keys[-1])
        out.append(row_of)
    # A stage's own row comes after its passes; it is shown before them.
    order = list(dict.fromkeys(r["stage"] for r in out))
    out.sort(key=lambda r: (order.index(r["stage"]), r["name"] != ""))
    return {"lines": texts.lines, "states": texts_of, "passes": out}


def _key(line: str) -> str:
    """What instructions are aligned by: the mnemonic and the PTX line. Registers may have other names."""
    place = _LINE.search(line)
    words = line.split()
    guarded = len(words) > 1 and words[0].startswith("@")
    return f"{words[1] if guarded else words[0] if words else ''} {place[1] if place else ''}"


def _diff(a: list[str], b: list[str]) -> list[tuple[int, int, int]]:
    found = difflib.SequenceMatcher(None, a, b, autojunk=len(a) > 1000).get_opcodes()
    return [(_OPS[tag], i - h, k - j) for tag, h, i, j, k in found]


def origins(pictures: Sequence[Picture], unit: Unit) -> list[tuple[int, str]]:
    """(PTX line, why it waits) of each instruction, in the order of the code: from the picture after `schedule` and
    its `why` records."""
    last = next((p for p in reversed(pictures) if p.stage == "schedule"), None)
    if last is None:
        return []
    records: dict[tuple[str, str, str], list[str]] = {}
    found = unit.sections.get("why", ())
    for r in found if isinstance(found, tuple) else ():
        if isinstance(r, tuple) and len(r) > 4:
            of, where, place, _, kind, much, *rest = [str(x) for x in r]
            text = (
                f"stall {much}: {' '.join(filter(None, rest))}" if kind == "stall" else f"waits for {much}: {rest[0]}"
            )
            records.setdefault((of, where, place), []).append(text)
    out: list[tuple[int, str]] = []
    function = block = ""
    index = 0
    for line in last.text.split("\n"):
        if line.startswith("function "):
            function = line.removeprefix("function ")
        elif line.startswith(".L"):
            block, index = line[2:].partition(":")[0], 0
        else:
            found_line = _LINE.search(line)
            why = "; ".join(records.get((function, block, str(index)), ()))
            out.append((int(found_line[1]) if found_line else 0, why))
            index += 1
    return out
