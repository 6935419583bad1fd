"""A tiny vector evaluator of the PTX subset that our library uses: numpy lanes, divergence by lowest line first.

It has only what the library needs (32- and 64-bit integers, f64 arithmetic, predicates, branches, a few conversions,
approximate seeds). It parses the text itself and imports nothing of the project; f64 arithmetic is that of
:mod:`tests.math.exact`. ``rcp.approx`` is adversarial: the correctly rounded reciprocal moved by a random number of
units in the last place. In f64, seeds have only the upper word and are off by up to 2**-18 or by units of that word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .exact import F32, F64, fma

Array = Any
U64 = np.uint64
M32 = U64(0xFFFFFFFF)
ONE = 0x3FF0000000000000


def mulhi64(a: Array, b: Array) -> Array:
    """High 64 bits of a 64x64-bit product."""
    al, ah, bl, bh = a & M32, a >> U64(32), b & M32, b >> U64(32)
    ll, lh, hl = al * bl, al * bh, ah * bl
    mid = (ll >> U64(32)) + (lh & M32) + (hl & M32)
    return ah * bh + (lh >> U64(32)) + (hl >> U64(32)) + (mid >> U64(32))


def u64_to_f32_up(x: Array) -> Array:
    """f32 bits of unsigned integers rounded up."""
    f = x.astype(np.float64).astype(np.float32)  # near x; then the smallest float not below it
    f = np.nextafter(np.nextafter(f, np.float32(0)), np.float32(0))
    for _ in range(5):
        low = f.astype(np.float64)
        below = np.where(low < 2.0**64, np.minimum(low, 2.0**64 - 2048).astype(U64), U64(2**64 - 1))
        need = (below < x) & (low < 2.0**64)
        f = np.where(need, np.nextafter(f, np.float32(np.inf)), f)
    return f.astype(np.float32).view(np.uint32).astype(U64)


@dataclass(slots=True)
class Ins:
    op: str
    args: list[str]
    guard: str | None
    neg: bool


@dataclass(slots=True)
class Func:
    """A parsed function: names of results and parameters, register widths, code with branch targets as indices."""

    rets: list[str]
    params: list[str]
    width: dict[str, int]
    code: list[Ins] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def parse(text: str) -> Func:
    """Parse one ``.func`` of the library."""
    text = re.sub(r"//[^\n]*", "", text)
    m = re.match(r"\s*\.func\s*\(([^)]*)\)\s*\w+\s*\(([^)]*)\)\s*\{(.*)\}\s*$", text, re.S)
    assert m is not None
    width: dict[str, int] = {}

    def names(decl: str) -> list[str]:
        out = []
        for part in decl.split(","):
            kind, name = part.split()[-2:]
            width[name] = int(kind.strip(".b"))
            out.append(name)
        return out

    f = Func(names(m[1]), names(m[2]), width)
    for raw in m[3].split(";"):
        s = raw.strip()
        while (lab := re.match(r"(\w+):\s*", s)) is not None:
            f.labels[lab[1]] = len(f.code)
            s = s[lab.end() :]
        if not s:
            continue
        if s.startswith(".reg"):
            kind, rest = s[4:].strip().split(None, 1)
            for n in rest.split(","):
                width[n.strip()] = 1 if kind == ".pred" else int(kind[2:])
            continue
        guard, neg = None, False
        if s[0] == "@":
            g, s = s[1:].split(None, 1)
            neg = g[0] == "!"
            guard = g.lstrip("!")
        op, _, rest = s.partition(" ")
        f.code.append(Ins(op, [a.strip() for a in re.findall(r"\{[^}]*\}|[^,\s][^,]*", rest)], guard, neg))
    return f


CMP: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def halves(x: str) -> list[str]:
    """The two operands of ``{lo, hi}``."""
    return [part.strip() for part in x[1:-1].split(",")]


class Machine:
    """Runs a function over lanes. ``rng`` drives the error of the approximate reciprocal (``rcp_ulps`` units at most).

    ``units``: f64 seeds consist of the upper word, off by at most this many units of its last place, instead of by
    2**-18.
    """

    def __init__(self, func: Func, rng: np.random.Generator, rcp_ulps: int = 1, units: int = 0) -> None:
        self.f = func
        self.rng = rng
        self.rcp_ulps = rcp_ulps
        self.units = units

    def run(self, *args: Array) -> tuple[Array, ...]:
        """One uint64 array of bit patterns per parameter; the same per result."""
        n = max(np.size(a) for a in args)
        f = self.f
        self.regs = {r: np.zeros(n, bool if w == 1 else U64) for r, w in f.width.items()}
        for name, a in zip(f.params, args, strict=True):
            self.regs[name] = np.broadcast_to(np.asarray(a, U64), (n,)).copy()
        pc = np.zeros(n, np.int64)
        end = len(f.code)
        with np.errstate(all="ignore"):
            for _ in range(100_000):
                at = int(pc.min())
                if at >= end:
                    return tuple(self.regs[r] for r in f.rets)
                act = pc == at
                ins = f.code[at]
                on = act
                if ins.guard is not None:
                    g = self.regs[ins.guard]
                    on = act & (~g if ins.neg else g)
                pc[act] = at + 1
                if ins.op == "bra":
                    pc[on] = f.labels[ins.args[0]]
                elif ins.op == "ret":
                    pc[on] = end
                elif ins.args[0][0] == "{":
                    x = self.value(ins.args[1], n)
                    for d, part in zip(halves(ins.args[0]), (x & M32, x >> U64(32)), strict=True):
                        self.regs[d] = np.where(on, part, self.regs[d])
                else:
                    d = ins.args[0]
                    self.regs[d] = np.where(on, self.step(ins, n), self.regs[d])
        raise AssertionError("endless loop")

    def value(self, x: str, n: int) -> Array:
        if x[0] == "!":
            return ~self.regs[x[1:]]
        got = self.regs.get(x)
        if got is not None:
            return got
        if x[0] == "{":
            lo, hi = (self.value(part, n) for part in halves(x))
            return lo | hi << U64(32)
        if x[:2] in ("0d", "0f"):
            return np.full(n, int(x[2:], 16), U64)
        return np.full(n, int(x, 0) & 0xFFFFFFFFFFFFFFFF, U64)

    def step(self, ins: Ins, n: int) -> Array:
        op, *mods = ins.op.split(".")
        t = mods[-1] if mods else ""
        v = [self.value(a, n) for a in ins.args[1:]]
        if op == "cvt":
            return self.convert(ins.op, v[0])
        if t == "f64" or ins.op.startswith("setp") and "f64" in mods:
            return self.double(ins.op, v)
        if ins.op == "abs.f32":
            return v[0] & U64(0x7FFFFFFF)
        if ins.op == "setp.lt.f32":
            x, y = (o.astype(np.uint32).view(np.float32) for o in v)
            return x < y
        if op == "rcp":
            return self.rcp(v[0])
        bits = int(t[1:])
        mask = U64((1 << bits) - 1)

        def signed(x: Array) -> Array:
            return x.view(np.int64) if bits == 64 else x.astype(np.uint32).view(np.int32).astype(np.int64)

        if op == "setp":
            num = [x & mask for x in v[:2]]
            if t[0] == "s":
                num = [signed(x) for x in num]
            r = CMP[mods[0]](num[0], num[1])
            return r if len(mods) == 2 else (r & v[2] if mods[1] == "and" else r | v[2])
        if op == "selp":
            return np.where(v[2], v[0], v[1]) & mask
        if op == "clz":
            x = v[0] & mask
            lead = np.zeros(n, U64)
            for k in (32, 16, 8, 4, 2, 1):
                big = x >> U64(k) != 0
                lead = np.where(big, lead + U64(k), lead)
                x = np.where(big, x >> U64(k), x)
            return U64(bits - 1) - lead + (x == 0).astype(U64)
        if op in ("shl", "shr"):
            amount = v[1] & M32
            x = v[0] & mask
            if op == "shr" and t[0] == "s":
                return (signed(x) >> np.minimum(amount, U64(bits - 1)).astype(np.int64)).view(U64) & mask
            small = np.minimum(amount, U64(63))
            r = x << small if op == "shl" else x >> small
            return np.where(amount >= bits, U64(0), r & mask)
        if op in ("min", "max"):
            assert t == "s32"
            return (np.minimum if op == "min" else np.maximum)(signed(v[0]), signed(v[1])).view(U64) & mask
        if ins.op in ("mul.hi.u32", "mad.wide.u32"):
            product = (v[0] & M32) * (v[1] & M32)
            return product >> U64(32) if op == "mul" else product + v[2]
        if op == "mul":
            return mulhi64(v[0], v[1]) if mods[0] == "hi" else (v[0] * v[1]) & mask
        simple: dict[str, Callable[[], Array]] = {
            "mov": lambda: v[0],
            "add": lambda: v[0] + v[1],
            "sub": lambda: v[0] - v[1],
            "neg": lambda: U64(0) - v[0],
            "and": lambda: v[0] & v[1],
            "or": lambda: v[0] | v[1],
            "xor": lambda: v[0] ^ v[1],
        }
        return simple[op]() & mask

    def double(self, op: str, v: list[Array]) -> Array:
        """f64 arithmetic on bit patterns."""
        kind = op.partition(".")[0]
        x = v[0].view(np.float64)
        if op == "neg.f64":
            return v[0] ^ U64(F64.sign)
        if op == "setp.nan.f64":
            return np.isnan(x)
        if op == "setp.eq.or.f64":
            return (x == v[1].view(np.float64)) | v[2]
        if op in ("setp.lt.f64", "setp.eq.f64", "setp.neu.f64"):
            y = v[1].view(np.float64)
            return x < y if op == "setp.lt.f64" else x == y if op == "setp.eq.f64" else x != y
        if op == "abs.f64":
            return v[0] & U64(F64.sign - 1)
        if kind in ("add", "sub", "mul", "fma"):
            mode = op.split(".")[1]
            if mode == "rn" and kind != "fma":
                y = v[1].view(np.float64)
                return (x * y if kind == "mul" else x + y if kind == "add" else x - y).view(U64)
            terms: dict[str, Callable[..., tuple[int, int, int]]] = {
                "add": lambda a, b: (a, ONE, b), "sub": lambda a, b: (a, ONE, b ^ F64.sign), "mul": lambda a,
                b: (a, b, (a ^ b) & F64.sign), "fma": lambda a, b, c: (a, b, c),
            }  # fmt: skip
            got = [fma(F64, *terms[kind](*ops), mode) for ops in zip(*(o.tolist() for o in v), strict=True)]
            return np.array([F64.nan if g is None else g for g in got], U64)
        assert op in ("rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64")
        if self.units:
            x = (v[0] & ~M32).view(np.float64)
        x = np.where(np.abs(x) < 2.0**-1022, np.copysign(0.0, x), x)
        seed = 1 / x if kind == "rcp" else np.where(x == 0, np.copysign(np.inf, x), 1 / np.sqrt(x))
        if self.units:
            high = (seed.view(U64) + U64(1 << 31)) >> U64(32)  # to nearest
            move = self.rng.integers(-self.units, self.units + 1, seed.shape)
            return (high.astype(np.int64) + np.where(np.isfinite(seed) & (seed != 0), move, 0)).astype(U64) << U64(32)
        off = seed * (1 + self.rng.uniform(-(2.0**-18), 2.0**-18, seed.shape))
        return off.view(U64) & ~M32

    def convert(self, op: str, x: Array) -> Array:
        kind, *mods = op.split(".")
        if mods[-2:] == ["f64", "f32"]:
            f = x.astype(np.uint32)
            if "ftz" in mods:
                f = np.where(f & 0x7F800000 == 0, f & 0x80000000, f).astype(np.uint32)
            return f.view(np.float32).astype(np.float64).view(U64)
        if mods[-2:] == ["f32", "f64"]:
            return np.array([self.narrow(int(o), mods[0], "ftz" in mods) for o in x], U64)
        if op == "cvt.u32.u64":
            return x & M32
        if op == "cvt.u64.u32":
            return x & M32
        if op == "cvt.s64.s32":
            return x.astype(np.uint32).view(np.int32).astype(np.int64).view(U64)
        if op == "cvt.rp.f32.u64":
            return u64_to_f32_up(x)
        assert op == "cvt.rzi.u64.f32"
        f = x.astype(np.uint32).view(np.float32).astype(np.float64)
        f = np.nan_to_num(np.trunc(f), nan=0.0, posinf=2.0**65, neginf=0.0)
        return np.where(f >= 2.0**64, U64(2**64 - 1), np.where(f <= 0, 0.0, np.minimum(f, 2.0**64 - 2048)).astype(U64))

    def narrow(self, x: int, mode: str, ftz: bool) -> int:
        """f32 bits of f64 bits."""
        sign = F32.sign if x & F64.sign else 0
        if F64.is_nan(x):
            return F32.nan
        if F64.is_inf(x):
            return sign | F32.inf
        s, m, e = F64.split(x)
        return F32.pack(s, m, e, False, mode, ftz)

    def rcp(self, x: Array) -> Array:
        f = x.astype(np.uint32).view(np.float32)
        r = (1.0 / f.astype(np.float64)).astype(np.float32).view(np.uint32).astype(np.int64)
        finite = (r & 0x7FFFFFFF) < 0x7F800000
        r = r + np.where(finite, self.rng.integers(-self.rcp_ulps, self.rcp_ulps + 1, r.shape), 0)
        return (r & 0xFFFFFFFF).astype(U64)
