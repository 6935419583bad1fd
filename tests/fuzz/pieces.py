"""Random kernels that use values by their parts: 128 bits by 64, words by halves and bytes, vectors from memory, a
frame of local memory written and read in other widths. Programs of :mod:`halves` with these steps, against Python
integers.

    python -m tests.fuzz.halves --pieces [--seed N] [--count N] [--turns] ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tests.fuzz import halves
from tests.fuzz.halves import INPUTS, Case, D, Made, State, Step, W, Words, execute, given, lines, signed

WIDE: Final = 3  # registers of 128 bits
NARROW: Final = 4  # registers of 16 bits
FRAME: Final = 16  # bytes of local memory
_SELECTORS: Final = (0x3214, 0x7210, 0x5410, 0x3276, 0x0123, 0x4567, 0x3254, 0x9210)
#: Registers of the frame's accesses: the type, bytes, places.
_ACCESSES: Final = {
    "q": ("b128", 16, (0,)),
    "d": ("u64", 8, (0, 8)),
    "w": ("u32", 4, (0, 4, 8, 12)),
    "h": ("u16", 2, tuple(range(0, 16, 2))),
    "b": ("u8", 1, tuple(range(16))),
}


def _field(to: int, value: int, at: int, bits: int, whole: int) -> int:
    mask = (1 << bits) - 1 << at & whole
    return to & ~mask | value << at & mask


def _permuted(a: int, b: int, selector: int) -> int:
    out = 0
    for i in range(4):
        s = selector >> 4 * i & 15
        byte = (a | b << 32) >> 8 * (s & 7) & 255
        out |= ((255 if byte >> 7 else 0) if s & 8 else byte) << 8 * i
    return out


class Writer(halves.Writer):
    """Draws a program."""

    def q(self) -> str:
        return f"%q{self.rng.randrange(WIDE)}"

    def h(self) -> str:
        return f"%h{self.rng.randrange(NARROW)}"

    def wide_parts(self) -> Step:
        """128 bits made of two registers, taken apart, moved, or with one half exchanged."""
        q, other, d, e = self.q(), self.q(), self.d(), self.d()
        kind = self.rng.randrange(5)
        if kind == 0:
            return Step(f"mov.b128 {q}, {{{d}, {e}}};", lambda s: s.__setitem__(q, s[d] | s[e] << 64))
        if kind == 1 and d != e:
            return Step(f"mov.b128 {{{d}, {e}}}, {q};", lambda s: s.update({d: s[q] & D, e: s[q] >> 64}))
        if kind == 2:
            return Step(f"mov.b128 {q}, {other};", lambda s: s.__setitem__(q, s[other]))
        if kind == 3:
            high = self.rng.random() < 0.5
            parts = f"%x, {d}" if high else f"{d}, %x"
            text = f"{{ .reg .b64 %x; mov.b128 {{{parts}}}, {q}; }}"
            return Step(text, lambda s: s.__setitem__(d, s[q] >> 64 if high else s[q] & D))
        low = self.rng.random() < 0.5
        parts = f"{d}, %y" if low else f"%x, {d}"
        text = f"{{ .reg .b64 %x, %y; mov.b128 {{%x, %y}}, {q}; mov.b128 {q}, {{{parts}}}; }}"
        return Step(text, lambda s: s.__setitem__(q, s[q] >> 64 << 64 | s[d] if low else s[q] & D | s[d] << 64))

    def narrow_parts(self) -> Step:
        """Words and pairs made of 16-bit registers, and taken apart."""
        a, d, g, h = self.w(), self.d(), self.h(), self.h()
        kind = self.rng.randrange(6)
        if kind == 0 or (kind == 1 and g == h):
            return Step(f"mov.b32 {a}, {{{g}, {h}}};", lambda s: s.__setitem__(a, s[g] | s[h] << 16))
        if kind == 1:
            return Step(f"mov.b32 {{{g}, {h}}}, {a};", lambda s: s.update({g: s[a] & 0xFFFF, h: s[a] >> 16}))
        if kind == 2:
            four = [self.h() for _ in range(4)]
            text = f"mov.b64 {d}, {{{', '.join(four)}}};"
            return Step(text, lambda s: s.__setitem__(d, sum(s[x] << 16 * i for i, x in enumerate(four))))
        if kind == 3:
            four = self.rng.sample([f"%h{i}" for i in range(NARROW)], 4)
            text = f"mov.b64 {{{', '.join(four)}}}, {d};"
            return Step(text, lambda s: s.update({x: s[d] >> 16 * i & 0xFFFF for i, x in enumerate(four)}))
        if kind == 4:
            high = self.rng.random() < 0.5
            parts = f"%x, {g}" if high else f"{g}, %y"
            text = f"{{ .reg .b16 %x, %y; mov.b32 {{%x, %y}}, {a}; mov.b32 {a}, {{{parts}}}; }}"
            return Step(text, lambda s: s.__setitem__(a, _field(s[a], s[g], 16 if high else 0, 16, W)))
        text = f"{{ .reg .b16 %x, %y; mov.b32 {{%x, %y}}, {a}; add.u16 %y, %y, {g}; mov.b32 {a}, {{%y, %x}}; }}"
        return Step(text, lambda s: s.__setitem__(a, (s[a] & 0xFFFF) << 16 | (s[a] >> 16) + s[g] & 0xFFFF))

    def fields(self) -> Step:
        """Bit fields, bytes in another order, 16-bit arithmetic and conversions."""
        r = self.rng
        a, b, d, e, g, h = self.w(), self.w(), self.d(), self.d(), self.h(), self.h()
        kind = r.randrange(6)
        if kind == 0:
            n, at = r.choice((8, 16, 4, 1)), r.choice((0, 8, 16, 24, 5))
            return Step(f"bfi.b32 {a}, {b}, {a}, {at}, {n};", lambda s: s.__setitem__(a, _field(s[a], s[b], at, n, W)))
        if kind == 1:
            n, at = r.choice((8, 16, 32, 48, 24)), r.choice((0, 8, 16, 32, 40, 24))
            return Step(f"bfi.b64 {d}, {e}, {d}, {at}, {n};", lambda s: s.__setitem__(d, _field(s[d], s[e], at, n, D)))
        if kind == 2:
            c = r.choice(_SELECTORS)
            return Step(f"prmt.b32 {a}, {a}, {b}, {c};", lambda s: s.__setitem__(a, _permuted(s[a], s[b], c)))
        if kind == 3:
            return Step(f"cvt.u16.u32 {g}, {a};", lambda s: s.__setitem__(g, s[a] & 0xFFFF))
        if kind == 4:
            return Step(f"cvt.s32.s16 {a}, {g};", lambda s: s.__setitem__(a, signed(s[g], 16) & W))
        name, f = r.choice(
            (
                ("add.u16", lambda x, y: x + y),
                ("mul.lo.u16", lambda x, y: x * y),
                ("xor.b16", lambda x, y: x ^ y),
                ("min.u16", min),
            )
        )
        return Step(f"{name} {g}, {g}, {h};", lambda s: s.__setitem__(g, f(s[g], s[h]) & 0xFFFF))

    def vectors(self) -> Step:
        """A vector of the input."""
        r = self.rng
        if r.random() < 0.5:
            n = r.choice((2, 4))
            to = r.sample([f"%w{i}" for i in range(self.made.words)], n)
            at = r.randrange(INPUTS // n) * n
            text = f"ld.global.v{n}.u32 {{{', '.join(to)}}}, [%in+{4 * at}];"
            return Step(text, lambda s: s.update({x: s[f"in{at + i}"] for i, x in enumerate(to)}))
        to = r.sample([f"%d{i}" for i in range(self.made.pairs)], 2)
        at = r.randrange(INPUTS // 4) * 4
        text = f"ld.global.v2.u64 {{{', '.join(to)}}}, [%in+{4 * at}];"

        def does(s: State) -> None:
            for i, x in enumerate(to):
                s[x] = s[f"in{at + 2 * i}"] | s[f"in{at + 2 * i + 1}"] << 32

        return Step(text, does)

    def frame(self) -> Step:
        """A load from or a store to the frame."""
        r = self.rng
        load = r.random() < 0.5
        kind = r.choice((*_ACCESSES, "v"))
        if kind == "v":
            four = r.sample([f"%w{i}" for i in range(self.made.words)], 4)
            names = f"{{{', '.join(four)}}}"
            if load:
                text = f"ld.local.v4.u32 {names}, [loc];"
                return Step(text, lambda s: s.update({x: s["frame"] >> 32 * i & W for i, x in enumerate(four)}))
            text = f"st.local.v4.u32 [loc], {names};"
            return Step(text, lambda s: s.__setitem__("frame", sum(s[x] << 32 * i for i, x in enumerate(four))))
        type_, size, places = _ACCESSES[kind]
        at, bits, whole = r.choice(places), 8 * size, (1 << 8 * FRAME) - 1
        x = {"q": self.q, "d": self.d, "w": self.w, "h": self.h, "b": self.w}[kind]()
        if load:
            text = f"ld.local.{type_} {x}, [loc+{at}];"
            return Step(text, lambda s: s.__setitem__(x, s["frame"] >> 8 * at & (1 << bits) - 1))
        text = f"st.local.{type_} [loc+{at}], {x};"
        return Step(text, lambda s: s.__setitem__("frame", _field(s["frame"], s[x], 8 * at, bits, whole)))

    def step(self) -> Step:
        if self.rng.random() > 0.55:
            return super().step()
        kinds: tuple[Callable[[], Step], ...] = (
            self.wide_parts, self.wide_parts, self.narrow_parts, self.narrow_parts, self.fields, self.fields,
            self.vectors, self.frame,
        )  # fmt: skip
        s = self.rng.choice(kinds)()
        if self.rng.random() < 0.45 and s.text[0] != "{":
            s.guard = self.p(), self.rng.random() < 0.5
        return s

    def program(self) -> Made:
        made = super().program()
        if self.rng.random() < 0.3:
            made.stores = made.stores[:3]
        for k in range(WIDE):
            made.stores += [(f"%q{k}", f"q{part}") for part in range(4) if self.rng.random() < 0.5]
        made.stores += [(f"%h{k}", "h") for k in range(NARROW) if self.rng.random() < 0.6]
        return made


def text(made: Made, counters: int) -> str:
    """The program as PTX for sm_75 and up."""
    loads = [f"ld.global.u32 %w{k}, [%in+{k % INPUTS * 4}];" for k in range(made.words)]
    loads += [f"ld.global.u64 %d{k}, [%in+{k % (INPUTS // 2) * 8}];" for k in range(made.pairs)]
    loads += [f"ld.global.u16 %h{k}, [%in+{k * 6}];" for k in range(NARROW)]
    loads += [f"ld.global.v2.u64 {{%e, %f}}, [%in+{16 * k}]; mov.b128 %q{k}, {{%e, %f}};" for k in range(WIDE)]
    loads += ["st.local.b128 [loc], %q0;"]
    loads += [f"setp.lt.u32 %p{k}, %w{k}, %w{k + 1};" for k in range(3)] + ["add.cc.u32 %t, %w0, %w1;"]
    stores = []
    for n, (r, part) in enumerate(made.stores):
        source = "%t"
        if part[0] == "q":
            k = int(part[1])
            stores.append(f"mov.b128 {{%e, %f}}, {r}; mov.b64 {{%t, %u}}, {'%f' if k > 1 else '%e'};")
            source = "%u" if k & 1 else "%t"
        elif part == "h":
            stores.append(f"cvt.u32.u16 %t, {r};")
        elif part == "hi":
            stores.append(f"shr.u64 %e, {r}, 32; cvt.u32.u64 %t, %e;")
        elif part == "lo":
            stores.append(f"cvt.u32.u64 %t, {r};")
        else:
            source = r
        stores.append(f"st.global.u32 [%out+{4 * n}], {source};")
    body = "\n".join([*loads, *lines(made.steps), *stores])
    return f""".version 9.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{{
.local .align 16 .b8 loc[{FRAME}];
.reg .b64 %in, %out, %e, %f;
.reg .b32 %t, %u, %w<{made.words}>, %n<{counters + 1}>;
.reg .b64 %d<{made.pairs}>;
.reg .b128 %q<{WIDE}>; .reg .b16 %h<{NARROW}>;
.reg .pred %p<3>, %pl;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
mov.u32 %t, %tid.x;
mad.wide.u32 %in, %t, {INPUTS * 4}, %in;
mad.wide.u32 %out, %t, {len(made.stores) * 4}, %out;
{body}
ret;
}}
"""


def expected(made: Made, values: Words) -> Words:
    """The words that every thread stores, in Python integers."""
    out = np.zeros((len(values), len(made.stores)), np.uint32)
    for thread, row in enumerate(values.tolist()):
        whole = sum(x << 32 * i for i, x in enumerate(row))
        s: State = {f"in{k}": x for k, x in enumerate(row)}
        s |= {f"%w{k}": row[k % INPUTS] for k in range(made.words)}
        s |= {f"%d{k}": whole >> 64 * (k % (INPUTS // 2)) & D for k in range(made.pairs)}
        s |= {f"%h{k}": whole >> 48 * k & 0xFFFF for k in range(NARROW)}
        s |= {f"%q{k}": whole >> 128 * k & (1 << 128) - 1 for k in range(WIDE)}
        s |= {f"%p{k}": int(s[f"%w{k}"] < s[f"%w{k + 1}"]) for k in range(3)}
        s |= {"frame": s["%q0"], "cc": s["%w0"] + s["%w1"] >> 32}
        execute(made.steps, s)
        for n, (r, part) in enumerate(made.stores):
            v = s[r]
            out[thread, n] = (v >> 32 * int(part[1]) if part[0] == "q" else v >> 32 if part == "hi" else v) & W
    return out


def case(seed: int) -> Case:
    """The program of a seed."""
    writer = Writer(seed)
    made = writer.program()
    values = given(seed)
    return Case(text(made, writer.counters), values, expected(made, values))
