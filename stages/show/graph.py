"""Pictures of units: DOT for Graphviz, and one self-contained HTML page with the parts of the report of a compile."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from ir_format.flow import build_cfg, jump_targets
from ir_format.model import Function, Header, Inst, Unit
from ir_format.text import print_inst
from stages.analysis.life_ranges import life_ranges, of_file, pieces
from stages.plumbing.observe import PassRow, Picture, instructions, picture
from stages.plumbing.pages import highlighted, origins, page, states

#: What the page shows beside an instruction: its line, place and control word.
_BEHIND: Final = re.compile(r" ; (?:line \d+|loc \d+|ctl S\d+ Y\d+ W\d+ R\d+ M\d+)")
#: The two colours of the report's graph: jumps taken, and ways that fall through (Okabe and Ito's, for all eyes).
_TAKEN: Final = 'color="#D55E00"'
_THROUGH: Final = 'color="#0072B2" style="dashed"'
_LEGEND: Final = f"""  subgraph cluster_legend {{ label="edges"; fontname="monospace"; fontsize=9;
    legend_a [label="block"]; legend_b [label="jump"]; legend_c [label="next"];
    legend_a -> legend_b [label="taken" {_TAKEN} fontcolor="#D55E00"];
    legend_a -> legend_c [label="falls through" {_THROUGH} fontcolor="#0072B2"];
  }}"""


def dot(unit: Unit, level: str, ptx: Sequence[str]) -> str:
    """One cluster per function, one box per block, its instructions after the lines of PTX (if these are known) that
    they come from; edges are labelled taken or falls through."""
    out = [
        "digraph orias {",
        '  node [shape=box fontname="monospace" fontsize=9]; edge [fontname="monospace" fontsize=8];',
    ]
    for n, f in enumerate(unit.functions):
        out.append(f"  subgraph cluster_{n} {{ label={json.dumps(f.name)};")
        for pos, b in enumerate(f.blocks):
            lines = [f".L{b.id}" + (f", loop depth {b.depth}" if b.depth else ""), *_lines(f, pos, level, ptx)]
            text = "".join(line.replace("\\", "\\\\").replace('"', '\\"') + "\\l" for line in lines)
            out.append(f'    f{n}_{pos} [label="{text}"];')
        for pos, to, taken in _ways(f):
            how = (
                f'label="taken" fontcolor="#D55E00" {_TAKEN}'
                if taken
                else f'label="falls through" fontcolor="#0072B2" {_THROUGH}'
            )
            out.append(f"    f{n}_{pos} -> f{n}_{to} [{how}];")
        out.append("  }")
    return "\n".join([*out, _LEGEND, "}"]) + "\n"


def _lines(f: Function, pos: int, level: str, ptx: Sequence[str]) -> list[str]:
    vregs = f.vregs if level == "ori" else None
    out: list[str] = []
    last = 0
    for i in f.blocks[pos].insts:
        if i.line != last and 0 < i.line <= len(ptx) and ptx[i.line - 1]:
            out.append(f"// {i.line}: {ptx[i.line - 1]}")
        last = i.line
        out.append("  " + print_inst(i, vregs))
    return out


def _ways(f: Function) -> list[tuple[int, int, bool]]:
    """(block, following block, whether by a jump), as positions."""
    cfg = build_cfg(f)
    out = []
    for pos, succs in enumerate(cfg.succs):
        insts = f.blocks[pos].insts
        jumps = {cfg.index[t] for t in jump_targets(insts[-1])} if insts else set()
        out += [(pos, to, to in jumps) for to in succs]
    return out


Stream = tuple[Header, list[Unit]]  # a saved stream, after a stage


def view(ptx: Sequence[str], streams: Sequence[Stream]) -> str:
    """The page: PTX, each stream next to the previous one, the code of the last with its graph and, where registers are
    allocated, how many are alive."""
    rows: list[PassRow] = []
    pictures: list[Picture] = []
    before = 0
    names: dict[str, int] = {}
    for header, units in streams:
        stage = header.producers[-1][0] if header.producers else header.level
        names[stage] = names.get(stage, 0) + 1  # two streams of one stage, to be compared, have names of their own
        stage += f" ({names[stage]})" if names[stage] > 1 else ""
        after = sum([instructions(u) for u in units])
        rows.append(PassRow(stage, "", 0, 0, before, after, 0, 0, 0))
        pictures.append(Picture(stage, "", "\n".join([picture(u, None) for u in units])))
        before = after
    header, units = streams[-1] if streams else (Header("ptx", ""), [])
    coded = next(
        (s for s in reversed(streams) if any(b.insts for u in s[1] for f in u.functions for b in f.blocks)), None
    )
    data = {
        "name": ", ".join([u.name for u in units]) or "PTX",
        "source": header.source,
        "target": header.target,
        "made": " ".join([f"{name}-{version}" for name, version in header.producers]) or "orias-show",
        "options": f"level {header.level}",
        "ptx": highlighted("\n".join(ptx)) if ptx else [],
        "remarks": [],
        "resources": [],
        "occupancy": [],
        "max_warps": 0,
        **states(rows, pictures),
        **(_code(*coded) if coded is not None else {"code": [], "blocks": [], "edges": []}),
    }
    return page(html.unescape(data["name"]), data).decode()


def _code(header: Header, units: Sequence[Unit]) -> dict[str, Any]:
    """`code`, `blocks` and `edges` as the report has them; addresses are those of the functions one after the other."""
    functions = [f for u in units for f in u.functions]
    why = [origin for u in units for origin in origins([Picture("schedule", "", picture(u, None))], u)]
    insts: list[Inst] = []
    firsts: dict[int, str] = {}
    goals: dict[int, list[int]] = {}
    for f in functions:
        starts = {}
        for b in f.blocks:
            starts[b.id] = len(insts)
            firsts.setdefault(len(insts), f".L{b.id}" if b is not f.blocks[0] else f.name)
            insts += b.insts
        at = starts[f.blocks[0].id] if f.blocks else len(insts)
        goals |= {at + n: [starts[t] for t in jump_targets(i)] for n, i in enumerate(insts[at:]) if jump_targets(i)}
    parts = pieces(insts, goals, list(firsts))
    physical = header.level != "ori"
    alive = (
        [[of_file(x.occupied, k).bit_count() for k in ("R", "UR", "P")] for x in life_ranges(insts, parts)]
        if physical
        else []
    )
    vregs = [f.vregs if not physical else None for f in functions for b in f.blocks for _ in b.insts]
    code = []
    for n, i in enumerate(insts):
        line, reason = why[n] if n < len(why) else (i.line, "")
        text = _BEHIND.sub("", print_inst(i, vregs[n]))
        code.append([16 * n, text, line, list(i.ctl or ()), reason, *(alive[n] if physical else (0, 0, 0))])
    return {
        "code": code,
        "blocks": [[p.first, p.end, firsts.get(p.first, "")] for p in parts],
        "edges": [[k, to, int(taken)] for k, p in enumerate(parts) for to, taken in p.edges],
    }
