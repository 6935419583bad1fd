"""Memory of random programs: a few bytes of each space that belong to one thread, reached through several pointers and
in several widths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.fuzz.forms import KINDS
from tests.fuzz.writer import Writer

#: Bytes of each region that a thread owns.
OWN: Final = 64
#: Threads of a block.
BLOCK: Final = 64
_PLAIN: Final = (
    ("u8", "w", 1), ("s8", "w", 1), ("u16", "w", 2), ("s16", "w", 2), ("b32", "w", 4), ("u32", "w", 4), ("b64", "l", 8),
    ("s32", "l", 4), ("u32", "l", 4), ("u8", "l", 1),
    ("s16", "l", 2), ("u16", "h", 2), ("b16", "h", 2), ("s8", "h", 1), ("u8", "h", 1), ("f32", "f", 4), ("f64", "d", 8),
    ("b16", "e", 2), ("b32", "v", 4), ("b32", "y", 4),
    ("b32", "w", 4), ("b64", "l", 8),
)  # fmt: skip
_ATOMS: Final = (
    ("add.u32", "w", 1), ("min.s32", "w", 1), ("max.u32", "w", 1), ("and.b32", "w", 1), ("or.b32", "w", 1),
    ("xor.b32", "w", 1), ("exch.b32", "w", 1), ("cas.b32", "w", 2),
    ("inc.u32", "w", 1), ("dec.u32", "w", 1), ("add.u64", "l", 1), ("exch.b64", "l", 1), ("cas.b64", "l", 2),
    ("max.s64", "l", 1), ("and.b64", "l", 1), ("min.u64", "l", 1),
)  # fmt: skip
#: Operations whose result does not depend on the order of threads, one for each word of the common memory.
COMMON: Final = ("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "max.s32", "min.u32")


@dataclass(frozen=True, slots=True)
class Pointer:
    """``base``: an address register (or the name of a parameter), ``bias`` bytes before a region of `OWN` bytes.
    Registers of 32 bits hold addresses of windows."""

    space: str
    base: str
    atomic: bool = True
    bias: int = 0

    @property
    def narrow(self) -> bool:
        return self.base.startswith("%w")

    def at(self, offset: int) -> str:
        """The address operand of an access this many bytes into the region."""
        offset += self.bias
        return f"[{self.base}+{offset}]" if offset else f"[{self.base}]"


class Memory:
    """The pointers of a function."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self.writable: list[Pointer] = []
        self.readable: list[Pointer] = []
        self.common: list[Pointer] = []

    def place(self, pointers: list[Pointer], size: int) -> tuple[str, str]:
        """A space suffix and an aligned address within a region."""
        rng = self.w.rng
        to = rng.choice(pointers)
        fixed = rng.randrange(OWN // size) * size
        if rng.random() < 0.6 or to.space == ".param":
            return to.space, to.at(fixed)
        half = OWN // 2  # a varying part below the half, and a fixed one
        return to.space, self.changing(to, half // size, size).at(fixed % half)

    def changing(self, to: Pointer, count: int, size: int) -> Pointer:
        """``to`` plus one of so many multiples of a size, computed in one of the ways that compilers and people use."""
        w, rng = self.w, self.w.rng
        index = w.new("w")
        w.put(f"and.b32 {index}, {w.pick('u' if rng.random() < 0.2 and w.scope['u'] else 'w')}, {count - 1};")
        if to.narrow:
            address = w.new("w")
            w.put(f"mad.lo.s32 {address}, {index}, {size}, {to.base};")
            return Pointer(to.space, address, to.atomic, to.bias)
        address, wide = w.new("l"), w.new("l")
        bias, base = to.bias, to.base
        shift = size.bit_length() - 1
        kind = rng.randrange(8)
        if kind == 0:
            w.put(f"mad.wide.u32 {address}, {index}, {size}, {base};")
        elif kind == 1:
            w.put(
                f"shl.b32 {index}, {index}, {shift};",
                f"cvt.u64.u32 {wide}, {index};",
                f"add.s64 {address}, {base}, {wide};",
            )
        elif kind == 2:  # below zero
            less = rng.choice((1, count, 100, 1 << 20))
            w.put(f"sub.s32 {index}, {index}, {less};", f"mad.wide.s32 {address}, {index}, {size}, {base};")
            bias += less * size
        elif kind == 3:
            less = rng.choice((0, count, 1000))
            w.put(
                f"add.s32 {index}, {index}, {-less};",
                f"cvt.s64.s32 {wide}, {index};",
                f"shl.b64 {wide}, {wide}, {shift};",
                f"add.s64 {address}, {base}, {wide};",
            )
            bias += less * size
        elif kind == 4:  # downwards
            w.put(
                f"mul.wide.u32 {wide}, {index}, {size};",
                f"sub.s64 {address}, {base}, {wide};",
                f"add.s64 {address}, {address}, {(count - 1) * size};",
            )
        elif kind == 5:  # near 4 GiB and beyond: there the word wraps round
            less = rng.choice((count, 256, 4096, count // 2 or 1))
            w.put(f"add.s32 {index}, {index}, {-less};", f"cvt.u64.u32 {wide}, {index};")
            if less < count:
                over = w.new("l")
                w.put(
                    f"shr.u32 {index}, {index}, 31;",
                    f"xor.b32 {index}, {index}, 1;",
                    f"cvt.u64.u32 {over}, {index};",
                    f"shl.b64 {over}, {over}, 32;",
                    f"add.s64 {wide}, {wide}, {over};",
                )
            w.put(
                f"mad.lo.s64 {address}, {wide}, {size}, {base};",
                f"sub.s64 {address}, {address}, {(2**32 - less) * size};",
            )
        elif kind == 6:  # far, and back
            far = rng.choice(
                (
                    1 << 23,
                    (1 << 23) - 8,
                    -(1 << 23),
                    -(1 << 23) - 16,
                    1 << 31,
                    2**32 - 64,
                    -(2**32),
                    2**32 + 8,
                    1 << 40,
                    -(1 << 33) + 16,
                    0x7FFFFFF0,
                    -0x7FFFFFF0,
                )
            )
            w.put(
                f"add.s64 {address}, {base}, {far};",
                f"mul.wide.u32 {wide}, {index}, {size};",
                f"add.s64 {address}, {address}, {wide};",
            )
            if abs(bias - far) >> 31 or rng.random() < 0.3:
                w.put(
                    f"{rng.choice((f'add.s64 {address}, {address}, {-far}', f'sub.s64 {address}, {address}, {far}'))};"
                )
            else:
                bias -= far
        else:  # two consecutive sums
            other = w.new("l")
            w.put(
                f"cvt.u64.u32 {wide}, {index};",
                f"shl.b64 {wide}, {wide}, {shift};",
                f"and.b64 {other}, {w.pick('l')}, {rng.choice((0xFFFFFFFF, -1, 0xFFFF, 0x7FFFFFFFFF))};",
            )
            w.put(
                f"add.s64 {address}, {base}, {other};",
                f"add.s64 {address}, {address}, {wide};",
                f"sub.s64 {address}, {address}, {other};",
            )
        return Pointer(to.space, address, to.atomic, bias)

    def away(self) -> None:
        """More pointers derived from the existing ones: from further away, and of 32 bits."""
        w, rng = self.w, self.w.rng
        for p in [*self.writable]:
            if rng.random() < 0.4:
                bias = rng.choice(
                    (
                        -64,
                        16,
                        4096,
                        -4096,
                        1 << 22,
                        0x7FFFFF,
                        -0x800000,
                        1 << 24,
                        -(1 << 24) - 8,
                        0x7FFFFF00,
                        -0x7FFFFF00,
                    )
                )
                name = w.new("l")
                w.put(f"add.s64 {name}, {p.base}, {-bias};")
                self.writable.append(Pointer(p.space, name, p.atomic, p.bias + bias))
            if p.space in (".shared", ".local") and rng.random() < 0.5:
                name = w.new("w")
                w.put(f"cvt.u32.u64 {name}, {p.base};")
                self.writable.append(Pointer(p.space, name, p.atomic, p.bias))

    def vector(self, size: int) -> int:
        return self.w.rng.choice([n for n in (1, 1, 1, 2, 4) if n * size <= 16])

    def load(self, guard: str = "") -> None:
        """A load; under a guard, into registers that have values."""
        w, rng = self.w, self.w.rng
        kind_of, kind, size = rng.choice(_PLAIN)
        count = self.vector(size)
        source = self.readable if rng.random() < 0.25 and self.readable else self.writable
        space, address = self.place(source, size * count)
        cache = rng.choice(
            (
                "",
                "",
                "",
                ".volatile" if space in (".global", ".shared", "") else "",
                ".nc" if space == ".global" and source is self.readable else "",
            )
        )
        names: list[str] = []
        made: list[str] = []
        for _ in range(count):
            name = rng.choice(w.scope[kind])
            if (not guard and rng.random() < w.fresh) or name in names:
                name = w.new(kind)
                if guard:
                    w.put(f"mov.{KINDS[kind][0]} {name}, {rng.choice(w.scope[kind])};")
                made.append(name)
            names.append(name)
        listed = names[0] if count == 1 else "{" + ",".join(names) + "}"
        order = f"{cache}{space}" if cache == ".volatile" else f"{space}{cache}"
        w.put(f"{guard}ld{order}{'' if count == 1 else f'.v{count}'}.{kind_of} {listed}, {address};")
        for name in made:
            w.show(kind, name)

    def store(self, guard: str = "") -> None:
        """A store; for floats, of their cleaned bits."""
        w, rng = self.w, self.w.rng
        kind_of, kind, size = rng.choice(_PLAIN)
        count = self.vector(size)
        space, address = self.place(self.writable, size * count)
        names: list[str] = []
        for _ in range(count):
            name = w.pick(kind)
            if kind in "fdevy":
                name = w.bits(kind, name)[1]
            elif kind == "w" and rng.random() < 0.1:
                name = w.pick("u") if w.scope["u"] else name
            names.append(name)
        listed = names[0] if count == 1 else "{" + ",".join(names) + "}"
        form = {"f32": "b32", "f64": "b64", "s8": "u8", "s16": "u16", "s32": "u32"}.get(kind_of, kind_of)
        order = f".volatile{space}" if space in (".global", ".shared") and rng.random() < 0.1 else space
        w.put(f"{guard}st{order}{'' if count == 1 else f'.v{count}'}.{form} {address}, {listed};")

    def atom(self, guard: str = "") -> None:
        """An atomic operation on memory of the thread, or on shared memory if the order makes no difference."""
        w, rng = self.w, self.w.rng
        if self.common and rng.random() < 0.4:
            to = rng.choice(self.common)
            at = rng.randrange(len(COMMON))
            w.put(f"{guard}red{to.space}.{COMMON[at]} [{to.base}+{4 * at}], {w.pick('w')};")
            return
        pointers = [p for p in self.writable if p.atomic]
        if not pointers:
            return
        op, kind, operands = rng.choice(_ATOMS)
        space, address = self.place(pointers, 4 if kind == "w" else 8)
        values = ", ".join(w.pick(kind) for _ in range(operands))
        name = rng.choice(w.scope[kind]) if guard or rng.random() < 0.5 else w.new(kind)
        w.put(f"{guard}atom{space}.{op} {name}, {address}, {values};")
        if name not in w.scope[kind]:
            w.show(kind, name)

    def access(self, guard: str = "") -> None:
        kind = self.w.rng.random()
        if kind < 0.5:
            self.load(guard)
        elif kind < 0.88:
            self.store(guard)
        else:
            self.atom(guard)
