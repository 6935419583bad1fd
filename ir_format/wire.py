"""The records of the Ori stream: wire values to the typed model and back.

docs/stream.md describes every field for readers in other languages. :mod:`ir_format.framing` reads and writes the
records; its functions can be called from here too. Nothing that is read is trusted: each field is checked, and every
fault is a :class:`StreamError`.

Cost: an operand is a tuple on the wire and a NamedTuple in memory; a per-function cache validates each distinct operand
once.
"""

from __future__ import annotations

from collections.abc import Iterable

from ir_format.diag import StreamError
from ir_format.framing import MAGIC as MAGIC
from ir_format.framing import VERSION as VERSION
from ir_format.framing import Wire, fail
from ir_format.framing import Writer as Writer
from ir_format.framing import frames as frames
from ir_format.framing import records as records
from ir_format.framing import unpack as unpack
from ir_format.model import (
    LEVELS,
    AttrValue,
    Block,
    Code,
    Const,
    Ctl,
    Function,
    Header,
    Imm,
    Inst,
    Label,
    Mem,
    Module,
    Name,
    Operand,
    Param,
    Reg,
    Reloc,
    Sym,
    Unit,
    Var,
    VReg,
)
from ir_format.target import FRAME_MAX, targets
from ir_format.typed import Any

_REGS = {"R": 255, "UR": 255, "P": 7, "UP": 7, "B": 16}  # physical registers per file: the highest number is below this
_MODS_OK = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-+{,}"
)  # braces: sets of scoreboards


# ------------------------------------------------------------------ checked scalars


def _int(x: Wire, lo: int, hi: int, what: str) -> int:
    if type(x) is not int or not lo <= x <= hi:
        raise fail(f"{what} ({lo}..{hi})", x)
    return x


def _str(x: Wire, what: str) -> str:
    if type(x) is not str:
        raise fail(what, x)
    return x


def _seq(x: Wire, what: str, n: int = -1) -> Wire:
    if type(x) is not tuple or (n >= 0 and len(x) != n):
        raise fail(f"{what}: a list" + (f" of {n}" if n >= 0 else ""), x)
    return x


def _map(x: Wire, what: str) -> dict[str, Wire]:
    if type(x) is not dict:
        raise fail(f"{what}: a map", x)
    for k in x:
        if type(k) is not str:
            raise fail(f"{what}: string keys", k)
    return x


def _attr(x: Wire, depth: int = 0, most: int = 4) -> AttrValue:
    if type(x) is int or type(x) is str:
        return x
    if type(x) is tuple and depth < most:
        return tuple(_attr(e, depth + 1, most) for e in x)
    raise fail("an attribute value", x)


def _attrs(x: Wire, what: str) -> dict[str, AttrValue]:
    return {k: _attr(v) for k, v in _map(x, what).items()}


def _sorted(d: dict[str, Any]) -> dict[str, Any]:
    return {k: d[k] for k in sorted(d)}


# ------------------------------------------------------------------ operands


class _Operands(dict[Any, Any]):
    """Raw tuple -> checked operand. One per function, so that virtual register bounds are checked once an operand."""

    def __init__(self, vregs: list[VReg] | None, blocks: frozenset[int]) -> None:
        self.vregs = vregs  # None from level `allocated` on
        self.blocks = blocks

    def __missing__(self, t: Wire) -> Operand:
        op = self.check(t)
        self[t] = op
        return op

    def check(self, t: Wire) -> Operand:
        if type(t) is not tuple or not t or type(t[0]) is not str:
            raise fail("an operand", t)
        tag = t[0]
        if tag in _REGS:
            return self.reg(t)
        if tag == "I" and len(t) == 6:
            return Imm(
                "I",
                _int(t[1], -(1 << 63), (1 << 64) - 1, "immediate"),
                _str(t[2], "symbol"),
                _str(t[3], "fmt"),
                _int(t[4], 0, 15, "flags"),
                _mod(t[5]),
            )
        if tag == "C" and len(t) == 8:
            index = None if t[4] is None else self.reg(t[4])
            return Const(
                "C",
                _int(t[1], 0, 31, "constant bank"),
                _int(t[2], -(1 << 16), (1 << 17), "constant offset"),
                _int(t[3], 1, 4, "constant width"),
                index,
                _int(t[5], 0, 15, "flags"),
                _str(t[6], "symbol"),
                _mod(t[7]),
            )
        if tag == "M" and len(t) == 6:
            regs = [None if r is None else self.reg(r) for r in (t[1], t[2], t[4])]
            return Mem(
                "M",
                regs[0],
                regs[1],
                _int(t[3], -(1 << 31), (1 << 32) - 1, "memory offset"),
                regs[2],
                _str(t[5], "symbol"),
            )
        if tag == "L" and len(t) == 2:
            if type(t[1]) is not int or t[1] not in self.blocks:
                raise fail("the id of a block", t[1])
            return Label("L", t[1])
        if tag == "S" and len(t) == 3:
            return Sym("S", _str(t[1], "symbol"), _int(t[2], -(1 << 31), 1 << 31, "addend"))
        if tag == "N" and len(t) == 2:
            return Name("N", _mod(t[1]))
        raise fail("an operand", t)

    def reg(self, t: Wire) -> Reg:
        if type(t) is not tuple or len(t) != 6 or type(t[0]) is not str or t[0] not in _REGS:
            raise fail("a register operand", t)
        num = _int(t[1], -1, 1 << 24, "register number")
        sub = _int(t[2], 0, 255, "register component")
        width = _int(t[3], 1, 255, "register width")
        flags = _int(t[4], 0, 15, "operand flags")
        if num >= 0:
            if self.vregs is not None:
                if num >= len(self.vregs) or self.vregs[num].file != t[0] or sub + width > self.vregs[num].width:
                    raise fail("a register of the function", t)
            elif num + width > _REGS[t[0]] or sub:
                raise fail("a physical register", t)
        return Reg(t[0], num, sub, width, flags, _mod(t[5]))


def _mod(x: Wire) -> str:
    if type(x) is not str or len(x) > 64 or not _MODS_OK.issuperset(x):
        raise fail("a modifier", x)
    return x


class _Heads(dict[Any, Any]):
    """``(op, mod, ...)`` -> (op, mods)."""

    def __missing__(self, t: Wire) -> tuple[str, tuple[str, ...]]:
        if type(t) is not tuple or not t or len(t) > 24:
            raise fail("an opcode", t)
        head = tuple(_mod(m) for m in t)
        self[t] = (head[0], head[1:])
        return head[0], head[1:]


class _Ctls(dict[Any, Any]):
    def __missing__(self, t: Wire) -> Ctl:
        _seq(t, "control word", 5)
        lim = (15, 1, 7, 7, 63)
        ctl = Ctl(*(_int(v, 0, m, "control field") for v, m in zip(t, lim, strict=True)))
        self[t] = ctl
        return ctl


# ------------------------------------------------------------------ instructions and functions


def inst_to_wire(i: Inst) -> Wire:
    """``[[op, mod...], dsts, srcs, guard, line, loc, ctl, uses, defs, attrs]``."""
    return (
        (i.op, *i.mods),
        i.dsts,
        i.srcs,
        i.guard,
        i.line,
        i.loc,
        i.ctl,
        i.uses,
        i.defs,
        None if not i.attrs else _sorted(i.attrs),
    )


def _insts_from_wire(raw: Wire, ops: _Operands, heads: _Heads, ctls: _Ctls, out: list[Inst]) -> None:
    """Check and append instructions; where it fails, ``out`` holds those before."""
    get = ops.__getitem__
    add = out.append
    for rec in raw:
        if type(rec) is not tuple or len(rec) != 10:
            raise fail("an instruction", rec)
        head, dsts, srcs, guard, line, loc, ctl, uses, defs, attrs = rec
        if type(dsts) is not tuple or type(srcs) is not tuple or type(uses) is not tuple or type(defs) is not tuple:
            raise fail("operand lists", rec)
        op, mods = heads[head]
        if guard is not None:
            guard = ops.reg(guard) if guard not in ops else ops[guard]
            if type(guard) is not Reg or guard.file not in ("P", "UP"):
                raise fail("a guard predicate", guard)
        if type(line) is not int or type(loc) is not int or line < 0 or loc < -1:
            raise fail("a line and a source position", (line, loc))
        add(
            Inst(
                op,
                mods,
                tuple(map(get, dsts)) if dsts else (),
                tuple(map(get, srcs)) if srcs else (),
                guard,
                line,
                loc,
                None if ctl is None else ctls[ctl],
                tuple(map(get, uses)) if uses else (),
                tuple(map(get, defs)) if defs else (),
                None if attrs is None else _attrs(attrs, "instruction attributes"),
            )
        )


def function_to_wire(f: Function) -> Wire:
    """``[name, kind, frame, vregs, locs, regs, spills, attrs, blocks]``; a block is ``[id, depth, instructions]``."""
    blocks = [(b.id, b.depth, [inst_to_wire(i) for i in b.insts]) for b in f.blocks]
    return (f.name, f.kind, f.frame, f.vregs, f.locs, _sorted(f.regs), f.spills, _sorted(f.attrs), blocks)


def function_from_wire(x: Wire, level: str) -> Function:
    """Check and build one function; ``level`` decides whether register numbers are virtual or physical."""
    name, kind, frame, vregs, locs, regs, spills, attrs, blocks = _seq(x, "function", 9)
    f = Function(_str(name, "function name"), _str(kind, "function kind"))
    if kind not in ("entry", "func", "helper"):
        raise fail("a function kind", kind)
    f.frame = _int(frame, 0, FRAME_MAX, "frame size")
    for v in _seq(vregs, "virtual registers"):
        file, width, align, fixed, uniform, vname = _seq(v, "virtual register", 6)
        if file not in _REGS:
            raise fail("a register file", file)
        _int(width, 1, 255, "register width")
        _int(align, 1, 64, "register alignment")
        f.vregs.append(
            VReg(
                file,
                width,
                align,
                _int(fixed, -1, 255, "fixed register"),
                _int(uniform, 0, 1, "uniform"),
                _str(vname, "register name"),
            )
        )
    for p in _seq(locs, "source positions"):
        a, b, c, d, e = _seq(p, "source position", 5)
        f.locs.append(
            (
                _int(a, 0, 1 << 31, "file"),
                _int(b, 0, 1 << 32, "line"),
                _int(c, 0, 1 << 32, "column"),
                _int(d, -1, 1 << 31, "inlined-at"),
                _str(e, "function"),
            )
        )
    f.regs = {k: _int(v, 0, 256, "register count") for k, v in _map(regs, "register counts").items()}
    st, ld = _seq(spills, "spill bytes", 2)
    f.spills = (_int(st, 0, 1 << 31, "spill bytes"), _int(ld, 0, 1 << 31, "spill bytes"))
    f.attrs = _attrs(attrs, "function attributes")
    ids: set[int] = set()
    for b in _seq(blocks, "blocks"):
        bid, _, _ = _seq(b, "block", 3)
        if _int(bid, 0, 1 << 31, "block id") in ids:
            raise fail("a new block id", bid)
        ids.add(bid)
    ops = _Operands(f.vregs if level == "ori" else None, frozenset(ids))
    heads, ctls = _Heads(), _Ctls()
    read: list[Inst] = []
    bid = 0
    try:
        for bid, depth, insts in blocks:
            read = []
            blk = Block(bid, read, _int(depth, 0, 1 << 16, "loop depth"))
            _insts_from_wire(_seq(insts, "instructions"), ops, heads, ctls, read)
            f.blocks.append(blk)
    except TypeError as e:  # a map where a list must be can't be looked up
        raise StreamError(f"function {name}, block .L{bid}, instruction {len(read)}: ori stream: {e}") from None
    except StreamError as e:
        raise StreamError(f"function {name}, block .L{bid}, instruction {len(read)}: {e}") from None
    return f


# ------------------------------------------------------------------ units, module, header


def unit_to_wire(u: Unit) -> dict[str, Wire]:
    """A map with sorted keys."""
    return {
        "attrs": _sorted(u.attrs),
        "code": u.code,
        "diags": u.diags,
        "functions": [function_to_wire(f) for f in u.functions],
        "kind": u.kind,
        "linkage": u.linkage,
        "name": u.name,
        "params": u.params,
        "sections": _sorted(u.sections),
        "symbols": u.symbols,
    }


_UNIT_KEYS = ("attrs", "code", "diags", "functions", "kind", "linkage", "name", "params", "sections", "symbols")


def _code(x: Wire) -> Code:
    name, kind, data, relocs, lines, marks, regs, frame = _seq(x, "code", 8)
    if type(data) is not bytes or len(data) % 16:
        raise fail("machine code (16 bytes an instruction)", data)
    end = len(data)
    rel = []
    for r in _seq(relocs, "relocations"):
        off, rk, sym, add = _seq(r, "relocation", 4)
        rel.append(
            Reloc(
                _int(off, 0, end - 16, "relocation offset"),
                _str(rk, "relocation kind"),
                _str(sym, "symbol"),
                _int(add, -(1 << 63), 1 << 63, "addend"),
            )
        )
    lns = [
        tuple(_int(v, -1, 1 << 40, "line table") for v in _seq(t, "line entry", 3)) for t in _seq(lines, "line table")
    ]
    mks = []
    for m in _seq(marks, "marks"):
        mk, off, val = _seq(m, "mark", 3)
        mks.append(
            (_str(mk, "mark kind"), _int(off, 0, end, "mark offset"), _int(val, -(1 << 63), 1 << 63, "mark value"))
        )
    return Code(
        _str(name, "name"),
        _str(kind, "kind"),
        data,
        tuple(rel),
        tuple(lns),  # type: ignore[arg-type]
        tuple(mks),
        _int(regs, 0, 256, "registers"),
        _int(frame, 0, FRAME_MAX, "frame"),
    )


def _diags(x: Wire) -> list[tuple[str, str, int]]:
    out = []
    for d in _seq(x, "diagnostics"):
        sev, msg, line = _seq(d, "diagnostic", 3)
        if sev not in ("info", "warning", "error", "fatal"):
            raise fail("a severity", sev)
        out.append((sev, _str(msg, "message"), _int(line, 0, 1 << 40, "line")))
    return out


def unit_from_wire(x: Wire, level: str) -> Unit:
    """Check and build a unit of level ``ori`` or later."""
    m = _map(x, "unit")
    if tuple(sorted(m)) != _UNIT_KEYS:
        raise fail("the keys of a unit", sorted(m))
    u = Unit(_str(m["name"], "unit name"), _str(m["kind"], "unit kind"), _str(m["linkage"], "linkage"))
    u.attrs = _attrs(m["attrs"], "unit attributes")
    u.diags = _diags(m["diags"])
    u.functions = [function_from_wire(f, level) for f in _seq(m["functions"], "functions")]
    for p in _seq(m["params"], "parameters"):
        n, off, size, align, space, pa = _seq(p, "parameter", 6)
        u.params.append(
            Param(
                _str(n, "name"),
                _int(off, 0, 1 << 16, "offset"),
                _int(size, 0, 1 << 16, "size"),
                _int(align, 1, 1 << 16, "align"),
                _str(space, "space"),
                _int(pa, 0, 1 << 31, "align"),
            )
        )
    u.code = [_code(c) for c in _seq(m["code"], "code")]
    u.symbols = [_str(s, "symbol") for s in _seq(m["symbols"], "symbols")]
    u.sections = {k: _attr(v, 0, 12) for k, v in _map(m["sections"], "sections").items()}
    return u


def module_to_wire(m: Module) -> dict[str, Wire]:
    """A map with sorted keys."""
    return {
        "attrs": _sorted(m.attrs),
        "externs": m.externs,
        "files": m.files,
        "sections": _sorted(m.sections),
        "units": m.units,
        "vars": m.vars,
    }


def module_from_wire(x: Wire) -> Module:
    """Check and build the module record of level ``ori`` or later."""
    d = _map(x, "module")
    if tuple(sorted(d)) != ("attrs", "externs", "files", "sections", "units", "vars"):
        raise fail("the keys of a module", sorted(d))
    m = Module()
    m.attrs = _attrs(d["attrs"], "module attributes")
    m.externs = [_str(s, "external function") for s in _seq(d["externs"], "externals")]
    m.units = [_str(s, "unit name") for s in _seq(d["units"], "unit names")]
    for fl in _seq(d["files"], "files"):
        idx, fname = _seq(fl, "file", 2)
        m.files.append((_int(idx, 0, 1 << 31, "file index"), _str(fname, "file name")))
    m.sections = {k: _attr(v, 0, 12) for k, v in _map(d["sections"], "sections").items()}
    for v in _seq(d["vars"], "variables"):
        name, space, size, align, init, relocs, linkage, attrs = _seq(v, "variable", 8)
        _int(size, 0, 1 << 40, "variable size")
        if type(init) is not bytes or len(init) > size:
            raise fail("initial bytes", init)
        rel = []
        for r in _seq(relocs, "relocations"):
            off, sym, add, gen = _seq(r, "relocation", 4)
            rel.append(
                (
                    _int(off, 0, size, "offset"),
                    _str(sym, "symbol"),
                    _int(add, -(1 << 63), 1 << 63, "addend"),
                    _int(gen, 0, 19, "form of an address"),
                )
            )
        m.vars.append(
            Var(
                _str(name, "name"),
                _str(space, "space"),
                size,
                _int(align, 1, 1 << 31, "alignment"),
                init,
                tuple(rel),
                _str(linkage, "linkage"),
                tuple(_str(a, "attribute") for a in _seq(attrs, "attributes")),
            )
        )
    return m


def header_to_wire(h: Header) -> dict[str, Wire]:
    """A map with sorted keys."""
    return {
        "level": h.level,
        "options": _sorted(h.options),
        "producers": h.producers,
        "ptx_target": h.ptx_target,
        "ptx_version": h.ptx_version,
        "source": h.source,
        "target": h.target,
        "version": VERSION,
    }


def header_from_wire(x: Wire) -> Header:
    """Check the first record: version, level, target."""
    d = _map(x, "header")
    if d.get("version") != VERSION:
        raise StreamError(
            f"ori stream: version {d.get('version')!r:.20} is not known here; this program reads version {VERSION}"
        )
    if tuple(sorted(d)) != (
        "level",
        "options",
        "producers",
        "ptx_target",
        "ptx_version",
        "source",
        "target",
        "version",
    ):
        raise fail("the keys of a header", sorted(d))
    if d["level"] not in LEVELS:
        raise fail("a level", d["level"])
    if _str(d["target"], "target") not in targets():
        raise fail("a target", d["target"])
    h = Header(d["level"], d["target"], _str(d["source"], "source"))
    h.ptx_target = _str(d["ptx_target"], "PTX target")
    h.ptx_version = _str(d["ptx_version"], "PTX version")
    h.options = _attrs(d["options"], "options")
    for p in _seq(d["producers"], "producers"):
        a, b = _seq(p, "producer", 2)
        h.producers.append((_str(a, "stage"), _str(b, "version")))
    return h


def stream_of(header: Header, module: Module, units: Iterable[Unit]) -> bytes:
    """The bytes of a whole stream at the header's level."""
    parts: list[bytes] = []
    writer = Writer(parts.append)
    writer.record(MAGIC, header_to_wire(header))
    writer.record("module", module_to_wire(module))
    for unit in units:
        writer.record("unit", unit_to_wire(unit))
    writer.end()
    return b"".join(parts)
