"""The page of a kernel (--report NAME.html): one HTML file that needs nothing else.

Here the facts of a compile are put together; `stages.plumbing.pages` makes the page.
"""

from __future__ import annotations

import html
import io
import os
import re
from collections.abc import Iterator, Sequence

from ir_format import wire
from ir_format.model import AttrValue, Header, Unit
from ir_format.target import target as find_target
from ir_format.typed import TYPE_CHECKING, Any, Final
from stages.plumbing.observe import Seen
from stages.plumbing.pages import highlighted, origins, page, states
from stages.plumbing.runner import VERSION

if TYPE_CHECKING:
    from orchestrator.driver import Run
    from stages.disasm.cubin import Cubin

_THREADS: Final = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_NAME: Final = 100  # characters of a kernel's name in a file name


def pages(run: Run, seen: Sequence[Seen], encoded: bytes, cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """(file name, page) of each kernel; of several, the name that was given is that of a page that leads to them."""
    from orchestrator.remarks import resolved
    from stages.disasm.cubin import read_cubin

    given = run.cl.values["report"]
    sources = [] if "start-from" in run.cl.values else run.sources()
    header, units = _units(encoded)
    image = read_cubin(cubin)
    remarks = resolved(seen, sources)
    ptx = highlighted(b"\n".join([text for _, text in sources]).decode("latin-1"))
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
            **states(watched.passes, [p for p in watched.pictures if p.name or p.stage == "lower"]),
            **_machine_code(unit, watched, image),
            **_resources(unit, header),
        }
        yield name, page(unit.name, data)
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


# ------------------------------------------------------------------ machine code


def _machine_code(unit: Unit, seen: Seen, image: Cubin) -> dict[str, Any]:
    """`code`: a row for each instruction, `blocks` and `edges` of the control-flow graph."""
    from ir_format import isa
    from stages.analysis.life_ranges import of_file
    from stages.disasm.cubin import WORD
    from stages.disasm.flow import blocks, lives
    from stages.disasm.labels import Names
    from stages.disasm.listing import decode_section, section_lines

    section = next((s for s in image.sections if s.name == f".text.{unit.name}"), None)
    if section is None:
        return {"code": [], "blocks": [], "edges": []}
    target = isa.target(image.sm)
    decoded = {s.number: decode_section(s, target) for s in image.sections}
    names = Names(image, decoded)
    list(section_lines(section, decoded[section.number], names, target))  # puts names into the texts
    items = decoded[section.number][: sum([len(c.data) for c in unit.code]) // WORD]  # without the padding
    parts = blocks(items, section, names)
    life = lives(items, section, names)
    origin = origins(seen.pictures, unit)
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
        "edges": [[k, to, int(taken)] for k, b in enumerate(parts) for to, taken in b.edges],
    }


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
