"""Registers, scopes and template filling, used by every part of a random program."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.fuzz import forms
from tests.fuzz.forms import AMOUNTS, COMPARE, EDGES, FCOMPARE, KINDS, ROUNDINGS, Form

_SEGMENTS = ("0x1f", "0x1f", "0x181f", "0x1c1f", "0x100f")
_SEGMENTS_UP = ("0", "0", "0x1800", "0x1c00")


class Writer:
    """Lines of one function, and the registers that may be read after them.

    ``scope`` maps a kind to its visible registers; all of them are defined at the next line. ``fresh``: how often a
    destination is a new register (as compilers write), not one that has a value already.
    """

    def __init__(self, rng: random.Random, sm: int, fresh: float) -> None:
        self.rng = rng
        self.sm = sm
        self.fresh = fresh
        self.lines: list[str] = []
        self.scope: dict[str, list[str]] = {k: [] for k in KINDS}
        self.count = dict.fromkeys(KINDS, 0)
        self.labels = 0
        self.prefix = "L"
        self.mask = "0xffffffff"
        self.leader = "0"

    # -------------------------------------------------------------- names

    def new(self, kind: str) -> str:
        """A new register; not yet visible."""
        self.count[kind] += 1
        return f"{KINDS[kind][1]}{self.count[kind] - 1}"

    def show(self, kind: str, name: str) -> None:
        """From here on the register has a value."""
        self.scope[kind].append(name)

    def label(self) -> str:
        self.labels += 1
        return f"{self.prefix}{self.labels}"

    def mark(self) -> dict[str, int]:
        """The visible registers, for :meth:`release`."""
        return {k: len(v) for k, v in self.scope.items()}

    def release(self, mark: dict[str, int]) -> None:
        """Hide registers created since: another path may lead to the next line."""
        for k, n in mark.items():
            del self.scope[k][n:]

    def pick(self, kind: str) -> str:
        """A register to read; recent ones more often."""
        names = self.scope[kind]
        if self.rng.random() < 0.3:
            return names[max(0, len(names) - 1 - int(self.rng.expovariate(0.5)))]
        return self.rng.choice(names)

    def literal(self, kind: str) -> str:
        rng = self.rng
        if kind == "f":
            return f"0f{rng.choice(EDGES['f']) if rng.random() < 0.7 else rng.getrandbits(32):08X}"
        if kind == "d":
            return f"0d{rng.choice(EDGES['d']) if rng.random() < 0.7 else rng.getrandbits(64):016X}"
        if rng.random() < 0.7:
            return str(rng.choice(EDGES[kind]))
        return str(
            rng.randrange(-1 << 15, 1 << 15) if kind == "h" or rng.random() < 0.5 else rng.randrange(-1 << 31, 1 << 31)
        )

    # -------------------------------------------------------------- lines

    def put(self, *lines: str) -> None:
        self.lines += lines

    def move(self, kind: str, value: str, guard: str = "") -> str:
        """A new register with a copy of a value, not yet visible."""
        name = self.new(kind)
        self.put(f"{guard}mov.{KINDS[kind][0]} {name}, {value};")
        return name

    def fill(self, form: Form, existing: bool, uniform: bool = False) -> str:
        """The text of a form; its new registers become visible. ``existing``: it may be skipped, so destinations must
        have values."""
        rng = self.rng
        text = form.text
        out: list[str] = []
        made: list[tuple[str, str]] = []
        taken: list[str] = []
        at = 0
        while at < len(text):
            if text.startswith(("{{", "}}"), at):
                out.append(text[at])
                at += 2
                continue
            if text[at] != "{":
                out.append(text[at])
                at += 1
                continue
            end = text.index("}", at)
            what = text[at + 1 : end]
            at = end + 1
            simple = self.word(what, uniform)
            if simple is not None:
                out.append(simple)
            elif what[0] == "=":
                out.append(taken[int(what[1:])])
            elif what[0] == "o":  # an odd divisor
                kind = what[1:] or "w"
                if rng.random() < 0.5:
                    value = int(self.literal(kind)) | 1
                    out.append(str(value))
                else:
                    name = self.new("u" if uniform else kind)
                    self.put(f"or.{KINDS[kind][0]} {name}, {self.pick('u' if uniform else kind)}, 1;")
                    out.append(name)
            elif what == "m":
                if rng.random() < 0.5:
                    out.append(str(rng.choice(AMOUNTS)))
                else:
                    name = self.new("u" if uniform else "w")
                    self.put(f"and.b32 {name}, {self.pick('u' if uniform else 'w')}, 255;")
                    out.append(name)
            else:
                kind = what[1]
                if uniform:
                    kind = {"w": "u", "p": "q"}[kind]
                if what[0] == "d":
                    name = "" if not existing and rng.random() < self.fresh else rng.choice(self.scope[kind])
                    if not name or name in taken:
                        name = self.new(kind)
                        if existing:  # all visible values are destinations of this line already
                            self.put(f"mov.{KINDS[kind][0]} {name}, {rng.choice(self.scope[kind])};")
                        made.append((kind, name))
                    taken.append(name)
                    out.append(name)
                elif what[0] == "s" and kind in "wlhfdu" and rng.random() < 0.25:
                    out.append(self.literal("w" if kind == "u" else kind))
                elif kind == "w" and self.scope["u"] and rng.random() < 0.2:
                    out.append(self.pick("u"))
                elif kind == "p" and self.scope["q"] and rng.random() < 0.2:
                    out.append(self.pick("q"))
                else:
                    out.append(self.pick(kind))
        for kind, name in made:
            self.show(kind, name)
        return "".join(out)

    def word(self, what: str, uniform: bool) -> str | None:
        """A placeholder that is no register, or None."""
        rng = self.rng
        if what == "n":
            return str(rng.choice(AMOUNTS)) if rng.random() < 0.5 else self.pick("u" if uniform else "w")
        table: dict[str, Sequence[str]] = {
            "c": COMPARE, "fc": FCOMPARE, "rnd": ROUNDINGS, "bool": ("and", "or", "xor"), "!": ("", "!"),
            "ne": ("ne", "eq"),
            "seg": _SEGMENTS, "segup": _SEGMENTS_UP, "mask": (self.mask,), "leader": (self.leader,),
        }  # fmt: skip
        if what in table:
            return rng.choice(table[what])
        if what == "lut":
            return str(rng.randrange(256))
        if what == "bit":
            return str(1 << rng.randrange(31))
        return None

    def clean(self, kind: str, name: str) -> str:
        """A register of the same kind in which any NaN is replaced by a fixed one."""
        size, good = {
            "f": ("f32", "0f7FC12345"),
            "d": ("f64", "0d7FF8123456789ABC"),
            "e": ("f16", ""),
            "b": ("bf16", ""),
        }[kind]
        out, test = self.new(kind), self.new("p")
        if size == "bf16":  # comparisons of bf16 need sm_90: compare bits
            bits, wide, nan = self.new("h"), self.new("w"), self.new("h")
            self.put(
                f"and.b16 {bits}, {name}, 0x7fff;",
                f"cvt.u32.u16 {wide}, {bits};",
                f"setp.gt.u32 {test}, {wide}, 0x7f80;",
                f"mov.b16 {nan}, 0x7fc1;",
            )
            self.put(f"selp.b16 {out}, {nan}, {name}, {test};")
            return out
        if size == "f16":
            nan = self.new("h")
            self.put(
                f"setp.nan.f16 {test}, {name}, {name};",
                f"mov.b16 {nan}, 0x7e01;",
                f"selp.b16 {out}, {nan}, {name}, {test};",
            )
            return out
        self.put(f"setp.nan.{size} {test}, {name}, {name};", f"selp.{size} {out}, {good}, {name}, {test};")
        return out

    def bits(self, kind: str, name: str) -> tuple[str, str]:
        """A register with a float's bits, NaNs replaced, and its kind (w, l or h)."""
        if kind in "vy":
            half = "e" if kind == "v" else "b"
            low, high, word = self.new(half), self.new(half), self.new("w")
            self.put(f"mov.b32 {{{low},{high}}}, {name};")
            self.put(f"mov.b32 {word}, {{{self.clean(half, low)},{self.clean(half, high)}}};")
            return "w", word
        good = self.clean(kind, name)
        if kind in "eb":
            return "h", good
        to = "w" if kind == "f" else "l"
        out = self.new(to)
        self.put(f"mov.{KINDS[to][0]} {out}, {good};")
        return to, out


TABLES = {
    name: forms.table(text)
    for name, text in (
        ("integer", forms.INTEGER), ("conversion", forms.CONVERSION), ("carry", forms.CARRY),
        ("predicate", forms.PREDICATE), ("float", forms.FLOAT),
        ("double", forms.DOUBLE), ("half", forms.HALF), ("brain", forms.BRAIN), ("warp", forms.WARP),
        ("part", forms.PART), ("uniform", forms.UNIFORM),
    )
}  # fmt: skip
