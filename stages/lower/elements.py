"""Elements of vectors: from registers into whole words and back."""

from __future__ import annotations

from ir_format import ptx
from ir_format.model import RZ, Imm, Reg
from stages.lower.builder import Builder, is_signed


def vector_of(x: ptx.Operand) -> tuple[ptx.Operand, ...]:
    """The elements of a vector operand, or the operand alone."""
    return x.elems if isinstance(x, ptx.Vec) else (x,)


def put(b: Builder, to: ptx.Operand, words: Reg, at: int, t: str) -> None:
    """Move the element at byte ``at`` of the loaded words to a destination, extended to its register."""
    if isinstance(to, ptx.Sink):
        return
    d = b.dst(to, t)
    n = b.bits(t) // 8
    if n >= 4:
        for i in range(d.width):
            if 4 * i < n:
                b.copy(b.word(d, i), b.word(words, at // 4 + i))  # type: ignore[arg-type]
            else:
                fill_high(b, d, i, is_signed(t))
        return
    w = b.word(words, at // 4)
    low = at & 3
    if n == 1:
        sel = low | (8 | low) * 0x1110 if is_signed(t) else 0x4440 | low
    else:
        hi = low + 1
        sel = low | hi << 4 | ((8 | hi) * 0x1100 if is_signed(t) else 0x4400)
    b.emit("PRMT", b.word(d, 0), (w, Imm("I", sel), RZ))
    for i in range(1, d.width):
        fill_high(b, d, i, is_signed(t))


def fill_high(b: Builder, d: Reg, i: int, signed: bool) -> None:
    """Extend the word below into word ``i`` of a register."""
    if signed:
        b.emit("SHF.R.S32.HI", b.word(d, i), (RZ, Imm("I", 31), b.word(d, i - 1)))
    else:
        b.copy(d._replace(sub=d.sub + i, width=1), RZ)


def gather(b: Builder, elems: tuple[ptx.Operand, ...], t: str) -> Reg:
    """The elements of a store as one register of whole words."""
    n = b.bits(t) // 8
    total = n * len(elems)
    words = max(1, total // 4)
    if len(elems) == 1:
        return b.in_reg(b.src(elems[0], t), words)
    out = b.r(words)
    if n >= 4:
        k = n // 4
        for i, e in enumerate(elems):
            v = b.src(e, t)
            for j in range(k):
                b.copy(out._replace(sub=i * k + j, width=1), b.word(v, j))
        return out
    per = 4 // n
    for w in range(words):
        parts = [b.in_reg(b.src(e, t)) for e in elems[w * per : (w + 1) * per]]
        to = out._replace(sub=w, width=1)
        if n == 2 or len(parts) == 2:
            b.emit("PRMT", to, (parts[0], Imm("I", 0x5410 if n == 2 else 0x0040), parts[1]))
        else:
            lo, hi = b.r(), b.r()
            b.emit("PRMT", lo, (parts[0], Imm("I", 0x0040), parts[1]))
            b.emit("PRMT", hi, (parts[2], Imm("I", 0x0040), parts[3]))
            b.emit("PRMT", to, (lo, Imm("I", 0x5410), hi))
    return out


def put_extended(b: Builder, to: ptx.Operand, w: Reg, t: str) -> None:
    """A 32-bit value that is already extended, into a wider register."""
    if isinstance(to, ptx.Sink):
        return
    d = b.dst(to, t)
    b.copy(b.lo_r(d), w)
    for i in range(1, d.width):
        fill_high(b, d, i, is_signed(t))
