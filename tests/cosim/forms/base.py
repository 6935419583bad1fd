"""One-instruction kernels: the form, the kernel around it, the walk over the descriptor table."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stages.interpret.rows import BITS
from stages.parse import table
from stages.parse.table import Row

#: Bytes of one source and of one result of a thread, in the buffers.
SLOT = 8
#: Bytes of a thread's part of the third buffer, if a form uses it.
PART = 64
BLOCK = 256


@dataclass(slots=True)
class Form:
    """One instruction in a kernel of its own.

    ``sources`` and ``dests`` are kinds of values, a slot of 8 bytes each. ``memory`` is the element type of the third
    buffer ("" unused), of which each thread owns `PART` bytes. `$$` in ``module`` and ``local`` is the kernel's
    number.
    """

    opcode: str
    text: str
    body: str
    sources: list[str]
    dests: list[str]
    row: str
    module: str = ""
    local: str = ""
    memory: str = ""
    blocks: int = 1
    threads: int = BLOCK
    cluster: int = 1
    blob: bool = False  # takes a fourth parameter of 64 bytes
    ignore_memory: bool = False  # the instruction leaves memory undefined
    drawn: bool = False  # see `Choice`
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The first part of the opcode."""
        return self.opcode.split(".")[0]

    @property
    def count(self) -> int:
        """Threads of the launch."""
        return self.blocks * self.threads


def kernel_text(form: Form, k: int) -> str:
    """The kernel of a form: %in, %out and %mem are the generic addresses of the thread's parts, %me its number in the
    grid."""
    params = ".param .u64 pin, .param .u64 pout, .param .u64 pmem" + (
        ", .param .align 16 .b8 blob[64]" if form.blob else ""
    )
    directives = f" .reqnctapercluster {form.cluster}, 1, 1" if form.cluster > 1 else ""
    ins, outs = max(len(form.sources), 1) * SLOT, max(len(form.dests), 1) * SLOT
    text = (
        f"{form.module}\n.visible .entry k$$({params}){directives}\n{{\n"
        ".reg .b16 %h<64>, %t0; .reg .b32 %r<64>, %t1, %t2, %me, %blk; .reg .b64 %d<64>, %in, %out, %mem, "
        "%o; .reg .b128 %q<48>; .reg .b8 %b<48>; .reg .pred %p<64>;\n"
        f"{form.local}\n"
        "ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; ld.param.u64 %mem, [pmem]; mov.u32 %me, "
        "%tid.x; mov.u32 %blk, %ctaid.x;\n"
        f"mad.lo.u32 %me, %blk, {form.threads}, %me; mad.wide.u32 %in, %me, {ins}, %in; mad.wide.u32 %out, "
        f"%me, {outs}, %out;\n"
        f"mad.wide.u32 %mem, %me, {PART}, %mem;\n{form.body}\nret;\n}}"
    )
    return text.replace("$$", str(k))


def module_text(forms: list[Form], target: str) -> str:
    """A module with one kernel for each form."""
    return (
        f".version 9.0\n.target {target}\n.address_size 64\n"
        + "\n".join([kernel_text(f, k) for k, f in enumerate(forms)])
        + "\n"
    )


# --------------------------------------------------------------------------- registers as text


#: Widths of kinds of values that are no types.
_WIDTHS = {"pred": 1, "ones": 1, "few64": 64, "mma.f64": 64, "mma.f64.c": 64}


def width_of(kind: str) -> int:
    """Bits of the register for a kind of value."""
    return _WIDTHS.get(kind) or max(BITS.get(kind, 32), 16)


def register(kind: str, k: int) -> str:
    """Register number k for a kind of value."""
    return f"%{ {1: 'p', 16: 'h', 32: 'r', 64: 'd', 128: 'q'}[width_of(kind)] }{k}"


def load(kind: str, k: int, slot: int) -> str:
    """Load a source from its slot into its register."""
    if width_of(kind) == 1:
        return f"ld.global.u8 %t0, [%in+{slot * SLOT}]; and.b16 %t0, %t0, 1; setp.ne.u16 {register(kind, k)}, %t0, 0;"
    bits = _WIDTHS.get(kind) or BITS.get(kind, 32)
    if bits == 128:
        return (
            f"ld.global.b64 %d60, [%in+{slot * SLOT}]; ld.global.b64 %d61, [%in+{(slot + 1) * SLOT}]; "
            f"mov.b128 %q{k}, {{%d60, %d61}};"
        )
    return f"ld.global.{'u' if bits == 8 else 'b'}{bits} {register(kind, k)}, [%in+{slot * SLOT}];"


def store(kind: str, reg: str, slot: int) -> str:
    """Store a result into its slot."""
    at = slot * SLOT
    if reg[1] == "p":
        return f"selp.u32 %t1, 1, 0, {reg}; st.global.u32 [%out+{at}], %t1;"
    if reg[1] == "q":
        return (
            f"mov.b128 {{%d60, %d61}}, {reg}; st.global.b64 [%out+{at}], %d60; st.global.b64 [%out+{at + SLOT}], %d61;"
        )
    return f"st.global.{ {'b': 'u8', 'h': 'b16', 'r': 'b32', 'd': 'b64'}[reg[1]] } [%out+{at}], {reg};"


# --------------------------------------------------------------------------- the table


def type_tuples(row: Row) -> list[tuple[str, ...]]:
    """All type tuples of a row, in a fixed order."""
    if not row.types:
        return [()]
    return [t for alternative in row.types for t in itertools.product(*[sorted(place) for place in alternative])]


def opcode_text(row: Row, mods: list[str], types: tuple[str, ...]) -> str:
    """The dotted opcode; types replace the empty slot, else they come last."""
    parts = [row.name]
    for slot, mod in zip(row.slots, mods, strict=True):
        parts += [mod] if mod else [] if slot.values else types
    return ".".join(parts if any(not s.values for s in row.slots) else [*parts, *types])


def modifiers(row: Row) -> Iterator[list[str]]:
    """All combinations of the row's modifiers."""
    slots = [(*(() if s.required else ("",)), *s.values) if s.values else ("",) for s in row.slots]
    yield from (list(c) for c in itertools.product(*slots))


def _count(row: Row) -> int:
    n = 1
    for s in row.slots:
        n *= max(len(s.values) + (not s.required), 1)
    return n


def reaches(row: Row, target: str) -> bool:
    """Whether a target has a row."""
    number = int(re.sub(r"\D", "", target))
    if row.gate.target > number or row.gate.version_below or row.gate.target_below:
        return False
    own = target.endswith("a")

    def fits(n: int, suffix: str) -> bool:
        if suffix == "g":
            return number >= n
        if suffix == "a":
            return own and number == n
        return own and number >= n and number // 10 == n // 10

    return not row.gate.only or any(fits(n, s) for n, s in row.gate.only)


class Choice(NamedTuple):
    """Modifiers and types of a row."""

    mods: list[str]
    types: tuple[str, ...]
    #: Drawn with equal chances from all of the row; False if a rule chose it, or if the row is whole.
    drawn: bool = False


def population(row: Row) -> int:
    """The number of pairs of modifiers and types of a row."""
    return _count(row) * len(type_tuples(row))


def choices(row: Row, limit: int, seed: int) -> list[Choice]:
    """At most `limit` of a row: every type tuple with the first modifiers, every modifier value, then random ones.

    The choices for a greater limit begin with those for a smaller one, unless either is the whole row. They do not
    depend on other rows.
    """
    rng = random.Random(f"{seed} {row.key}")
    tuples = type_tuples(row)
    slots = [(*(() if s.required else ("",)), *s.values) if s.values else ("",) for s in row.slots]
    if population(row) <= limit:
        return [Choice(m, t) for m in modifiers(row) for t in tuples]
    base = [s[0] for s in slots]
    out = [Choice(base, t) for t in tuples]
    for k, values in enumerate(slots):
        out += [Choice([*base[:k], v, *base[k + 1 :]], rng.choice(tuples)) for v in values[1:]]
    if len(out) > limit:
        out = [out[0], *rng.sample(out[1:], limit - 1)]
    seen = {(tuple(c.mods), c.types) for c in out}
    for _ in range(4 * limit):
        if len(out) >= limit:
            break
        pick = Choice([rng.choice(s) for s in slots], rng.choice(tuples), True)
        if (tuple(pick.mods), pick.types) not in seen:
            seen.add((tuple(pick.mods), pick.types))
            out.append(pick)
    return out


def walk(target: str, only: str, limit: int, seed: int, skip: int = 0) -> Iterator[tuple[Row, Choice]]:
    """Rows of the table that the target has, with modifiers and types; ``skip``: leave out the choices for this
    limit."""
    for name in table.names():
        if only and not re.fullmatch(only, name):
            continue
        for row in table.rows(name):
            if reaches(row, target):
                gone = {(tuple(c.mods), c.types) for c in choices(row, skip, seed)} if skip else set()
                for choice in choices(row, limit, seed):
                    if (tuple(choice.mods), choice.types) not in gone:
                        yield row, choice
