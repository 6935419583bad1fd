"""The header of a texture, sampler or surface (all measured on ptxas 13.0).

A handle in a register is the number of a header: the low word of a texture object or, with separate samplers, of the
sampler's handle. A name (`.texref`, `.samplerref`, `.surfref`) is a word of bank 0 after the kernel's parameters, which
the driver fills in. The unit attribute ``headers`` lists these words as (kind, symbol, byte offset), and `elf` makes
the relocations.

On sm_75 to sm_89 an instruction names the word (bank and number), or has the handle among its values (``.B``). From
sm_90 on it has uniform registers for texture and sampler (0 if they are one); surfaces have one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ir_format import ptx
from ir_format.model import RZ, ZERO, Const, Imm, Operand, Reg
from ir_format.ptx import PtxInst, PtxParam, PtxVar
from stages.lower.abi.arguments import param_base
from stages.lower.abi.frame import load_const
from stages.lower.builder import Builder
from stages.lower.waterfall import warp_uniform, waterfall

HEADERS = {"texref": "texture", "samplerref": "sampler", "surfref": "surface"}
#: Unit attribute: (kind, symbol, byte offset in bank 0) per word.
ATTRIBUTE = "headers"


def separate(b: Builder) -> bool:
    """Whether samplers have their own names and handles (``.target texmode_independent``)."""
    return "texmode_independent" in b.ctx.module.target_options


class Header:
    """A header as PTX names it. ``texture`` and ``sampler`` are byte offsets of words in bank 0, registers with the
    number, or None."""

    __slots__ = ("sampler", "surface", "texture", "warp_uniform")

    def __init__(
        self, texture: int | Reg, sampler: int | Reg | None, surface: bool = False, uniform: bool = True
    ) -> None:
        self.warp_uniform = uniform  # in all threads of a warp
        self.texture = texture
        self.sampler = sampler
        self.surface = surface

    @property
    def numbers(self) -> tuple[Operand, ...] | None:
        """Bank and word, if the instruction can read the header's number from there."""
        if isinstance(self.texture, int) and self.sampler is None:
            return Imm("I", 0), Imm("I", self.texture // 4)
        return None

    def register(self, b: Builder) -> Reg:
        """The number in a register: the sampler's in the upper twelve bits."""
        low = _loaded(b, self.texture)
        if self.sampler is None:
            return low
        up, both = b.r(), b.r()
        b.emit("IMAD.SHL.U32", up, (_loaded(b, self.sampler), Imm("I", 1 << 20), RZ))
        b.emit("LOP3.LUT", both, (low, Imm("I", 0xFFFFF), up, Imm("I", 0xEA)))
        return both

    def uniform(
        self, b: Builder, make: Callable[[tuple[Operand, ...], Reg | None], None], results: Sequence[Reg] = ()
    ) -> None:
        """Make an instruction with the uniform registers, and the other header operands of this SM; where the handles
        differ between threads, in a loop, under a predicate."""
        if not self.warp_uniform:
            words = [_loaded(b, self.texture)]
            if not self.surface:
                words.append(RZ if self.sampler is None else _loaded(b, self.sampler))
            for x in results:
                if x.num != ZERO:
                    b.emit("UNDEF", x, ())
            waterfall(b, words, lambda to, who: make(_operands(b, to, self.surface), who))
            return
        to = b.fn.new_vreg("UR", 1 if self.surface else 2, 0, -1, 1)
        self._put(b, to._replace(width=1), self.texture)
        if not self.surface:
            high = to._replace(sub=1, width=1)
            if self.sampler is None:
                b.emit("COPY", high, (Imm("I", 0),))
            else:
                self._put(b, high, self.sampler)
        make(_operands(b, to, self.surface), None)

    @staticmethod
    def loaded(b: Builder, x: int | Reg) -> Reg:
        """The header's number in a register."""
        return _loaded(b, x)

    @staticmethod
    def _put(b: Builder, to: Reg, x: int | Reg) -> None:
        if isinstance(x, int):
            b.emit("LDCU" if b.has("uniform-const-load") else "ULDC", to, (Const("C", 0, x),))
        else:
            b.emit("R2UR", to, (x,))


def _operands(b: Builder, to: Reg, surface: bool) -> tuple[Operand, ...]:
    """The header operands of an instruction whose uniform registers are these."""
    if b.has("header-immediate"):
        return to, Imm("I", 0)
    return (to, Reg("UR", ZERO)) if b.has("header-pair") else (to,)


def _loaded(b: Builder, x: int | Reg) -> Reg:
    if not isinstance(x, int):
        return x
    d = b.r()
    load_const(b, d, 0, x)
    return d


def handle(b: Builder, inst: PtxInst, parts: Sequence[ptx.Operand], surface: bool = False) -> Header:
    """The header that the first operands of a texture or surface instruction name."""
    if not 1 <= len(parts) <= 2:
        raise b.unsupported(inst, "operands")
    if b.ctx.unit.attrs.get("isa_class", 1) == 1:
        b.ctx.unit.attrs["isa_class"] = 2
    if len(parts) == 2 and not b.has("header-in-uniform"):
        names = [_named(b, inst, p) for p in parts]
        if all(names):  # one word takes both numbers
            return Header(header_word(b, *[n for n in names if n]), None)
    texture = _one(b, inst, parts[0])
    sampler = _one(b, inst, parts[1]) if len(parts) == 2 else None
    return Header(texture, sampler, surface, all([warp_uniform(b, p) for p in parts]))


def _one(b: Builder, inst: PtxInst, x: ptx.Operand) -> int | Reg:
    base = x.base if isinstance(x, ptx.Addr) else x
    if isinstance(base, ptx.Reg):
        return b.lo_r(b.reg(base.index))
    name = _named(b, inst, x)
    if name is None:
        raise b.unsupported(inst, "handle")
    return header_word(b, name)


def _named(b: Builder, inst: PtxInst, x: ptx.Operand) -> tuple[str, str] | None:
    """Kind and name of a handle that is a name."""
    base = x.base if isinstance(x, ptx.Addr) else x
    if not isinstance(base, ptx.Sym):
        return None
    _, decl = b.ctx.find(b, base.name)
    if not isinstance(decl, (PtxVar, PtxParam)) or decl.type not in HEADERS or decl.dims or base.offset:
        raise b.unsupported(inst, f"handle '{base.name}'")
    if isinstance(decl, PtxVar) and decl.fields:
        raise b.unsupported(inst, f"'{base.name}' has an initialiser")
    if not b.pf.entry:
        raise b.unsupported(inst, f"'.{decl.type}' name in a device function")
    return HEADERS[decl.type], base.name


#: The upper word of a handle, by type (measured).
_TAGS = {"texref": 0x20000000, "samplerref": 0x40000000, "surfref": 0x80000000}


def handle_of(b: Builder, name: str, kind: str) -> Reg:
    """The handle that `mov.u64 d, name` gives: the header's number, and what kind of header it is.  Before sm_90 the
    number has its top bit set."""
    low = _loaded(b, header_word(b, (HEADERS[kind], name)))
    if not b.has("header-in-uniform"):
        if kind == "samplerref":
            number, low = low, b.r()
            b.emit("SHF.R.U32.HI", low, (RZ, Imm("I", 20), number))
        number, low = low, b.r()
        b.emit("LOP3.LUT", low, (number, Imm("I", 0x80000000), RZ, Imm("I", 0xFC)))
    d = b.r(2)
    b.copy(b.lo_r(d), low)
    b.copy(b.hi_r(d), Imm("I", _TAGS[kind]))
    return d


def object_handle(b: Builder, inst: PtxInst, x: ptx.Operand) -> Reg:
    """The handle of 64 bits of a texture or sampler in a register, or that of one with a name."""
    base = x.base if isinstance(x, ptx.Addr) else x
    if isinstance(base, ptx.Reg):
        return b.reg(base.index)
    named = _named(b, inst, x)
    if named is None:
        raise b.unsupported(inst, "handle")
    return handle_of(b, named[1], next(k for k, v in HEADERS.items() if v == named[0]))


def header_word(b: Builder, *names: tuple[str, str]) -> int:
    """The byte offset in bank 0 of the word for a name, or for a texture and its sampler. Words are assigned in order
    of first use."""
    size = max((p.offset + p.size for p in b.pf.params), default=0)
    first = param_base(b) + (size + 3 & ~3)
    words: dict[int, list[tuple[str, str]]] = {}
    entries = b.ctx.unit.attrs.get(ATTRIBUTE, ())
    assert isinstance(entries, tuple)
    for entry in entries:
        assert isinstance(entry, tuple)
        kind, name, at = entry
        assert isinstance(kind, str) and isinstance(name, str) and isinstance(at, int)
        words.setdefault(at, []).append((kind, name))
    for at, held in words.items():
        if held == list(names):
            return at
    at = first + 4 * len(words)
    b.ctx.unit.attrs[ATTRIBUTE] = (*entries, *[(kind, name, at) for kind, name in names])
    return at
