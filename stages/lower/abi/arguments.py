"""The calling convention: places of arguments and results (measured, ptxas -c).

Arguments fill R4..R15, first fit at natural alignment; later small arguments fill the holes. An argument that does not
fit goes whole to the caller's stack at [R1 + 0..], and so does a list of arguments without a size (`.param .b8 list[]`,
the last one). Results are placed in the same way. If they take more than 48 bytes, they go to memory of the caller: R4
holds its local address, of 32 bits, and arguments begin at R5.
"""

from __future__ import annotations

from collections.abc import Sequence

from ir_format.alignment import align_up
from ir_format.diag import CompileError
from ir_format.model import RZ, Imm, Reg
from ir_format.ptx import Addr, PtxFunction, PtxInst, PtxParam, PtxVar, Sym, Vec
from ir_format.ptx_types import TYPE_BITS
from ir_format.target import ARG_REGS, PARAM_MAX
from stages.lower.abi.register_arguments import in_words
from stages.lower.builder import Builder

_FIRST, _LAST = ARG_REGS[0], ARG_REGS[-1]
_LETTERS = {1: "b", 2: "h", 4: "i", 8: "l", 16: "x"}
_FLOATS = {"f32": "f", "f64": "d"}


def signature_text(rets: Sequence[PtxParam], params: Sequence[PtxParam]) -> str:
    """The name that an object gives to the signature of a function whose address is taken, and of a call by pointer.
    nvlink compares these texts to find the functions that a call may reach. A scalar is a letter for its size (floats
    have their own), an array a letter and the number of elements; a vector register counts as a scalar of its size
    (measured)."""

    def letters(of: Sequence[PtxParam]) -> str:
        out = ""
        for p in of:
            item = (TYPE_BITS.get(p.type, 32) + 7) // 8 * p.vec
            letter = _FLOATS.get(p.type, "") if p.vec == 1 else ""
            out += letter or _LETTERS.get(item, "b")
            if p.dims:
                out += str(p.size // item)
        return out

    return "#" + (letters(rets) or "v") + letters(params)


def words_of(p: PtxParam | PtxVar) -> int:
    """32-bit words that a parameter takes in registers."""
    return max(1, -(-p.size // 4))


def chunk_of(p: PtxParam | PtxVar) -> int:
    """Words per register group of a parameter: its alignment, 1, 2 or 4 words."""
    w = 4 if p.align >= 16 else 2 if p.align >= 8 else 1
    while w > 1 and words_of(p) % w:
        w //= 2
    return w


def assign(params: Sequence[PtxParam], first: int = _FIRST) -> tuple[list[tuple[int, int]], int]:
    """The place of each parameter, (first register, -1) or (-1, stack offset), and the bytes of stack in use."""
    used = 0  # bit i: register _FIRST + i is taken
    for r in range(_FIRST, first):
        used |= 1 << (r - _FIRST)
    places: list[tuple[int, int]] = []
    stack = 0
    for p in params:
        n = words_of(p)
        step = max(1, min(4, p.align // 4))
        for at in range(_FIRST, _LAST + 2 - n, step):
            mask = ((1 << n) - 1) << (at - _FIRST)
            if not used & mask and p.size:
                used |= mask
                places.append((at, -1))
                break
        else:
            stack = align_up(stack, max(4, p.align))
            places.append((-1, stack))
            stack += align_up(p.size, 4)
    return places, align_up(stack, 8)


def returns_in_memory(rets: Sequence[PtxParam]) -> bool:
    """Whether the results take more than the twelve registers."""
    return any(at < 0 for at, _ in assign(rets)[0])


def first_argument(rets: Sequence[PtxParam]) -> int:
    """The first register that arguments may have."""
    return _FIRST + returns_in_memory(rets)


def param_regs(b: Builder, name: str, p: PtxParam | PtxVar) -> list[Reg]:
    """The vregs that hold a `.param` variable of a function body, one per chunk; created at the first use."""
    got = b.param_words.get(name)
    if got is None:
        if isinstance(p, PtxParam) and p.space == "reg" and not in_words(p):
            got = [b.reg(p.reg)]
        elif p.size > PARAM_MAX:
            raise CompileError(f"Parameter '{name}' of {p.size} bytes not supported by orias", b.line)
        else:
            w = chunk_of(p)
            got = [b.fn.new_vreg("R", w, name=f"{name}+{4 * w * i}") for i in range(words_of(p) // w)]
        b.param_words[name] = got
    return got


def param_part(b: Builder, name: str, p: PtxParam | PtxVar, offset: int, words: int) -> list[Reg]:
    """Registers for ``words`` words at a byte offset of a `.param` variable, widest pieces first where they are
    contiguous.

    Words after the end of the variable do not exist, as in ptxas's code: reads return 0 and writes are dropped. LLVM
    reads the padding after a structure with its last elements. There is a warning if the whole access lies there.
    """
    regs = param_regs(b, name, p)
    w = regs[0].width
    out: list[Reg] = []
    i = offset // 4
    end = i + words
    if offset < 0:
        raise CompileError(f"Access outside of parameter '{name}'", b.line)
    held = w * len(regs)
    while i < min(end, held):
        sub = i % w
        n = min(w - sub, end - i)
        out.append(regs[i // w]._replace(sub=sub, width=n))
        i += n
    for _ in range(i, end):
        nothing = b.r()
        b.copy(nothing, RZ)
        out.append(nothing)
    return out


def accessed_behind(f: PtxFunction) -> frozenset[str]:
    """The `.param` variables smaller than a word for which the function accesses bytes of the word after the end of the
    variable. These bytes are kept, as in ptxas's code."""
    own: list[PtxParam | PtxVar] = [v for v in f.vars if v.space == "param"]
    if not f.entry:
        own += (*f.params, *f.rets)
    small = {p.name: p.size for p in own if p.size < 4}
    if not small:
        return frozenset()
    found: set[str] = set()
    for i in f.body:
        if type(i) is PtxInst and i.op in ("ld", "st"):
            length = (
                TYPE_BITS.get(i.types[0], 0) // 8 * max([len(x.elems) for x in i.operands if type(x) is Vec], default=1)
            )
            found.update(
                [
                    x.base.name
                    for x in i.operands
                    if type(x) is Addr and type(x.base) is Sym and x.offset + length > small.get(x.base.name, 1 << 62)
                ]
            )
    return frozenset(found)


def warn_outside(b: Builder, name: str, p: PtxParam | PtxVar, offset: int) -> None:
    """Warn if an access begins after the end of a `.param` variable."""
    if offset >= p.size:
        b.ctx.unit.diags.append(("warning", f"Access outside of parameter '{name}'", b.line))


def copy_all(b: Builder, to: Sequence[Reg | Imm], got: Sequence[Reg | Imm]) -> None:
    """Copy between two groupings of the same words."""
    if len(to) == len(got):
        for d, s in zip(to, got, strict=True):
            b.copy(d, s)  # type: ignore[arg-type]
        return
    a = [b.word(x, i) for x in to for i in range(x.width if type(x) is Reg else 1)]
    c = [b.word(x, i) for x in got for i in range(x.width if type(x) is Reg else 1)]
    for d, s in zip(a, c, strict=False):
        b.copy(d, s)  # type: ignore[arg-type]


def rechunk(b: Builder, arg: Sequence[Reg | Imm], words: int, w: int) -> list[Reg | Imm]:
    """The words of an argument in pieces of ``w``."""
    if len(arg) == 1 and (type(arg[0]) is Imm or arg[0].width == w) and words == w:  # type: ignore[union-attr]
        return list(arg)
    flat = [b.word(x, i) for x in arg for i in range(x.width if type(x) is Reg else words)]
    if w == 1:
        return flat
    out: list[Reg | Imm] = []
    for i in range(0, words, w):
        whole = b.r(w)
        for k in range(w):
            b.copy(whole._replace(sub=k, width=1), flat[i + k])
        out.append(whole)
    return out


def param_base(b: Builder) -> int:
    """Bank-0 offset of the kernel's parameters."""
    size = max((p.offset + p.size for p in b.pf.params), default=0)
    return b.ctx.target.param_base(size)
