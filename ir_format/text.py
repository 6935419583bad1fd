"""Text form of the levels `ori` to `encoded`, for reading, comparing and writing tests.
``parse_unit(print_unit(u, level)) == u``.

One line is one record; the first word says which. An instruction line is::

    @!p3 IADD3.X r5[1], PT, PT <- -r3[1], c[0x0][0x160], RZ, p1, !PT ; line 7 ; ctl S4 Y0 W7 R7 M000011

Operands: ``r5 ur5 p5 up5 b5`` are virtual, ``R5 UR5 P5 UP5 B5`` physical; ``RZ URZ PT UPT`` read zero or true.
``r5[1]`` is component 1 of ``r5``, ``r5[1:2]`` two components from 1; ``R4:2`` is the pair R4, R5. ``-`` negates,
``|x|`` is the magnitude, ``~`` or ``!`` inverts, ``.reuse`` and other suffixes follow. ``#0x10`` is an immediate;
``c[bank][r+0x8]:2`` a constant; ``desc[UR4][R2:2+UR6+0x10]`` an address; ``.L3`` a block; ``fn("f"+0)`` a code symbol;
``<SR_TID.X>`` a named operand. Symbols are in double quotes.
"""

from __future__ import annotations

import json
import re

from ir_format.diag import StreamError
from ir_format.model import (
    ABS,
    INV,
    NEG,
    REUSE,
    ZERO,
    AttrValue,
    Block,
    Code,
    Const,
    Ctl,
    Function,
    Imm,
    Inst,
    Label,
    Mem,
    Name,
    Operand,
    Param,
    Reg,
    Reloc,
    Sym,
    Unit,
    VReg,
)

_ZERO_NAMES = {"R": "RZ", "UR": "URZ", "P": "PT", "UP": "UPT", "B": "BZ"}
_ZERO_FILES = {v: k for k, v in _ZERO_NAMES.items()}


# ------------------------------------------------------------------ printing


def _flags(text: str, flags: int, file: str, mod: str) -> str:
    if flags & ABS:
        text = f"|{text}|"
    if flags & INV:
        text = ("!" if file in ("P", "UP") else "~") + text
    if flags & NEG:
        text = "-" + text
    if mod:
        text += "." + mod
    return text + ".reuse" if flags & REUSE else text


def _hex(n: int) -> str:
    return f"-{-n:#x}" if n < 0 else f"{n:#x}"


def print_reg(r: Reg, vregs: list[VReg] | None) -> str:
    """A register operand; ``vregs`` None from level `allocated` on."""
    if r.num == ZERO:
        text = _ZERO_NAMES[r.file] + (f":{r.width}" if r.width != 1 else "")
    elif vregs is None:
        text = f"{r.file}{r.num}" + (f":{r.width}" if r.width != 1 else "")
    else:
        text = f"{r.file.lower()}{r.num}"
        if r.sub or r.num >= len(vregs) or r.width != vregs[r.num].width:
            text += f"[{r.sub}]" if r.width == 1 else f"[{r.sub}:{r.width}]"
    return _flags(text, r.flags, r.file, r.mod)


def print_operand(o: Operand, vregs: list[VReg] | None) -> str:
    """Any operand."""
    if isinstance(o, Reg):
        return print_reg(o, vregs)
    if isinstance(o, Imm):
        body = f"{o.fmt}:{json.dumps(o.sym)}+{_hex(o.value)}" if o.sym or o.fmt else _hex(o.value)
        return _flags("#" + body, o.flags, "", o.mod)
    if isinstance(o, Const):
        parts = [print_reg(o.ireg, vregs)] if o.ireg is not None else []
        if o.sym:
            parts.append(json.dumps(o.sym))
        text = f"c[{o.bank:#x}][{'+'.join([*parts, _hex(o.offset)])}]" + (f":{o.width}" if o.width != 1 else "")
        return _flags(text, o.flags, "", o.mod)
    if isinstance(o, Mem):
        parts = [print_reg(r, vregs) for r in (o.base, o.ubase) if r is not None]
        if o.base is None and o.ubase is not None:
            parts.insert(0, "_")
        if o.sym:
            parts.append(json.dumps(o.sym))
        desc = f"desc[{print_reg(o.desc, vregs)}]" if o.desc is not None else ""
        return f"{desc}[{'+'.join([*parts, _hex(o.offset)])}]"
    if isinstance(o, Label):
        return f".L{o.block}"
    if isinstance(o, Sym):
        return f"fn({json.dumps(o.name)}+{_hex(o.addend)})"
    return f"<{o.name}>"


def _attr(v: AttrValue) -> str:
    if isinstance(v, int):
        return str(v)
    if isinstance(v, str):
        return json.dumps(v)
    return "(" + " ".join(_attr(e) for e in v) + ")"


def print_ctl(c: Ctl) -> str:
    """``S`` stall, ``Y`` yield bit, ``W`` write and ``R`` read scoreboard, ``M`` wait mask (SB5..SB0)."""
    return f"S{c.stall} Y{c.yield_} W{c.wr} R{c.rd} M{c.wait:06b}"


def print_inst(i: Inst, vregs: list[VReg] | None) -> str:
    """One instruction, without indentation."""
    guard = f"@{print_reg(i.guard, vregs)} " if i.guard is not None else ""
    dsts = ", ".join(print_operand(o, vregs) for o in i.dsts)
    srcs = ", ".join(print_operand(o, vregs) for o in i.srcs)
    text = guard + ".".join((i.op, *i.mods))
    if dsts:
        text += f" {dsts} <-"
    if srcs:
        text += f" {srcs}"
    for name, ops in (("uses", i.uses), ("defs", i.defs)):
        if ops:
            text += f" ; {name} " + ", ".join(print_operand(o, vregs) for o in ops)
    if i.line:
        text += f" ; line {i.line}"
    if i.loc >= 0:
        text += f" ; loc {i.loc}"
    if i.ctl is not None:
        text += f" ; ctl {print_ctl(i.ctl)}"
    for k in sorted(i.attrs or {}):
        text += f" ; attr {json.dumps(k)} {_attr((i.attrs or {})[k])}"
    return text


def print_function(f: Function, level: str) -> str:
    """One function with its blocks."""
    vregs = f.vregs if level == "ori" else None
    out = [f"function {json.dumps(f.name)} {f.kind} frame {f.frame} spills {f.spills[0]} {f.spills[1]}"]
    out += [f"  attr {json.dumps(k)} {_attr(f.attrs[k])}" for k in sorted(f.attrs)]
    out += [f"  regs {k} {f.regs[k]}" for k in sorted(f.regs)]
    out += [f"  loc {a} {b} {c} {d} {json.dumps(e)}" for a, b, c, d, e in f.locs]
    for n, v in enumerate(f.vregs):
        fixed = f" fixed {v.fixed}" if v.fixed >= 0 else ""
        out.append(
            f"  vreg {v.file.lower()}{n} {v.width} {v.align}{fixed}{' uniform' if v.uniform else ''} "
            f"{json.dumps(v.name)}"
        )
    for b in f.blocks:
        out.append(f"  block .L{b.id} depth {b.depth}")
        out += ["    " + print_inst(i, vregs) for i in b.insts]
    return "\n".join(out) + "\n"


def print_unit(u: Unit, level: str) -> str:
    """A whole unit."""
    out = [f"unit {json.dumps(u.name)} {u.kind} {u.linkage} level {level}"]
    out += [f"  attr {json.dumps(k)} {_attr(u.attrs[k])}" for k in sorted(u.attrs)]
    out += [
        f"  param {json.dumps(p.name)} {p.offset} {p.size} {p.align} {json.dumps(p.space)} {p.ptr_align}"
        for p in u.params
    ]
    out += [f"  symbol {json.dumps(s)}" for s in u.symbols]
    out += [f"  diag {s} {json.dumps(m)} {n}" for s, m, n in u.diags]
    out += [f"  section {json.dumps(k)} {_attr(u.sections[k])}" for k in sorted(u.sections)]
    text = "\n".join(out) + "\n" + "".join(print_function(f, level) for f in u.functions)
    return text + "".join(_print_code(c) for c in u.code)


def _print_code(c: Code) -> str:
    out = [f"code {json.dumps(c.name)} {c.kind} regs {c.regs} frame {c.frame}"]
    out += [f"  word {c.data[at : at + 16].hex()}" for at in range(0, len(c.data), 16)]
    out += [f"  reloc {r.offset} {r.kind} {json.dumps(r.symbol)} {r.addend}" for r in c.relocs]
    out += [f"  line {a} {b} {n}" for a, b, n in c.lines]
    out += [f"  mark {json.dumps(k)} {a} {b}" for k, a, b in c.marks]
    return "\n".join(out) + "\n"


# ------------------------------------------------------------------ parsing

_TOKEN = re.compile(
    r'\s*("(?:[^"\\]|\\.)*"|<-|<[^>\s]*>|fn\(|\.L\d+|[-+]?0x[0-9a-fA-F]+|[-+]?\d+|desc\[|'
    r"[A-Za-z_][\w]*|[@!~|#\[\]():,;.+<>-])"
)


class _Line:
    """A cursor over the tokens of one line."""

    def __init__(self, text: str, number: int) -> None:
        self.number = number
        self.toks: list[str] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            m = _TOKEN.match(text, at)
            if m is None:
                raise self.bad(f"can't read {text[at : at + 20]!r}")
            self.toks.append(m.group(1))
            at = m.end()
        self.at = 0

    def bad(self, why: str) -> StreamError:
        return StreamError(f"ori text, line {self.number}: {why}")

    @property
    def peek(self) -> str:
        return self.toks[self.at] if self.at < len(self.toks) else ""

    def next(self) -> str:
        t = self.peek
        if not t:
            raise self.bad("unexpected end of line")
        self.at += 1
        return t

    def take(self, t: str) -> bool:
        if self.peek == t:
            self.at += 1
            return True
        return False

    def expect(self, t: str) -> None:
        if not self.take(t):
            raise self.bad(f"expected {t!r}, found {self.peek!r}")

    def num(self) -> int:
        t = self.next()
        try:
            return int(t, 0)
        except ValueError:
            raise self.bad(f"expected a number, found {t!r}") from None

    def string(self) -> str:
        t = self.next()
        if not t.startswith('"'):
            raise self.bad(f"expected a quoted string, found {t!r}")
        value = json.loads(t)
        assert isinstance(value, str)
        return value

    def signed(self) -> int:
        """A number after an optional sign token."""
        if self.take("-"):
            return -self.num()
        self.take("+")
        return self.num()


_REG = re.compile(r"(UR|UP|R|P|B|ur|up|r|p|b)(\d+)$")


def _reg_body(ln: _Line, vregs: list[VReg] | None) -> Reg | None:
    t = ln.peek
    file = _ZERO_FILES.get(t)
    num = ZERO
    if file is None:
        m = _REG.match(t)
        if m is None:
            return None
        file, num = m.group(1).upper(), int(m.group(2))
        if m.group(1).islower() != (vregs is not None):
            raise ln.bad(f"register {t!r} does not belong to this level")
    ln.next()
    if num == ZERO or vregs is None:
        return Reg(file, num, 0, ln.num() if ln.take(":") else 1)
    if num >= len(vregs):
        raise ln.bad(f"no virtual register {num}")
    if ln.take("["):
        sub = ln.num()
        width = ln.num() if ln.take(":") else 1
        ln.expect("]")
        return Reg(file, num, sub, width)
    return Reg(file, num, 0, vregs[num].width)


def _reg(ln: _Line, vregs: list[VReg] | None) -> Reg:
    o = _operand(ln, vregs)
    if not isinstance(o, Reg):
        raise ln.bad("expected a register")
    return o


def _operand(ln: _Line, vregs: list[VReg] | None) -> Operand:
    flags = 0
    while ln.peek in ("-", "!", "~"):
        flags |= NEG if ln.next() == "-" else INV
    bar = ln.take("|")
    o = _plain(ln, vregs)
    if bar:
        ln.expect("|")
        flags |= ABS
    mod = ""
    while ln.peek == ".":
        ln.next()
        part = ln.next()
        if part == "reuse":
            flags |= REUSE
        else:
            mod = f"{mod}.{part}" if mod else part
    if flags or mod:
        if not isinstance(o, (Reg, Imm, Const)):
            raise ln.bad("this operand takes no sign or suffix")
        return o._replace(flags=flags, mod=mod)
    return o


def _plain(ln: _Line, vregs: list[VReg] | None) -> Operand:
    reg = _reg_body(ln, vregs)
    if reg is not None:
        return reg
    t = ln.next()
    if t == "#":
        return _imm(ln)
    if t == "c":
        ln.expect("[")
        bank = ln.num()
        ln.expect("]")
        ln.expect("[")
        regs, sym, offset = _sum(ln, vregs)
        width = ln.num() if ln.take(":") else 1
        return Const("C", bank, offset, width, regs[0] if regs else None, 0, sym)
    if t in ("[", "desc["):
        desc = None
        if t == "desc[":
            desc = _reg(ln, vregs)
            ln.expect("]")
            ln.expect("[")
        regs, sym, offset = _sum(ln, vregs)
        return Mem("M", regs[0] if regs else None, regs[1] if len(regs) > 1 else None, offset, desc, sym)
    if t.startswith(".L"):
        return Label("L", int(t[2:]))
    if t == "fn(":
        name = ln.string()
        addend = ln.signed()
        ln.expect(")")
        return Sym("S", name, addend)
    if t.startswith("<") and t.endswith(">"):
        return Name("N", t[1:-1])
    raise ln.bad(f"expected an operand, found {t!r}")


def _imm(ln: _Line) -> Imm:
    fmt = sym = ""
    if ln.peek == ":" or (ln.peek[:1].isalpha() and ln.peek[:1] != "0"):
        fmt = "" if ln.peek == ":" else ln.next()
        ln.expect(":")
        sym = ln.string()
    return Imm("I", ln.signed(), sym, fmt)


def _sum(ln: _Line, vregs: list[VReg] | None) -> tuple[list[Reg | None], str, int]:
    """``reg + reg + "symbol" + offset ]``."""
    regs: list[Reg | None] = []
    sym = ""
    offset = 0
    while not ln.take("]"):
        ln.take("+")
        if ln.peek.startswith('"'):
            sym = ln.string()
        elif ln.take("_"):
            regs.append(None)
        elif _REG.match(ln.peek) or ln.peek in _ZERO_FILES:
            regs.append(_reg(ln, vregs))
        else:
            offset = ln.signed()
    return regs, sym, offset


def _attr_value(ln: _Line) -> AttrValue:
    if ln.take("("):
        out: list[AttrValue] = []
        while not ln.take(")"):
            out.append(_attr_value(ln))
        return tuple(out)
    return ln.string() if ln.peek.startswith('"') else ln.signed()


def _operands(ln: _Line, vregs: list[VReg] | None) -> tuple[Operand, ...]:
    if ln.peek in ("", ";", "<-"):
        return ()
    out = [_operand(ln, vregs)]
    while ln.take(","):
        out.append(_operand(ln, vregs))
    return tuple(out)


def parse_inst(text: str, vregs: list[VReg] | None, number: int = 0) -> Inst:
    """One instruction line. Raises StreamError with the line number."""
    head, _, rest = text.strip().partition(" ") if not text.strip().startswith("@") else ("", "", text)
    guard = None
    if not head:
        gtext, _, rest = text.strip()[1:].partition(" ")
        guard = _reg(_Line(gtext, number), vregs)
        head, _, rest = rest.strip().partition(" ")
    parts = head.split(".")
    ln = _Line(rest, number)
    first = _operands(ln, vregs)
    inst = Inst(parts[0], tuple(parts[1:]), guard=guard)
    if ln.take("<-"):
        inst.dsts, inst.srcs = first, _operands(ln, vregs)
    else:
        inst.srcs = first
    while ln.take(";"):
        word = ln.next()
        if word == "uses":
            inst.uses = _operands(ln, vregs)
        elif word == "defs":
            inst.defs = _operands(ln, vregs)
        elif word == "line":
            inst.line = ln.num()
        elif word == "loc":
            inst.loc = ln.num()
        elif word == "attr":
            key = ln.string()
            inst.attrs = {**(inst.attrs or {}), key: _attr_value(ln)}
        elif word == "ctl":
            inst.ctl = parse_ctl(" ".join(ln.next() for _ in range(5)), ln)
        else:
            raise ln.bad(f"unknown field {word!r}")
    if ln.peek:
        raise ln.bad(f"unexpected {ln.peek!r}")
    return inst


def parse_ctl(text: str, ln: _Line) -> Ctl:
    """Read the output of :func:`print_ctl`."""
    m = re.match(r"S(\d+) Y([01]) W([0-7]) R([0-7]) M([01]{6})$", text)
    if m is None or int(m.group(1)) > 15:
        raise ln.bad(f"bad control word {text!r}")
    return Ctl(int(m.group(1)), int(m.group(2)), int(m.group(3)), int(m.group(4)), int(m.group(5), 2))


def parse_unit(text: str) -> tuple[Unit, str]:
    """(unit, level) from text. Raises a StreamError that names the line."""
    reader = _UnitReader()
    for number, raw in enumerate(text.splitlines(), 1):
        if raw.strip() and not raw.lstrip().startswith("//"):
            reader.line(raw, number)
    reader.finish_code()
    if reader.unit is None:
        raise StreamError("ori text: no unit")
    return reader.unit, reader.level


class _UnitReader:
    """Reads the text of a unit line by line."""

    def __init__(self) -> None:
        self.unit: Unit | None = None
        self.level = "ori"
        self.func: Function | None = None
        self.block: Block | None = None
        self.code: dict[str, list[object]] = {}
        self.code_head: tuple[str, str, int, int] | None = None

    def finish_code(self) -> None:
        """Add the code record that is being read to the unit."""
        if self.code_head is not None and self.unit is not None:
            name, kind, regs, frame = self.code_head
            code = self.code
            data = b"".join(code["word"])  # type: ignore[arg-type]
            relocs, lines, marks = tuple(code["reloc"]), tuple(code["line"]), tuple(code["mark"])
            self.unit.code.append(Code(name, kind, data, relocs, lines, marks, regs, frame))  # type: ignore[arg-type]
        self.code_head = None

    def line(self, raw: str, number: int) -> None:
        """Read one line that is not empty."""
        word = raw.split(None, 1)[0]
        if raw.startswith("    ") and self.block is not None and self.func is not None:
            vregs = self.func.vregs if self.level == "ori" else None
            self.block.insts.append(parse_inst(raw, vregs, number))
            return
        if self.code_head is not None and word == "word":
            try:
                self.code["word"].append(bytes.fromhex(raw.split()[1]))
            except (ValueError, IndexError):
                raise StreamError(f"ori text, line {number}: bad word") from None
            return
        ln = _Line(raw, number)
        ln.next()
        if word == "unit":
            self.unit = Unit(ln.string(), ln.next(), ln.next())
            ln.expect("level")
            self.level = ln.next()
        elif self.unit is None:
            raise ln.bad("a unit line must come first")
        else:
            self._record(self.unit, word, ln)

    def _record(self, unit: Unit, word: str, ln: _Line) -> None:
        """A record of the unit, or of the current function or code."""
        func = self.func
        if word == "function":
            self.func = func = Function(ln.string(), ln.next())
            ln.expect("frame")
            func.frame = ln.num()
            ln.expect("spills")
            func.spills = (ln.num(), ln.num())
            unit.functions.append(func)
            self.block = None
        elif word == "code":
            self.finish_code()
            name, kind = ln.string(), ln.next()
            ln.expect("regs")
            regs = ln.num()
            ln.expect("frame")
            self.code_head = (name, kind, regs, ln.num())
            self.code = {k: [] for k in ("word", "reloc", "line", "mark")}
        elif self.code_head is not None:
            _code_line(ln, word, self.code)
        elif word == "attr":
            key = ln.string()
            (func.attrs if func is not None else unit.attrs)[key] = _attr_value(ln)
        elif word == "param":
            unit.params.append(Param(ln.string(), ln.num(), ln.num(), ln.num(), ln.string(), ln.num()))
        elif word == "symbol":
            unit.symbols.append(ln.string())
        elif word == "diag":
            unit.diags.append((ln.next(), ln.string(), ln.num()))
        elif word == "section":
            key = ln.string()
            unit.sections[key] = _attr_value(ln)
        elif func is None:
            raise ln.bad(f"unknown record {word!r}")
        else:
            self._function_record(func, word, ln)

    def _function_record(self, func: Function, word: str, ln: _Line) -> None:
        if word == "regs":
            file = ln.next()
            func.regs[file] = ln.num()
        elif word == "loc":
            func.locs.append((ln.num(), ln.num(), ln.num(), ln.num(), ln.string()))
        elif word == "vreg":
            func.vregs.append(_vreg(ln, len(func.vregs)))
        elif word == "block":
            bid = int(ln.next()[2:])
            ln.expect("depth")
            self.block = Block(bid, None, ln.num())
            func.blocks.append(self.block)
        else:
            raise ln.bad(f"unknown record {word!r}")


def _code_line(ln: _Line, word: str, code: dict[str, list[object]]) -> None:
    if word == "reloc":
        code["reloc"].append(Reloc(ln.num(), ln.next(), ln.string(), ln.signed()))
    elif word == "line":
        code["line"].append((ln.num(), ln.signed(), ln.signed()))
    elif word == "mark":
        code["mark"].append((ln.string(), ln.num(), ln.signed()))
    else:
        raise ln.bad(f"unknown record {word!r}")


def _vreg(ln: _Line, index: int) -> VReg:
    m = _REG.match(ln.next())
    if m is None or int(m.group(2)) != index:
        raise ln.bad("virtual registers must be numbered from 0 in order")
    width, align = ln.num(), ln.num()
    fixed = ln.num() if ln.take("fixed") else -1
    uniform = int(ln.take("uniform"))
    return VReg(m.group(1).upper(), width, align, fixed, uniform, ln.string())
