"""Memory of random programs: a few bytes of each space that belong to one thread, reached through several pointers and in several widths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.fuzz.forms import KINDS
from tests.fuzz.writer import Writer

#: Bytes of each region that a thread owns.
OWN: Final = 64
_PLAIN: Final = (
    ("u8", "w", 1), ("s8", "w", 1), ("u16", "w", 2), ("s16", "w", 2), ("b32", "w", 4), ("u32", "w", 4), ("b64", "l", 8), ("s32", "l", 4), ("u32", "l", 4), ("u8", "l", 1),
    ("s16", "l", 2), ("u16", "h", 2), ("b16", "h", 2), ("s8", "h", 1), ("u8", "h", 1), ("f32", "f", 4), ("f64", "d", 8), ("b16", "e", 2), ("b32", "v", 4),
    ("b32", "w", 4), ("b64", "l", 8),
)  # fmt: skip
_ATOMS: Final = (
    ("add.u32", "w", 1), ("min.s32", "w", 1), ("max.u32", "w", 1), ("and.b32", "w", 1), ("or.b32", "w", 1), ("xor.b32", "w", 1), ("exch.b32", "w", 1), ("cas.b32", "w", 2),
    ("inc.u32", "w", 1), ("dec.u32", "w", 1), ("add.u64", "l", 1), ("exch.b64", "l", 1), ("cas.b64", "l", 2), ("max.s64", "l", 1), ("and.b64", "l", 1), ("min.u64", "l", 1),
)  # fmt: skip
#: Operations whose result does not depend on the order of threads, one for each word of the common memory.
COMMON: Final = ("add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "max.s32", "min.u32")


@dataclass(frozen=True, slots=True)
class Pointer:
    """``base``: an address register (or the name of a parameter) of a region of `OWN` bytes."""

    space: str
    base: str
    atomic: bool = True


class Memory:
    """The pointers of a function."""

    def __init__(self, w: Writer) -> None:
        self.w = w
        self.writable: list[Pointer] = []
        self.readable: list[Pointer] = []
        self.common: list[Pointer] = []

    def place(self, pointers: list[Pointer], size: int) -> tuple[str, str]:
        """A space suffix and an aligned address within a region."""
        w, rng = self.w, self.w.rng
        to = rng.choice(pointers)
        fixed = rng.randrange(OWN // size) * size
        if rng.random() < 0.7 or to.space == ".param":
            return to.space, f"[{to.base}+{fixed}]" if fixed else f"[{to.base}]"
        half = OWN // 2  # a changing part below the half, and a fixed one
        offset, address = w.new("w"), w.new("l")
        kind = rng.random()
        if kind < 0.4:
            w.put(f"and.b32 {offset}, {w.pick('w')}, {half // size - 1};", f"mad.wide.u32 {address}, {offset}, {size}, {to.base};")
        else:
            wide = w.new("l")
            w.put(f"and.b32 {offset}, {w.pick('u' if kind > 0.8 and w.scope['u'] else 'w')}, {(half - 1) & -size};", f"cvt.u64.u32 {wide}, {offset};", f"add.s64 {address}, {to.base}, {wide};")
        return to.space, f"[{address}+{fixed % half}]"

    def vector(self, size: int) -> int:
        return self.w.rng.choice([n for n in (1, 1, 1, 2, 4) if n * size <= 16])

    def load(self, guard: str = "") -> None:
        """A load; under a guard into registers that have values."""
        w, rng = self.w, self.w.rng
        kind_of, kind, size = rng.choice(_PLAIN)
        count = self.vector(size)
        source = self.readable if rng.random() < 0.25 and self.readable else self.writable
        space, address = self.place(source, size * count)
        cache = rng.choice(("", "", "", ".volatile" if space in (".global", ".shared", "") else "", ".nc" if space == ".global" and source is self.readable else ""))
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
        """A store; of floats their cleaned bits."""
        w, rng = self.w, self.w.rng
        kind_of, kind, size = rng.choice(_PLAIN)
        count = self.vector(size)
        space, address = self.place(self.writable, size * count)
        names: list[str] = []
        for _ in range(count):
            name = w.pick(kind)
            if kind in "fdev":
                name = w.bits(kind, name)[1]
            elif kind == "w" and rng.random() < 0.1:
                name = w.pick("u") if w.scope["u"] else name
            names.append(name)
        listed = names[0] if count == 1 else "{" + ",".join(names) + "}"
        form = {"f32": "b32", "f64": "b64", "s8": "u8", "s16": "u16", "s32": "u32"}.get(kind_of, kind_of)
        order = f".volatile{space}" if space in (".global", ".shared") and rng.random() < 0.1 else space
        w.put(f"{guard}st{order}{'' if count == 1 else f'.v{count}'}.{form} {address}, {listed};")

    def atom(self, guard: str = "") -> None:
        """An atomic operation on what the thread owns, or on what all share where the order makes no difference."""
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
