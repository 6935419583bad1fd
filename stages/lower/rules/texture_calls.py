"""Textures and surfaces of an SM that has no such units (sm_107): functions of the driver do the work.

Names, arguments and results as measured on ptxas 13.5's calls for every form of tests/isa/corpus_texture.py. The first
argument of each function is a word of flags; headers are pairs of which only the lower word counts:

* fetches: word, first coordinate (the index of an array, with offsets above it for derivatives), texture, sampler,
  three more coordinates; then level, offsets and four zeros, or four derivatives each way, index and offsets, four
  zeros, or (gathers) offsets and two zeros. Results: whether all texels were present (0), and the components that are
  read;
* surfaces: word, first coordinate, surface, three more, and for writes up to four words of data; loads give the words;
* sizes: word, level, texture; one word.

Two values have no argument in ptxas's calls: the one to compare with, and the sample of a multisample texture. There is
a warning. The functions may wait for the whole warp, so that ptxas declares the threads that are not here as exited
around each call.
"""

from __future__ import annotations

from collections.abc import Sequence

from ir_format.model import RZ, ZERO, Imm, Name, Reg
from ir_format.ptx import PtxInst, PtxParam
from ir_format.typed import Final
from stages.lower.abi.calls import call_driver
from stages.lower.builder import Builder
from stages.lower.headers import Header, separate

Val = Reg | Imm
_WORD: Final = PtxParam("w", "b32", 4, 4)
_HEADER: Final = PtxParam("h", "b64", 8, 8)
_PREFIX: Final = "__cuda_syscall_bw_do_"
#: Modifiers of a fetch -> bits of the word (`LL` only of fetches by integers).
_FETCH_BITS: Final = {"AOFFI": 0x400, "DC": 0x800}
_COMPONENTS: Final = {"R": 0x2000, "G": 0x4000, "B": 0x6000, "A": 0x8000}
_ANY: Final = 0x02000000
_FLOATS, _SEPARATE, _LEVEL, _RESIDENT = 0x100, 0x200, 0x4, 0x1000
_SIZES: Final = {8: 0, 16: 0x10, 32: 0x20, 64: 0x30, 128: 0x31}
_OUTSIDE: Final = {"clamp": 0x4, "trap": 0x8, "zero": 0xC}
_RAW: Final = 0x100000
_REDUCTIONS: Final = {"add": 0x20000, "min": 0x40000, "max": 0x60000, "and": 0x80000, "or": 0xA0000}
_REDUCED: Final = {"u32": 0x40, "b32": 0x40, "s32": 0x50, "u64": 0x80, "s64": 0x90}
_DIMENSIONS: Final = {"width": 0, "height": 1, "depth": 2}


def geometry(name: str) -> str:
    """`a2d` of ARRAY_2D or 2D_ARRAY."""
    array = "ARRAY" in name
    return ("a" if array else "") + name.replace("ARRAY", "").strip("_").lower()


def _call(b: Builder, name: str, args: Sequence[tuple[PtxParam, Val]], results: int) -> list[Reg]:
    """Call while the threads that are not here count as exited, so that none waits for them."""
    before, here, others = b.r(), b.r(), b.r()
    exited = Name("N", "MEXITED")
    b.ctx.unit.attrs["isa_class"] = max(2, b.ctx.unit.attrs.get("isa_class", 1))
    b.emit("BMOV.32", before, (exited,))
    b.emit("BMOV.32", here, (Name("N", "MACTIVE"),))
    b.emit("LOP3.LUT", others, (RZ, here, RZ, Imm("I", 0x33)))
    b.emit("BMOV.32", exited, (others,))
    got = call_driver(b, _PREFIX + name, [p for p, _ in args], [x for _, x in args], (_WORD,) * results)
    b.emit("WARPSYNC.ALL", (), (), attrs={"diverged": 1})
    b.emit("BMOV.32", exited, (before,))
    return [r[0] for r in got]


def _pair(b: Builder, x: int | Reg | None) -> tuple[PtxParam, Val]:
    """A header as an argument."""
    to = b.r(2)
    b.copy(b.lo_r(to), Imm("I", 0) if x is None else Header.loaded(b, x))
    b.copy(b.hi_r(to), Imm("I", 0))
    return _HEADER, to


def _filled(values: Sequence[Val], size: int) -> list[tuple[PtxParam, Val]]:
    return [(_WORD, x) for x in (*values, *[Imm("I", 0)] * (size - len(values)))]


def fetch(
    b: Builder, op: str, name: str, place: list[Val], rest: list[Val], mods: list[str], header: Header, mask: int,
    resident: bool, line: int,
) -> tuple[Reg, list[Reg]]:  # fmt: skip
    """A fetch as `texture.Fetch` has it; returns the word that is 0 if all texels were present, and the components."""
    word = _ANY | mask << 26 | 0x20 | (_RESIDENT if resident else 0)
    word |= _SEPARATE if separate(b) else 0
    word |= _FLOATS if op != "TLD" else _LEVEL if "LL" in mods else 0
    word |= sum(_FETCH_BITS.get(m, 0) + (_COMPONENTS.get(m, 0) if op == "TLD4" else 0) for m in mods)
    if "DC" in mods or "MS" in mods:
        what = "value to compare with" if "DC" in mods else "sample's number"
        text = f"The {what} is no argument of the driver's function on this .target, as in ptxas's code"
        b.ctx.unit.diags.append(("warning", text, line))
    values = dict(zip([m for m in ("LL", "AOFFI", "DC", "MS") if m in mods], rest, strict=False))
    array = "ARRAY" in name
    if op == "TXD":
        count = len(rest) // 2
        packed = place[count:]  # index and offsets
        place = [*(packed if array else []), *place[:count]]
        shift = packed if "AOFFI" in mods else []
        tail = [
            *_filled(rest[0::2], 4),
            *_filled(rest[1::2], 4),
            *_filled(shift, 5),
        ]
        function = "tex_grad"
    elif op == "TLD4":
        tail = _filled([values["AOFFI"]] if "AOFFI" in values else [], 3)
        function = "tld4"
    else:
        tail = _filled([values.get("LL", Imm("I", 0)), values.get("AOFFI", Imm("I", 0))], 6)
        function = "tex_level"
    args = [
        (_WORD, Imm("I", word)),
        (_WORD, place[0]),
        _pair(b, header.texture),
        _pair(b, header.sampler),
        *_filled(place[1:], 3),
        *tail,
    ]
    got = _call(b, f"{geometry(name)}_{function}", args, 1 + max(1, mask.bit_count()))
    return got[0], got[1:]


def surface(
    b: Builder, inst: PtxInst, name: str, place: list[Val], header: Header, bits: int, data: list[Val] | None = None
) -> list[Reg]:
    """suld (its words), sust, sured."""
    word = _ANY | next(_OUTSIDE[m] for m in inst.mods if m in _OUTSIDE)
    results = 0
    raw = 0 if inst.has("p") else _RAW
    if inst.op == "suld":
        word |= _SIZES[bits]
        results = max(1, bits // 32)
    elif inst.op == "sust":
        word |= _SIZES[bits] | (raw or 0x10000)
    else:
        kind = next(m for m in inst.mods if m in _REDUCTIONS)
        # the format of texels says whether they are signed; ptxas gives their size for min and max only
        ordered = kind in ("min", "max") and not raw
        word |= _REDUCTIONS[kind] | raw | (_SIZES[bits] if ordered else _REDUCED[inst.types[0]])
    args = [(_WORD, Imm("I", word)), (_WORD, place[0]), _pair(b, header.texture), *_filled(place[1:], 3)]
    if data is not None:
        args += _filled(data, 4 if inst.op == "sust" else 2)
    return _call(b, f"{geometry(name)}_{inst.op}", args, results)


def size(b: Builder, what: str, header: Header, level: Val) -> Reg:
    """A size of a texture or surface."""
    k = _DIMENSIONS[what]
    word = _ANY | 1 << 26 + k | k + 1 << 21 | (_SEPARATE if separate(b) else 0)
    args = [(_WORD, Imm("I", word)), (_WORD, level), _pair(b, header.texture)]
    return _call(b, "txq_level", args, 1)[0]


def absent(b: Builder, flag: Reg, word: Reg) -> None:
    """PTX's predicate of a fetch: true if all texels were present."""
    b.emit("ISETP.EQ.U32.AND", (flag, Reg("P", ZERO)), (word, RZ, Reg("P", ZERO)))
