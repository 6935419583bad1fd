"""Notes after an instruction's text, for the bits that nvdisasm's text omits.

    IADD3 R0, P1, R2, R3, R4 &Pu=0x7 &Pv=0x1 &stall=4 &yield &wr=2 &req={0}

A note ``&SLOT=BITS`` holds the bits of an operand that the text alone does not determine: cache-policy bits that are
not printed, the descriptor of a global access before sm_90 (its register number), the payload of a NaN, the choice
between two carries. A note takes precedence over the text, so delete it when you edit the operand. The control word
follows: stall count, yield bit, write and read scoreboard, wait mask. Omitted parts have their defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ir_format.diag import CompileError
from ir_format.isa.codec import Codec
from ir_format.isa.special import MemCodec, TargetCodec
from ir_format.model import Ctl, Inst, Operand
from ir_format.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from ir_format.isa.machine import Target
    from ir_format.isa.plan import Plan

_NOTE = re.compile(r"\s*&(?P<name>\w+)(?:=(?P<value>\w+|\{[\d,\s]*\}))?(?=\s|&|;|$)")
_CONTROL = frozenset(("stall", "yield", "wr", "rd", "req"))


def split_notes(text: str) -> tuple[str, dict[str, str]]:
    """The text without its notes, and the notes by name (value '' if none is given). Raises CompileError for anything
    that is not a note."""
    head, sign, _ = text.partition("&")
    if not sign:
        return text, {}
    found: dict[str, str] = {}
    at = len(head.rstrip())
    while at < len(text):
        m = _NOTE.match(text, at)
        if m is None:
            if text[at:].strip() in ("", ";"):
                break
            raise CompileError(f"not a note: {text[at:].strip()!r}")
        found[m["name"]] = m["value"] or ""
        at = m.end()
    return head, found


def number(name: str, text: str, limit: int) -> int:
    """The value of a note. Raises CompileError."""
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not 0 <= value < limit:
        raise CompileError(f"note &{name}={text}: not a number below {limit}")
    return value


def control(given: Mapping[str, str]) -> Ctl | None:
    """The control word in notes, None where they hold none. Raises CompileError."""
    if _CONTROL.isdisjoint(given):
        return None
    wait = 0
    for item in filter(None, (x.strip() for x in given.get("req", "{}").strip("{}").split(","))):
        wait |= 1 << number("req", item, 6)
    return Ctl(
        number("stall", given.get("stall", "0"), 16),
        int("yield" in given),
        number("wr", given.get("wr", "7"), 8),
        number("rd", given.get("rd", "7"), 8),
        wait,
    )


def control_notes(ctl: Ctl) -> list[str]:
    """The reverse of :func:`control`."""
    out = [f"&stall={ctl.stall}"]
    if ctl.yield_:
        out.append("&yield")
    out += [f"&{name}={value}" for name, value in (("wr", ctl.wr), ("rd", ctl.rd)) if value != 7]
    if ctl.wait:
        out.append(f"&req={{{','.join(str(i) for i in range(6) if ctl.wait >> i & 1)}}}")
    return out


def gather(word: int, mask: int) -> int:
    """The bits of a word under a mask, gaps closed."""
    out = shift = 0
    while mask:
        low = (mask & -mask).bit_length() - 1
        run = ((mask >> low) + 1 & -((mask >> low) + 1)).bit_length() - 1
        out |= (word >> low & (1 << run) - 1) << shift
        shift += run
        mask &= ~(((1 << run) - 1) << low)
    return out


def spread(value: int, mask: int) -> int:
    """The reverse of :func:`gather`."""
    out = 0
    while mask:
        low = (mask & -mask).bit_length() - 1
        run = ((mask >> low) + 1 & -((mask >> low) + 1)).bit_length() - 1
        out |= (value & (1 << run) - 1) << low
        value >>= run
        mask &= ~(((1 << run) - 1) << low)
    return out


def noted(plan: Plan, ops: list[Operand], given: Mapping[str, str]) -> list[Operand]:
    """The operands with those that notes give. Raises CompileError for a note that names no operand of the plan,
    Mismatch for undefined bits."""
    rest = {name: value for name, value in given.items() if name not in _CONTROL}
    out = list(ops)
    for k, slot in enumerate(plan.slots):
        if slot.name in rest and slot.shown:
            mask = unsaid(slot.codec)
            bits = number(slot.name, rest.pop(slot.name), 1 << mask.bit_count())
            out[k] = slot.codec.dec(slot.codec.enc(ops[k]) & ~mask | spread(bits, mask))
    if rest:
        raise CompileError(f"note &{min(rest)}: the instruction has no such operand")
    return out


def unsaid(codec: Codec) -> int:
    """The bits of an operand that a note gives: of an address the descriptor alone, else all."""
    return codec.ur << codec.upos if isinstance(codec, MemCodec) else codec.mask


def notes(target: Target, inst: Inst, pc: int, plan: Plan, text: str) -> list[str]:
    """The notes that an instruction's text needs to read back as this very instruction."""
    read = target.parse(text, pc)
    pairs = zip(plan.slots, (*inst.dsts, *inst.srcs), (*read.dsts, *read.srcs))
    out = [f"&{s.name}={gather(s.codec.enc(o), unsaid(s.codec)):#x}" for s, o, r in pairs if o != r]
    return out if inst.ctl is None else [*out, *control_notes(inst.ctl)]


def canonical(codec: Codec, o: Operand, pc: int) -> Operand:
    """The operand as decode gives it."""
    if isinstance(codec, TargetCodec):
        return codec.dec_at(codec.enc_at(o, pc, None), pc)
    return codec.dec(codec.enc(o))
