"""Derive issue distances from ptxas's output and compare them with the hazard tables.

    python -m tests.schedule.probe_latency --sm 90 [--chains] [--kernels] [CUBIN ...]

Every pair of instructions of a basic block that touch the same register gives a distance: the sum of the stall counts
between them. The smallest distance per table cell is an upper bound of the true latency. Only pairs without a
scoreboard wait between them count, because the code does not show how long a wait takes. ``below``: ptxas goes below
the table (the table is too careful, or two things share a cell). ``above``: never seen so close. Chains are PTX kernels
of two dependent operations with nothing between them; ``--kernels`` adds the repository's test kernels.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.flow import is_terminator
from ir_format.hazards import Access, file_of, hazards
from ir_format.hazards.model import B0
from ir_format.model import Imm, Inst
from tests import oracle

Key = tuple[str, str, str, str]  # kind, file, earlier, later
REACH = 80


class Seen:
    """Smallest distances per cell, with an example, and how -O3 uses scoreboards per class."""

    def __init__(self) -> None:
        self.least: dict[Key, tuple[int, str]] = {}
        self.unknown: dict[str, int] = {}
        self.tags: dict[tuple[str, str], set[str]] = {}
        self.stalls: dict[str, tuple[int, int]] = {}

    def note(self, key: Key, cycles: int, sm: int, before: Inst, inst: Inst) -> None:
        """One distance."""
        old = self.least.get(key)
        if old is None or cycles < old[0]:
            self.least[key] = (cycles, f"{_text(sm, before)} -> {_text(sm, inst)}")


def text_sections(cubin: Path) -> list[tuple[str, list[int]]]:
    """Name and instruction words of every code section."""
    out = []
    with open(cubin, "rb") as f:
        for s in ELFFile(f).iter_sections():
            if s.name.startswith(".text."):
                data = s.data()
                out.append((s.name[6:], [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]))
    return out


def measure(words: list[int], sm: int, seen: Seen) -> None:
    """Add the distances of one function's code."""
    t = isa.target(sm)
    h = hazards(sm)
    insts: list[Inst | None] = []
    leaders = {0}
    for n, word in enumerate(words):
        inst = t.decode(word, n * 16)
        insts.append(inst if isinstance(inst, Inst) else None)
        if isinstance(inst, Inst):
            if is_terminator(inst) or inst.op in ("CALL", "BSYNC"):
                leaders.add(n + 1)
            leaders.update(o.value // 16 for o in inst.srcs if type(o) is Imm and inst.op in ("BRA", "BSSY", "CALL"))
        else:
            leaders.add(n + 1)
    recent: list[tuple[Inst, Access, int]] = []
    clock = 0
    for n, got in enumerate(insts):
        if n in leaders:
            recent = []
        if got is None or got.ctl is None:
            recent = []
            continue
        try:
            a = h.access(got)
        except (CompileError, KeyError) as e:
            seen.unknown[str(e)] = seen.unknown.get(str(e), 0) + 1
            recent = []
            continue
        c = got.ctl
        stall, count = seen.stalls.get(got.op, (99, 0))
        seen.stalls[got.op] = (min(stall, c.stall or 16), count + 1)
        tag = ("W" if c.wr != 7 else "") + ("R" if c.rd != 7 else "")
        seen.tags.setdefault((a.klass, tag), set()).add(got.op)
        if c.wait:
            recent = []
        _pairs(h.sm, recent, got, a, clock, seen)
        recent.append((got, a, clock))
        clock += c.stall
        if c.stall == 0:
            recent = []
        recent = [e for e in recent if clock - e[2] < REACH]


def _pairs(sm: int, recent: list[tuple[Inst, Access, int]], inst: Inst, a: Access, clock: int, seen: Seen) -> None:
    for cell, role, _ in a.reads:
        for before, first, at in reversed(recent):
            if first.write_mask >> cell & 1:
                if not first.board_w:
                    for c, name, _ in first.writes:
                        if c == cell:
                            seen.note(("raw", file_of(cell), name, role), clock - at, sm, before, inst)
                if not first.guarded:
                    break
    for cell, _, group in a.writes:
        if cell >= B0:
            continue
        for before, first, at in reversed(recent):
            if first.write_mask >> cell & 1 and not first.board_w:
                for c, name, _ in first.writes:
                    if c == cell:
                        seen.note(
                            ("waw", file_of(cell), name + ("@" if first.guarded else ""), group),
                            clock - at,
                            sm,
                            before,
                            inst,
                        )
            if first.read_mask >> cell & 1 and not (first.board_r and first.late >> cell & 1):
                for c, _, klass in first.reads:
                    if c == cell:
                        seen.note(("war", file_of(cell), klass, group), clock - at, sm, before, inst)
            if first.write_mask >> cell & 1 and not first.guarded:
                break


def _text(sm: int, inst: Inst) -> str:
    assert inst.ctl is not None
    try:
        text = isa.target(sm).format(inst)
    except CompileError:
        text = ".".join((inst.op, *inst.mods))
    return f"{text} [{inst.ctl.stall}]"


def compare(seen: Seen, sm: int, every: bool = False) -> list[tuple[str, Key, int, int, str, str]]:
    """(verdict, cell, smallest distance seen, table, provenance, example) for the cells that differ (or all)."""
    h = hazards(sm)
    out = []
    for key, (cycles, text) in sorted(seen.least.items()):
        kind, file, earlier, later = key
        cell = h.cell(kind, file, earlier.rstrip("@"), later, earlier.endswith("@"))
        verdict = "equal" if cycles == cell.cycles else "below" if cycles < cell.cycles else "above"
        if every or verdict == "below" or (verdict == "above" and cell.cycles > 1 and kind == "raw"):
            out.append((verdict, key, cycles, cell.cycles, cell.source, text))
    return out


#: name -> (destination type, operand types, PTX); ``%d`` destination, ``%a`` the dependent operand, ``%b`` a free one.
CHAIN_OPS = {
    "add": ("b32", "b32", "add.u32 %d, %a, %b;"),
    "and": ("b32", "b32", "and.b32 %d, %a, %b;"),
    "shl": ("b32", "b32", "shl.b32 %d, %a, 3;"),
    "mad": ("b32", "b32", "mad.lo.u32 %d, %a, %b, 7;"),
    "mul": ("b32", "b32", "mul.lo.u32 %d, %a, %b;"),
    "hi": ("b32", "b32", "mul.hi.u32 %d, %a, %b;"),
    "min": ("b32", "b32", "min.s32 %d, %a, %b;"),
    "abs": ("b32", "b32", "abs.s32 %d, %a;"),
    "fadd": ("f32", "f32", "add.f32 %d, %a, %b;"),
    "ffma": ("f32", "f32", "fma.rn.f32 %d, %a, %b, %b;"),
    "fmin": ("f32", "f32", "min.f32 %d, %a, %b;"),
    "prmt": ("b32", "b32", "prmt.b32 %d, %a, %b, 0x2140;"),
    "popc": ("b32", "b32", "popc.b32 %d, %a;"),
    "rcp": ("f32", "f32", "rcp.approx.ftz.f32 %d, %a;"),
    "wide": ("b64", "b32", "mul.wide.u32 %d, %a, %b;"),
    "madw": ("b64", "b64", "{ .reg .b32 t; cvt.u32.u64 t, %a; mad.wide.u32 %d, t, 5, %a; }"),
    "add64": ("b64", "b64", "add.u64 %d, %a, %b;"),
    "mul64": ("b64", "b64", "mul.lo.u64 %d, %a, %b;"),
    "dadd": ("f64", "f64", "add.f64 %d, %a, %b;"),
    "dfma": ("f64", "f64", "fma.rn.f64 %d, %a, %b, %b;"),
    "hfma": ("b32", "b32", "fma.rn.f16x2 %d, %a, %b, %b;"),
    "hadd": ("b32", "b32", "add.f16x2 %d, %a, %b;"),
    "cvtf": ("f32", "b32", "cvt.rn.f32.u32 %d, %a;"),
    "cvti": ("b32", "f32", "cvt.rzi.s32.f32 %d, %a;"),
    "sel": ("b32", "b32", "{ .reg .pred t; setp.gt.u32 t, %a, %b; selp.u32 %d, %b, 3, t; }"),
    "fsel": ("f32", "f32", "{ .reg .pred t; setp.gt.f32 t, %a, %b; selp.f32 %d, %b, 0f3F800000, t; }"),
    "guard": ("b32", "b32", "{ .reg .pred t; setp.gt.u32 t, %a, %b; mov.u32 %d, %b; @t add.u32 %d, %b, 9; }"),
    "two": (
        "b32",
        "b32",
        "{ .reg .pred t, u; setp.gt.u32 t, %a, %b; setp.lt.and.u32 u, %b, 5, t; selp.u32 %d, %b, 3, u; }",
    ),
    "vote": ("b32", "b32", "{ .reg .pred t; setp.gt.u32 t, %a, %b; vote.sync.ballot.b32 %d, t, -1; }"),
    "shfl": ("b32", "b32", "shfl.sync.bfly.b32 %d, %a, 1, 31, -1;"),
    "lds": ("b32", "b32", "ld.shared.u32 %d, [%a];"),
    "ldg": ("b32", "b64", "ld.global.u32 %d, [%a];"),
    "dp4a": ("b32", "b32", "dp4a.u32.u32 %d, %a, %b, 9;"),
    "bfe": ("b32", "b32", "bfe.u32 %d, %a, 3, 7;"),
    "lop": ("b32", "b32", "lop3.b32 %d, %a, %b, 7, 0x96;"),
}
_LETTER = {"b32": "r", "f32": "f", "b64": "d", "f64": "g"}
_BITS = {"b32": 32, "f32": 32, "b64": 64, "f64": 64}


def chain_kernels(names: Iterable[str] = CHAIN_OPS) -> list[str]:
    """One kernel per pair of operations, the second of which reads the first's result."""
    out = []
    names = list(names)
    for first, second in itertools.product(names, names):
        d1, a1, op1 = CHAIN_OPS[first]
        d2, a2, op2 = CHAIN_OPS[second]
        body = [
            f"ld.param.{a1} a, [p+8];",
            f"ld.param.{a1} b, [p+16];",
            f"ld.param.{a2} c, [p+24];",
            "ld.param.u64 o, [p];",
        ]
        body.append(op1.replace("%d", "x").replace("%a", "a").replace("%b", "b"))
        carry = "x"
        if d1 != a2:
            if _BITS[d1] == _BITS[a2]:
                body.append(f"mov.b{_BITS[d1]} y, x;")
            elif _BITS[a2] == 64:
                body.append(
                    "mov.b64 y, {x, x};" if d1 == "b32" else "{ .reg .b32 z; mov.b32 z, x; mov.b64 y, {z, z}; }"
                )
            else:
                body.append(
                    "{ .reg .b32 z; mov.b64 {z, y}, x; }"
                    if a2 == "b32"
                    else "{ .reg .b32 z, w; mov.b64 {z, w}, x; mov.b32 y, w; }"
                )
            carry = "y"
        body.append(op2.replace("%d", "z").replace("%a", carry).replace("%b", "c"))
        body.append(f"st.global.{d2} [o], z;")
        declare = f".reg .{a1} a, b; .reg .{a2} c, y; .reg .{d1} x; .reg .{d2} z; .reg .b64 o;"
        out.append(
            f".visible .entry k_{first}_{second}(.param .align 8 .b8 p[32]) {{ {declare} {' '.join(body)} ret; }}"
        )
    return out


def compile_chains(sm: int, per_file: int = 200, names: Iterable[str] = CHAIN_OPS) -> list[Path]:
    """ptxas's cubins of the chains."""
    kernels = chain_kernels(names)
    out = []
    for n in range(0, len(kernels), per_file):
        head = f".version {'9.4' if sm == 107 else '9.0'}\n.target sm_{sm}\n.address_size 64\n"
        got = oracle.compile_ptx(head + "\n".join(kernels[n : n + per_file]), str(sm), tool=oracle.tool_for(sm))
        if isinstance(got, oracle.ToolError):
            raise SystemExit(str(got)[:2000])
        out.append(got)
    return out


def kernel_cubins(sm: int) -> list[Path]:
    """ptxas's cubins of the repository's test kernels."""
    root = Path(__file__).resolve().parents[1] / "kernels"
    folders = [int(p.name[3:]) for p in (root / "ptx").iterdir() if p.name.startswith("sm_")]
    near = max(f for f in folders if f <= sm)
    out = []
    for ptx in [*sorted((root / "ptx" / f"sm_{near}").glob("*.ptx")), *sorted((root / "hand").glob("*.ptx"))]:
        got = oracle.run_ptxas(ptx, str(sm), tool=oracle.tool_for(sm))
        if not isinstance(got, oracle.ToolError):
            out.append(got)
    return out


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sm", type=int, default=90)
    parser.add_argument("--chains", action="store_true")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--all", action="store_true", help="print equal cells too")
    parser.add_argument("--tags", action="store_true", help="print scoreboard use and least stalls")
    parser.add_argument("cubins", nargs="*", type=Path)
    args = parser.parse_args()
    cubins = [
        *args.cubins,
        *(compile_chains(args.sm) if args.chains else ()),
        *(kernel_cubins(args.sm) if args.kernels else ()),
    ]
    seen = Seen()
    for cubin in cubins:
        for _, words in text_sections(cubin):
            measure(words, args.sm, seen)
    for verdict, key, cycles, table, source, text in compare(seen, args.sm, args.all):
        print(f"{verdict:5} {' '.join(key):34} seen {cycles:2} table {table:2} {source:10} {text}")
    for text, count in sorted(seen.unknown.items()):
        print(f"no data ({count}): {text}")
    if args.tags:
        for (klass, tag), ops in sorted(seen.tags.items()):
            print(f"{klass:8} {tag or '-':3} {' '.join(sorted(ops))}")
        print({op: stall for op, (stall, _) in sorted(seen.stalls.items())})


if __name__ == "__main__":
    main()
