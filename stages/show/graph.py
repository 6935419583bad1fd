"""Pictures of a unit: DOT for Graphviz, and one self-contained HTML page."""

from __future__ import annotations

import html
import json

from ir_format.flow import build_cfg
from ir_format.model import Function, Unit
from ir_format.text import print_inst


def dot(unit: Unit, level: str) -> str:
    """One cluster per function, one box per block."""
    out = ["digraph orias {", '  node [shape=box fontname="monospace" fontsize=9];']
    for n, f in enumerate(unit.functions):
        cfg = build_cfg(f)
        out.append(f"  subgraph cluster_{n} {{ label={json.dumps(f.name)};")
        for pos, b in enumerate(f.blocks):
            lines = [f".L{b.id}", *_lines(f, pos, level)]
            text = "".join(line.replace("\\", "\\\\").replace('"', '\\"') + "\\l" for line in lines)
            out.append(f'    f{n}_{pos} [label="{text}"];')
        for pos, succs in enumerate(cfg.succs):
            out += [f"    f{n}_{pos} -> f{n}_{s};" for s in succs]
        out.append("  }")
    return "\n".join([*out, "}"]) + "\n"


def _lines(f: Function, pos: int, level: str) -> list[str]:
    vregs = f.vregs if level == "ori" else None
    return [print_inst(i, vregs) for i in f.blocks[pos].insts]


_STYLE = """
body { font: 13px monospace; margin: 1em; } .cols { display: flex; gap: 1.5em; align-items: flex-start; overflow-x:
auto; } h2 { font-size: 14px; margin: .2em 0; } .i { white-space: pre; cursor: pointer; padding: 0 .3em; } .b { color:
#777; margin-top: .4em; } .hit { background: #ffe28a; } .line { color: #999; display: inline-block; width: 4em; } """

# A click marks every instruction, in every column, that comes from the same PTX line.
_SCRIPT = """
document.body.addEventListener('click', e => { const i = e.target.closest('.i'); if (!i) return;
  document.querySelectorAll('.hit').forEach(x => x.classList.remove('hit'));
  if (i.dataset.line !== '0') document.querySelectorAll('.i[data-line="' + i.dataset.line + '"]').forEach(x =>
  x.classList.add('hit')); }); """


def page(columns: list[tuple[str, str, Unit | str]]) -> str:
    """HTML with one column per (title, level, unit): the same unit after several stages, side by side. At level `ptx`
    the column has text instead of a unit."""
    out = [f"<!doctype html><meta charset=utf-8><title>orias</title><style>{_STYLE}</style><body><div class=cols>"]
    for title, level, unit in columns:
        if isinstance(unit, str):
            out.append(
                f"<div><h2>{html.escape(title)}</h2>"
                + "".join(f"<div class=i data-line=0>{html.escape(line)}</div>" for line in unit.splitlines())
                + "</div>"
            )
            continue
        out.append(f"<div><h2>{html.escape(title)}: {html.escape(unit.name)}</h2>")
        for f in unit.functions:
            out.append(f"<h2>{html.escape(f.name)}</h2>")
            vregs = f.vregs if level == "ori" else None
            for b in f.blocks:
                out.append(f"<div class=b>.L{b.id} depth {b.depth}</div>")
                for i in b.insts:
                    text = html.escape(print_inst(i, vregs).split(" ; line", 1)[0])
                    ctl = (
                        html.escape(" " + print_inst(i, vregs).split(" ; ctl ", 1)[1].split(" ;")[0])
                        if i.ctl is not None
                        else ""
                    )
                    out.append(
                        f"<div class=i data-line={i.line}><span class=line>{i.line or ''}</span>{text}{ctl}</div>"
                    )
        out.append("</div>")
    return "".join(out) + f"</div><script>{_SCRIPT}</script></body>\n"
