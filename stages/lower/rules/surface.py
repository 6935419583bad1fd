"""Surfaces: suld, sust, sured. The address is a block of registers: coordinates, then the array index (measured on
ptxas 13.0, as all here)."""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import RZ, Imm, Mem, Operand, Reg
from ir_format.ptx import PtxInst
from ir_format.ptx_types import TYPE_BITS
from ir_format.record import NamedTuple
from stages.lower.builder import Builder, Rule
from stages.lower.headers import Header, handle
from stages.lower.rules import texture_calls
from stages.lower.rules.texture import Val, block

#: PTX geometry -> SASS geometry, coordinates
GEOMETRIES = {"1d": ("1D", 1), "2d": ("2D", 2), "3d": ("3D", 3), "a1d": ("1D_ARRAY", 1), "a2d": ("2D_ARRAY", 2)}
CLAMPS = {"trap": "TRAP", "clamp": "", "zero": "IGN"}
#: Bits of a whole access -> its suffix.
SIZES = {8: "U8", 16: "U16", 32: "", 64: "64", 128: "128"}
MASKS = {1: "R", 2: "RG", 4: ""}
#: Type of a reduction, formatted or not -> its suffix.
REDUCED = {"u32": "", "s32": "S32", "u64": "U64", "s64": "S64", "b32": ""}
REDUCED_TEXELS = {
    ("add", "b32"): "",
    ("and", "b32"): "",
    ("or", "b32"): "",
    ("min", "b32"): "SD32",
    ("max", "b32"): "SD32",
    ("min", "b64"): "SD64",
    ("max", "b64"): "SD64",
}


def _parts(x: ptx.Operand) -> tuple[ptx.Operand, ...]:
    return x.elems if isinstance(x, ptx.Vec) else (x,)


def _order(b: Builder, inst: PtxInst) -> tuple[str, str]:
    """Eviction hint and strength of an access."""
    near = "STRONG.CTA" if b.has("load-unsigned-named") else "STRONG.SM"
    far = any(inst.has(m) for m in ("cg", "cv", "wt"))
    return ("EF" if inst.has("cs") else ""), "STRONG.SYS" if far else near


class _Place(NamedTuple):
    """Geometry, coordinates and then the array index, header, what happens outside."""

    name: str
    values: list[Val]
    header: Header
    clamp: str

    def called(self) -> list[Val]:
        """The coordinates as a function of the driver takes them: the array index first."""
        return self.values[-1:] + self.values[:-1] if "ARRAY" in self.name else self.values

    def address(self, b: Builder) -> Mem:
        """The address as an instruction takes it."""
        base = block(b, self.values)
        return Mem("M", b.in_reg(base, base.width))


def _place(b: Builder, inst: PtxInst, bracket: ptx.Operand) -> _Place:
    assert isinstance(bracket, ptx.Bracket)
    name, dims = GEOMETRIES[next(m for m in inst.mods if m in GEOMETRIES)]
    header = handle(b, inst, bracket.parts[:-1], surface=True)
    parts = list(_parts(bracket.parts[-1]))
    index = [b.src(parts.pop(0), "b32")] if "ARRAY" in name else []
    values: list[Val] = [*[b.src(p, "s32") for p in parts[:dims]], *index]
    clamp = next(CLAMPS[m] for m in inst.mods if m in CLAMPS)
    return _Place(name, values, header, clamp)


def _with_header(b: Builder, header: Header, text: str, dsts: tuple[Reg, ...], srcs: tuple[Operand, ...]) -> None:
    """The instruction, with the operands of its header after the others."""
    if b.has("header-in-uniform"):

        def make(where: tuple[Operand, ...], who: Reg | None) -> None:
            b.emit(text, dsts, (*srcs, *where), who)

        header.uniform(b, make, dsts)
    else:
        b.emit(text, dsts, (*srcs, *(header.numbers or (header.register(b),))))


def _dotted(*names: str) -> str:
    return ".".join(n for n in names if n)


def load(b: Builder, inst: PtxInst) -> None:
    """suld.b: raw bytes, taken apart."""
    with b.region():
        out, bracket = inst.operands
        at = _place(b, inst, bracket)
        elems = _parts(out)
        size = TYPE_BITS[inst.types[0]]
        total = size * len(elems)
        if b.has("textures"):
            hint, order = _order(b, inst)
            d = b.r(max(1, total // 32))
            text = _dotted("SULD.D.BA", at.name, hint, SIZES[total], order, at.clamp)
            _with_header(b, at.header, text, (Reg("P", -1), d), (at.address(b),))
        else:
            d = block(b, [*texture_calls.surface(b, inst, at.name, at.called(), at.header, total)])
        for k, e in enumerate(elems):
            if isinstance(e, ptx.Sink):
                continue
            to = b.dst(e, inst.types[0])
            first, inside = divmod(k * size, 32)
            word = d._replace(sub=d.sub + first, width=1)
            if size == 64:
                b.copy(to, d._replace(sub=d.sub + first, width=2))
            elif size == 32 or total <= 16 and len(elems) == 1:
                _widened(b, to, word)
            else:
                piece = b.r()
                b.emit(
                    "PRMT",
                    piece,
                    (
                        word,
                        Imm(
                            "I",
                            (0x7770 if size == 8 else 0x7710 if not inside else 0x7732)
                            + (inside // 8 if size == 8 else 0),
                        ),
                        RZ,
                    ),
                )
                _widened(b, to, piece)


def _widened(b: Builder, to: Reg, value: Reg) -> None:
    """Into a register that may be wider than the value."""
    b.copy(b.lo_r(to), value)
    if to.width > 1:
        b.copy(b.hi_r(to), RZ)


def store(b: Builder, inst: PtxInst) -> None:
    """sust.b: raw bytes put together; sust.p: components for the surface's format."""
    with b.region():
        bracket, value = inst.operands
        at = _place(b, inst, bracket)
        elems = _parts(value)
        size = TYPE_BITS[inst.types[0]]
        values = [b.lo(b.src(e, "b32")) for e in elems] if inst.has("p") else _packed(b, inst, elems, size)
        if not b.has("textures"):
            texture_calls.surface(b, inst, at.name, at.called(), at.header, size * len(elems), values)
            return
        data = block(b, values)
        hint, order = _order(b, inst)
        if inst.has("p"):
            text = _dotted("SUST.P", at.name, hint, order, MASKS[len(elems)], at.clamp)
        else:
            text = _dotted("SUST.D.BA", at.name, hint, SIZES[size * len(elems)], order, at.clamp)
        _with_header(b, at.header, text, (), (at.address(b), b.in_reg(data, data.width)))


def _packed(b: Builder, inst: PtxInst, elems: tuple[ptx.Operand, ...], size: int) -> list[Val]:
    """Elements as 32-bit words, the first lowest."""
    sources = [b.src(e, inst.types[0]) for e in elems]
    if size == 64:
        return [b.word(s, i) for s in sources for i in range(2)]
    if size == 32 or len(elems) == 1:
        return [b.lo(s) for s in sources]
    words: list[Val] = []
    each = 32 // size
    for k in range(0, len(sources), each):
        group = [b.in_reg(b.lo(s)) for s in sources[k : k + each]]
        word = group[0]
        for j, piece in enumerate(group[1:], 1):
            d = b.r()
            selector = 0x5410 if size == 16 else (0x7604, 0x7054, 0x654)[j - 1]
            srcs = (word, Imm("I", selector), piece) if size == 16 else (piece, Imm("I", selector), word)
            b.emit("PRMT", d, srcs)
            word = d
        words.append(word)
    return words


def reduce(b: Builder, inst: PtxInst) -> None:
    """sured.b on raw memory; sured.p on texels, whose format says the sign."""
    with b.region():
        bracket, value = inst.operands
        at = _place(b, inst, bracket)
        kind = inst.types[0]
        operation = next(m for m in inst.mods if m in ("add", "min", "max", "and", "or"))
        texels = inst.has("p")
        suffix = REDUCED_TEXELS.get((operation, kind)) if texels else REDUCED.get(kind)
        if suffix is None:
            raise b.unsupported(inst, "type")
        data = b.in_reg(b.src(value, kind), b.words(kind))
        if not b.has("textures"):
            words = [b.word(data, k) for k in range(b.words(kind))]
            texture_calls.surface(b, inst, at.name, at.called(), at.header, TYPE_BITS[kind], words)
            return
        text = _dotted("SURED.D", "" if texels else "BA", at.name, operation.upper(), suffix, "STRONG.SYS", at.clamp)
        _with_header(b, at.header, text, (), (at.address(b), data))


RULES: dict[str, Rule] = {"suld": load, "sust": store, "sured": reduce}
