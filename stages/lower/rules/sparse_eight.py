"""mma.sp.m16n8k64 of eight-bit floats on sm_90 to sm_110, which have neither the product nor one of halves with the
same metadata.

The sparse factor is expanded: every stored pair of bytes, with its four bits of metadata, becomes four columns. Thread
t of a group of four then holds the columns 8t to 8t + 7 and 32 + 8t to 32 + 8t + 7 of its rows. It has the rows 16i +
4t to 16i + 4t + 3 of the other factor, for i = 0..3; these are redistributed to match. The order of the columns does
not matter to the sum. Four products of halves follow.
"""

from __future__ import annotations

from ir_format.model import PT, RZ, Imm, Name, Reg
from stages.lower.builder import Builder
from stages.lower.rules.integer import compare, logic

_GROUP = Imm("I", 0x1C03)  # lanes of the own group of four


def _shuffle(b: Builder, v: Reg, lane: Reg | Imm) -> Reg:
    d = b.r()
    b.emit("SHFL.IDX", (PT, d), (v, lane, _GROUP), attrs={"warp": 1})
    return d


def _dealt(b: Builder, rb: Reg, t: Reg) -> list[Reg]:
    """Four columns of the other factor to a word, in the order 2t, 2t + 1, 8 + 2t, 8 + 2t + 1."""
    twice = b.r()
    b.emit("SHF.L.U32", twice, (t, Imm("I", 1), RZ))
    upper, _ = compare(b, "GE", "u32", t, Imm("I", 2))
    out: list[Reg] = []
    for half in range(2):
        for k in range(2):
            source = b.r()
            b.emit("IADD3", source, (twice, Imm("I", k), RZ))
            low, high = (_shuffle(b, rb._replace(sub=rb.sub + 2 * half + i, width=1), source) for i in range(2))
            d = b.r()
            b.select(d, high, low, upper)
            out.append(d)
    return out


def _spread(b: Builder, stored: Reg, upper: bool, choice: Reg, shift: int) -> Reg:
    """Two stored bytes (the upper or lower ones of a word) to their places among four; ``choice`` has two bits of each
    at bit ``shift``."""
    total: Reg | None = None
    for k in range(2):
        byte, place, left, moved = b.r(), b.r(), b.r(), b.r()
        b.emit("PRMT", byte, (stored, Imm("I", 0x4440 | (2 * upper + k)), RZ))
        at = shift + 2 * k - 3  # the place times 8
        if at > 0:
            b.emit("SHF.R.U32.HI", place, (RZ, Imm("I", at), choice))
        elif at < 0:
            b.emit("SHF.L.U32", place, (choice, Imm("I", -at), RZ))
        else:
            b.copy(place, choice)
        logic(b, left, 0xC0, place, Imm("I", 0x18))
        b.emit("SHF.L.U32", moved, (byte, left, RZ))
        if total is None:
            total = moved
        else:
            joined = b.r()
            logic(b, joined, 0xFC, total, moved)
            total = joined
    assert total is not None
    return total


def _halves(b: Builder, word: Reg, t: str) -> list[Reg]:
    """The two pairs of halves of four bytes."""
    out = []
    for part in ("", "H1"):
        d = b.r()
        b.emit(f"F2FP.F16.{t.upper()}.UNPACK_B", d, (word._replace(mod=part),))
        out.append(d)
    return out


def sparse_eight(b: Builder, dt: str, at: str, bt: str, factors: tuple[Reg, Reg, Reg], meta: Reg) -> Reg:
    """The registers of ``a * b + c``."""
    ra, rb, rc = factors
    lane, t, eight = b.r(), b.r(), b.r()
    b.emit("S2R", lane, (Name("N", "SR_LANEID"),))
    logic(b, t, 0xC0, lane, Imm("I", 3))
    b.emit("SHF.L.U32", eight, (t, Imm("I", 3), RZ))
    columns = _dealt(b, rb, t)
    choices: list[Reg] = []
    for source in range(4):  # rows g and g + 8 of the lower columns, then of the upper ones
        d = b.r()
        b.emit("SHF.R.U32.HI", d, (RZ, eight, _shuffle(b, meta, Imm("I", source))))
        choices.append(d)
    nc = 4 if dt == "f32" else 2
    total = Reg("R", -1, 0, nc)
    for half in range(2):
        for k in range(2):
            rows = [
                _halves(
                    b,
                    _spread(
                        b, ra._replace(sub=ra.sub + 2 * half + row, width=1), k == 1, choices[2 * half + row], 4 * k
                    ),
                    at,
                )
                for row in range(2)
            ]
            column = _halves(b, columns[2 * half + k], bt)
            wide, deep, out = b.r(4), b.r(2), b.r(nc)
            for i in range(4):
                b.copy(wide._replace(sub=i, width=1), rows[i % 2][i // 2])
            for i in range(2):
                b.copy(deep._replace(sub=i, width=1), column[i])
            b.emit(f"HMMA.16816.{dt.upper()}", out, (wide, deep, total), attrs={"warp": 1})
            total = out
    done = b.r(nc)
    for i in range(nc):
        x, y = (v._replace(sub=v.sub + i, width=1) for v in (total, rc))
        b.emit("FADD" if dt == "f32" else "HADD2", done._replace(sub=i, width=1), (x, y))
    return done
