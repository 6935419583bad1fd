"""Read nvdisasm's text of one instruction.

The text is matched against the plans of the mnemonic: operand texts are assigned to the printed slots from left to
right, and optional slots may be skipped. Fields that are not in the text get their defaults: hidden fields, the
descriptor of a global access before sm_90 (URZ), the payload of a NaN.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from ir_format.diag import CompileError
from ir_format.isa.codec import Codec, ConstCodec, CxCodec, HalfImmCodec, ImmCodec, Mismatch, NameCodec, RegCodec
from ir_format.isa.exact import canonical, control, noted, split_notes
from ir_format.isa.special import (
    HiddenCodec,
    InvPredCodec,
    LdcCodec,
    MemCodec,
    ScoreboardSet,
    TargetCodec,
    UMemCodec,
)
from ir_format.isa.tmem import KeywordCodec, PairCodec
from ir_format.isa.vectors import widen
from ir_format.model import ABS, INV, NEG, REUSE, ZERO, Const, Imm, Inst, Mem, Name, Operand, Reg
from ir_format.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ir_format.isa.machine import Target
    from ir_format.isa.plan import Plan

_HEAD = re.compile(r"\s*(?:@(?P<guard>!?U?P[T0-6])\s+)?(?P<op>[A-Z][\w.]*)\s*(?P<rest>.*?)\s*;?\s*$", re.S)
_REG = re.compile(r"(?P<file>UR|UP|R|P|B)(?P<num>Z|T|\d+)$")
_CONST = re.compile(r"c(?P<x>x?)\[(?P<bank>[^\]]*)\]\s*\[(?P<at>[^\]]*)\]$")
_MEM = re.compile(r"(?:desc\[(?P<desc>[^\]]*)\])?(?:\[(?P<inner>[^\]]*)\])?$")


def parse(target: Target, text: str, pc: int = 0) -> Inst:
    """The instruction, its operands as decode gives them (branch targets as ``Imm`` with the absolute byte address).

    Notes after the text (:mod:`ir_format.isa.exact`) are read too. Raises CompileError.
    """
    text, notes = split_notes(text)
    m = _HEAD.match(text)
    if m is None:
        raise CompileError(f"not an instruction: {text!r}")
    op, *names = m["op"].split(".")
    mods = tuple(names)
    items = split_operands(m["rest"])
    why = "unknown mnemonic" if not target.forms(op) else "no form has these modifiers"
    for form in target.forms(op):
        plan = form.plan_for_mods(mods)
        if plan is None:
            continue
        try:
            ops = _deal(plan, list(items), pc)
            if ops is None:
                why = "the operands fit no form"
                continue
            ops = [canonical(slot.codec, o, pc) if slot.shown else o for slot, o in zip(plan.slots, ops)]
            if notes:
                ops = noted(plan, ops, notes)
            if plan.shared:
                plan.check_shared(ops)
        except Mismatch as error:
            why = str(error)
            continue
        if form.widths is not None:
            widen(form.widths, plan.mods, [s.name for s in plan.slots], ops, target.sm)
        guard = None if m["guard"] is None else _register(m["guard"])
        return Inst(op, mods, tuple(ops[: plan.ndst]), tuple(ops[plan.ndst :]), guard, ctl=control(notes))
    raise CompileError(f"can't read {text.strip()!r} on sm_{target.sm}: {why}")


def split_operands(text: str) -> list[str]:
    """Operands at the top level of brackets and braces, stripped."""
    out: list[str] = []
    depth = start = 0
    for i, c in enumerate(text):
        if c in "[{(":
            depth += 1
        elif c in "]})":
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*out, last] if last else out


def _deal(plan: Plan, items: list[str], pc: int) -> list[Operand] | None:
    """Operands for all slots of the plan, or None where the texts do not fit."""
    slots = plan.slots
    spaced = any(isinstance(s.codec, TargetCodec) and s.codec.spaced for s in slots)
    if spaced and items:
        items = [*items[:-1], *items[-1].split()]

    def walk(i: int, j: int) -> list[Operand] | None:
        if i == len(slots):
            return [] if j == len(items) else None
        slot = slots[i]
        codec = slot.codec
        default = slot.default
        if not slot.shown or (isinstance(codec, HiddenCodec) and default is not None):
            assert default is not None
            rest = walk(i + 1, j)
            return None if rest is None else [default, *rest]
        take = (
            2
            if isinstance(codec, PairCodec) or (isinstance(codec, ImmCodec) and codec.style in ("f16x2", "bf16x2"))
            else 1
        )
        if j + take <= len(items):
            found = read_operand(", ".join(items[j : j + take]), codec, pc)
            if found is not None:
                rest = walk(i + 1, j + take)
                if rest is not None:
                    return [found, *rest]
        if slot.optional and default is not None:
            rest = walk(i + 1, j)
            return None if rest is None else [default, *rest]
        return None

    ops = walk(0, 0)
    return None if ops is None else _pair_up(plan, ops)


def _pair_up(plan: Plan, ops: list[Operand]) -> list[Operand]:
    """A descriptor that is not printed and is the register after another operand's (LDGSTS, sm_80 to sm_89) comes from
    that operand."""
    for k, slot in enumerate(plan.slots):
        codec, o = slot.codec, ops[k]
        if isinstance(codec, MemCodec) and codec.hidden and codec.next and isinstance(o, Mem) and o.desc is not None:
            for other in ops:
                if isinstance(other, Mem) and other.ubase is not None and other.ubase.num >= 0:
                    return [*ops[:k], o._replace(desc=o.desc._replace(num=other.ubase.num + 1)), *ops[k + 1 :]]
    return ops


def read_operand(text: str, codec: Codec, pc: int) -> Operand | None:
    """The operand that a slot with this codec reads from a text, None where it can't."""
    reader = _reader(type(codec))
    if reader is None:
        return None
    try:
        return reader(text, codec, pc)
    except (ValueError, OverflowError, struct.error, TypeError):
        return None


def _register(text: str) -> Reg:
    flags = INV if text.startswith("!") else 0
    m = _REG.match(text.lstrip("!"))
    if m is None:
        raise CompileError(f"not a register: {text}")
    return Reg(m["file"], ZERO if m["num"] in "ZT" else int(m["num"]), 0, 1, flags)


def _signs(text: str) -> tuple[str, int, str]:
    """The bare operand, its flags and its suffix."""
    flags = 0
    mod = ""
    if text[:1] == "-":
        flags, text = NEG, text[1:]
    elif text[:1] in ("!", "~"):
        flags, text = INV, text[1:]
    if text[:1] == "|":
        inner, _, tail = text[1:].partition("|")
        flags |= ABS
        text = inner
        mod = tail.removeprefix(".")
    for piece in ("reuse",):
        if mod == piece or mod.startswith(piece + "."):
            flags |= REUSE
            mod = mod[len(piece) + 1 :]
    head, bracket, tail = text.rpartition("]")
    name, _, suffix = (tail if bracket else text).partition(".")
    if suffix == "reuse" or suffix.startswith("reuse."):
        flags |= REUSE
        suffix = suffix[6:]
    return head + bracket + name, flags, suffix or mod


def _read_reg(text: str, codec: RegCodec, pc: int) -> Operand | None:
    bare, flags, mod = _signs(text)
    m = _REG.match(bare)
    if m is None or m["file"] != codec.file:
        return None
    return Reg(codec.file, ZERO if m["num"] in "ZT" else int(m["num"]), 0, codec.width, flags, mod)


def _read_pred(text: str, codec: InvPredCodec, pc: int) -> Operand | None:
    m = _REG.match(text.lstrip("!"))
    return _register(text) if m is not None and m["file"] == codec.kind else None


def _int(text: str) -> int:
    """A hexadecimal or decimal number with an optional sign (``+-0x10`` too)."""
    text = text.replace("+-", "-").lstrip("+")
    return int(text, 0)


#: Patterns for the NaNs whose payload the text does not show: quiet and signalling, positive.
_NAN = {
    "f32": (0x7FFFFFFF, 0x7F800001),
    "f64": (0x7FF80000, 0x7FF00001),
    "f16": (0x7FFF, 0x7C01),
    "bf16": (0x7FFF, 0x7F81),
}
_SIZE = {"f32": 32, "f64": 32, "f16": 16, "bf16": 16}


def _float_bits(text: str, style: str) -> int | None:
    """The field of a printed float, None where it does not hold it exactly."""
    text = text.strip()
    if text[1:] in ("QNAN", "SNAN"):
        return _NAN[style][text[1:] == "SNAN"] | (1 << _SIZE[style] - 1 if text[0] == "-" else 0)
    value = float(text)
    if style == "f64":
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return None if bits & 0xFFFFFFFF else int(bits >> 32)
    if style == "f16":
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return int(bits >> 16 if style == "bf16" else bits)


def _read_imm(text: str, codec: ImmCodec, pc: int) -> Operand | None:
    style = codec.style
    text = text.strip()
    if isinstance(codec, HalfImmCodec):
        text, _, half = text.rpartition(".")
        bits = _float_bits(text, style) if text else None
        return None if bits is None else Imm("I", bits, mod=half)
    if style in ("f16x2", "bf16x2"):
        high, low = (_float_bits(part, style[:-2]) for part in text.split(","))
        return None if high is None or low is None else Imm("I", high << 16 | low)
    if style in _NAN:
        bits = _float_bits(text, style)
        return None if bits is None else Imm("I", bits)
    value = _int(text)
    if value < 0 and not (style == "s" and codec.size < 32):
        value &= codec.limit - 1
    return Imm("I", value)


def _read_const(text: str, codec: ConstCodec, pc: int) -> Operand | None:
    bare, flags, mod = _signs(text)
    m = _CONST.match(bare)
    if m is None or bool(m["x"]) != isinstance(codec, CxCodec):
        return None
    if m["x"]:
        ireg = _register(m["bank"])._replace(width=2)
        return Const("C", 0, _int(m["at"]), codec.width, ireg, flags, "", mod)
    return Const("C", _int(m["bank"]), _int(m["at"]), codec.width, None, flags, "", mod)


def _read_ldc(text: str, codec: LdcCodec, pc: int) -> Operand | None:
    m = _CONST.match(text)
    if m is None or m["x"]:
        return None
    ireg = None
    offset = 0
    for part in m["at"].replace("+-", "+@").split("+"):
        part = part.replace("@", "-")
        if part[:1] in "RU":
            if not codec.zero:
                return None
            reg = _register(part)
            ireg = None if reg.num == ZERO and not codec.indexed else reg
        else:
            offset = _int(part)
    if codec.indexed and ireg is None:
        return None
    return Const("C", _int(m["bank"]), offset, codec.width, ireg)


def _read_mem(text: str, codec: MemCodec, pc: int) -> Operand | None:
    m = _MEM.match(text)
    if m is None or m["inner"] is None:
        return None
    base = ubase = desc = None
    offset = 0
    letter = codec.letter
    if (".64" in text and letter in ("r", "u", "v")) or (codec.hidden and m["desc"] is not None):
        return None
    if m["desc"] is not None:
        desc = _register(m["desc"])._replace(width=2, mod="P" if letter == "p" else "")
    parts = re.split(r"\+", m["inner"].replace("+-", "+@"))
    for part in parts:
        name, _, suffix = part.partition(".")
        reg = _REG.match(name)
        if reg is not None and reg["file"] == "R":
            base = Reg(
                "R", ZERO if reg["num"] == "Z" else int(reg["num"]), 0, codec.wide, 0, "" if suffix == "64" else suffix
            )
        elif reg is not None and reg["file"] == "UR":
            ubase = Reg("UR", ZERO if reg["num"] == "Z" else int(reg["num"]), 0, codec.uwide)
        else:
            offset = _int(part.replace("@", "-"))
    if codec.base >= 0 and base is None:
        if letter == "v":
            return None
        base = Reg("R", ZERO, 0, codec.wide)
    if codec.quiet and letter == "u" and ubase is None:
        ubase = Reg("UR", ZERO, 0, codec.uwide)
    if codec.hidden and letter == "d" and desc is None and base is not None and ubase is None and ".64" in text:
        desc = Reg("UR", ZERO, 0, 2)
    if codec.quiet and letter in "vw" and ubase is None and base is not None and (".64" in text or letter == "v"):
        ubase = Reg("UR", ZERO, 0, codec.uwide)
    return Mem("M", base, ubase, offset, desc)


def _read_umem(text: str, codec: UMemCodec, pc: int) -> Operand | None:
    m = _MEM.match(text)
    if m is None:
        return None
    if codec.desc:
        return (
            None
            if m["desc"] is None or m["inner"] is not None
            else Mem("M", None, None, 0, _register(m["desc"])._replace(width=codec.width))
        )
    if m["desc"] is not None or m["inner"] is None or _REG.match(m["inner"]) is None:
        return None
    return Mem("M", None, _register(m["inner"])._replace(width=codec.width))


def _read_target(text: str, codec: TargetCodec, pc: int) -> Operand | None:
    value = _int(text)
    return Imm("I", value + pc + 16 if codec.distance else value)


def _read_name(text: str, codec: NameCodec, pc: int) -> Operand | None:
    return Name("N", text) if text in codec.values else None


def _read_set(text: str, codec: ScoreboardSet, pc: int) -> Operand | None:
    return Name("N", text.replace(" ", "")) if text[:1] == "{" else None


def _read_keyword(text: str, codec: KeywordCodec, pc: int) -> Operand | None:
    return codec.read(text)


#: The first class listed here among a codec's ancestors reads it.
_READERS: dict[type[Codec], Callable[[str, Any, int], Operand | None]] = {
    KeywordCodec: _read_keyword,
    TargetCodec: _read_target,
    LdcCodec: _read_ldc,
    MemCodec: _read_mem,
    UMemCodec: _read_umem,
    InvPredCodec: _read_pred,
    ScoreboardSet: _read_set,
    NameCodec: _read_name,
    ConstCodec: _read_const,
    HalfImmCodec: _read_imm,
    ImmCodec: _read_imm,
    RegCodec: _read_reg,
}


_reader_of: dict[type[Codec], Callable[[str, Any, int], Operand | None] | None] = {}


def _reader(kind: type[Codec]) -> Callable[[str, Any, int], Operand | None] | None:
    if kind not in _reader_of:
        _reader_of[kind] = next((_READERS[k] for k in kind.__mro__ if k in _READERS), None)
    return _reader_of[kind]
