"""The page of a kernel (--report NAME.html): one HTML file that needs nothing else.

Here the facts are put together; `page/report.js` shows them. The graph is laid out in the browser by dagre, whose code
and licence lie beside it; PTX is highlighted by Pygments.
"""

from __future__ import annotations

import difflib
import html
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ir_format import wire
from ir_format.model import AttrValue, Header, Unit
from ir_format.target import target as find_target
from stages.plumbing.observe import Picture, Seen
from stages.plumbing.runner import VERSION

if TYPE_CHECKING:
    from orchestrator.driver import Run
    from stages.disasm.cubin import Cubin

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "page")
_LINE: Final = re.compile(r" ; line (\d+)")
_THREADS: Final = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_NAME: Final = 100  # characters of a kernel's name in a file name
_OPS: Final = {"equal": 0, "replace": 1, "delete": 1, "insert": 1}


def pages(run: Run, seen: Sequence[Seen], encoded: bytes, cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """(file name, page) of each kernel; of several, the name that was given is that of a page that leads to them."""
    from orchestrator.remarks import resolved
    from stages.disasm.cubin import read_cubin

    given = run.cl.values["report"]
    sources = [] if "start-from" in run.cl.values else run.sources()
    header, units = _units(encoded)
    image = read_cubin(cubin)
    remarks = resolved(seen, sources)
    ptx = _highlighted(b"\n".join([text for _, text in sources]).decode("latin-1"))
    names = [given] if len(units) == 1 else [_name_of(given, n, u.name) for n, u in enumerate(units)]
    for unit, watched, said, name in zip(units, seen, remarks, names):
        data = {
            "name": unit.name,
            "source": header.source,
            "target": header.target,
            "made": f"orias {VERSION}",
            "options": _options(header),
            "ptx": ptx,
            "remarks": [[r.kind, r.pass_name, r.line, r.message, r.value] for r in said],
            **_passes(watched),
            **_machine_code(unit, watched, image),
            **_resources(unit, header),
        }
        yield name, _page(unit.name, data)
    if len(units) != 1:
        links = [(u.name, os.path.basename(name)) for u, name in zip(units, names)]
        rows = "".join(f'<li><a href="{html.escape(to)}">{html.escape(name)}</a>' for name, to in links)
        title = html.escape(header.source)
        head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        style = "<style>:root{color-scheme:light dark}body{font-family:sans-serif;overflow-wrap:anywhere}</style>"
        yield given, f"{head}{style}<h1>{title}</h1><ul>{rows}</ul></html>\n".encode()


def _name_of(given: str, number: int, name: str) -> str:
    stem, end = os.path.splitext(given)
    plain = re.sub(r"\W", "_", name)[:_NAME]
    return f"{stem}-{number + 1}-{plain}{end}"


def _page(title: str, data: Mapping[str, Any]) -> bytes:
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


def _units(encoded: bytes) -> tuple[Header, list[Unit]]:
    header, units = Header("", ""), []
    for tag, body in wire.records(io.BytesIO(encoded)):
        if tag == wire.MAGIC:
            header = wire.header_from_wire(body)
        elif tag == "unit":
            units.append(wire.unit_from_wire(body, "encoded"))
    return header, units


def _options(header: Header) -> str:
    def text(value: AttrValue) -> str:
        return ",".join(map(text, value)) if isinstance(value, tuple) else str(value)

    return " ".join([f"{name}={text(value)}" for name, value in sorted(header.options.items())])


def _highlighted(text: str) -> list[str]:
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


def _passes(seen: Seen) -> dict[str, Any]:
    """The stages with their passes, and what each changed: `states` holds the lines behind a pass, `diff` of a pass
    how they stand beside those before it: (0 the same in number, 1 not, how many left, how many right)."""
    texts = _Texts()
    states: list[list[int]] = []
    keys: list[list[str]] = []
    painted = {(p.stage, p.name): p for p in seen.pictures if p.name or p.stage == "lower"}
    rows: list[dict[str, Any]] = []
    for row in seen.passes:
        row_of: dict[str, Any] = {
            "stage": row.stage, "name": row.name, "ms": round(row.spent / 1e6, 3), "before": row.before,
            "after": row.after, "rewrites": row.rewrites, "memory": row.memory, "state": -1, "diff": [],
        }  # fmt: skip
        picture = painted.pop((row.stage, row.name), None)
        if picture is not None:
            lines = picture.text.split("\n")
            states.append([texts.of(line) for line in lines])
            keys.append([_key(line) for line in lines])
            row_of["state"] = len(states) - 1
            if len(states) > 1:
                row_of["diff"] = _diff(keys[-2], keys[-1])
        rows.append(row_of)
    # A stage's own row comes behind its passes; it is shown in front of them.
    order = list(dict.fromkeys(r["stage"] for r in rows))
    rows.sort(key=lambda r: (order.index(r["stage"]), r["name"] != ""))
    return {"lines": texts.lines, "states": states, "passes": rows}


def _key(line: str) -> str:
    """What instructions are aligned by: the mnemonic and the PTX line. Registers may have other names."""
    place = _LINE.search(line)
    words = line.split()
    guarded = len(words) > 1 and words[0].startswith("@")
    return f"{words[1] if guarded else words[0] if words else ''} {place[1] if place else ''}"


def _diff(a: list[str], b: list[str]) -> list[tuple[int, int, int]]:
    found = difflib.SequenceMatcher(None, a, b, autojunk=len(a) > 1000).get_opcodes()
    return [(_OPS[tag], i - h, k - j) for tag, h, i, j, k in found]


# ------------------------------------------------------------------ machine code


def _machine_code(unit: Unit, seen: Seen, image: Cubin) -> dict[str, Any]:
    """`code`: a row for each instruction, `blocks` and `ways` of the control-flow graph."""
    from ir_format import isa
    from stages.analysis.life_ranges import of_file
    from stages.disasm.cubin import WORD
    from stages.disasm.flow import blocks, lives
    from stages.disasm.labels import Names
    from stages.disasm.listing import decode_section, section_lines

    section = next((s for s in image.sections if s.name == f".text.{unit.name}"), None)
    if section is None:
        return {"code": [], "blocks": [], "ways": []}
    target = isa.target(image.sm)
    decoded = {s.number: decode_section(s, target) for s in image.sections}
    names = Names(image, decoded)
    list(section_lines(section, decoded[section.number], names, target))  # puts names into the texts
    items = decoded[section.number][: sum([len(c.data) for c in unit.code]) // WORD]  # without the padding
    parts = blocks(items, section, names)
    life = lives(items, section, names)
    origin = _origins(seen.pictures, unit)
    rows = []
    for n, item in enumerate(items):
        ctl = item.inst.ctl if item.inst is not None else None
        line, why = origin[n] if n < len(origin) else (0, "")
        alive = [of_file(life[n].occupied, f).bit_count() for f in ("R", "UR", "P")]
        rows.append([item.pc, item.text or f".word {item.word:#034x}", line, list(ctl or ()), why, *alive])
    labels = {b.first: names.of((section.number, items[b.first].pc)) for b in parts}
    return {
        "code": rows,
        "blocks": [[b.first, b.end, labels[b.first]] for b in parts],
        "ways": [[k, to, int(taken)] for k, b in enumerate(parts) for to, taken in b.ways],
    }


def _origins(pictures: Sequence[Picture], unit: Unit) -> list[tuple[int, str]]:
    """(PTX line, why it waits) of each instruction, in the order of the code: from the picture behind `schedule` and
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


# ------------------------------------------------------------------ resources


def _resources(unit: Unit, header: Header) -> dict[str, Any]:
    from stages.analysis.occupancy import occupancy
    from stages.elf.layout import build_kernel

    t = find_target(header.target)
    k = build_kernel(unit, t, 0, header.options)
    bound = unit.attrs.get("reqntid") or unit.attrs.get("maxntid") or 0
    threads = 1
    for n in bound if isinstance(bound, tuple) else (bound,):
        threads *= n if isinstance(n, int) and n > 0 else 1
    stores, loads = (sum([f.spills[n] for f in unit.functions]) for n in (0, 1))
    barriers = unit.attrs.get("barriers", 0)
    facts = [
        ["registers a thread", k.regcount],
        ["spill stores, bytes", stores],
        ["spill loads, bytes", loads],
        ["stack, bytes", k.functions[0].code.frame],
        ["shared memory, bytes", k.static_shared],
        ["parameters, bytes", k.param_size],
        ["barriers", barriers if isinstance(barriers, int) else 0],
        ["instructions", sum([len(c.data) for c in unit.code]) // 16],
    ]
    asked = sorted({*_THREADS, threads} - {1}) if threads > 1 else list(_THREADS)
    table = []
    for n in asked:
        try:
            o = occupancy(t, k.regcount, k.static_shared, n)
        except ValueError:
            continue
        table.append([n, o.blocks, o.warps, round(o.fraction, 4), " and ".join(o.limits), int(n == threads)])
    return {"resources": facts, "occupancy": table, "max_warps": t.max_warps}
