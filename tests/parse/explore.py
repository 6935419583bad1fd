"""Looks for forms that ptxas accepts and no row describes, and for forms that a row describes and ptxas refuses.

    python -m tests.parse.explore [--target sm_100a] [--names add,mma] [--every N] [--show K]

The generator of `generate.py` knows only what the table knows. Here every row's simplest instruction is changed in
every way that one step allows, with a vocabulary that holds the words of all rows and words of none: each word
inserted, each modifier replaced by each word or left out, each type replaced by each type (with or without registers to
match), each operand left out, added, or replaced by every kind of operand, each of the first elements of a vector (also
of coordinates) by every kind of element. Only verdicts are compared.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from stages.parse import table
from stages.parse.rules import TYPES
from stages.parse.table import Row
from tests.parse.agreement import message_class, oracle, ours, refused
from tests.parse.generate import modifier_lists, opcode_text, operands_of, register, type_tuples

# Words of PTX manuals and of ptxas's messages that are no modifiers here, or that other assemblers have.
_STRANGERS = """
s2f6x2 s2f6 ue5m3x2 u8x4 s8x4 u16x4 s16x4 b2 b4 b6x16 f128 s128 u128 bf16x4 f16x4 f32x4 tf32x2 e8m0 lo wide full \
scaled unscaled bias mode
lo24 hi24 first last except none any_sync collective mask uniform unified generic tensor tile::im2col im2col_offs \
im2col::w::64 x256 x3 x6
x12 m8n8k64 m16n8k512 m64n8k128 m64n264k16 m16n16k32 m32n16k16 p2 pair quad octa L3 L1::evict_none L2::512B L2::32B \
L2::no_allocate level1
nt wt2 lut expect pending drop phase parity2 noinc2 swizzle cbsz blgp abid scale scale_d shared::all shared::peer \
shared::cluster::cta
global::peer relaxed2 seq_cst consume acqrel grid system device thread block warpgroup cluster::all multicast \
multicast::cta remote
local::cta num8 num16x8 num4x8 sparse dense satfinite2 sat2 rnd ru rd rne rto stoch up2 mxf8 mxf6 mxf6f4 kind::mxf6 \
kind::fp8 kind::fp16
kind::int8 collector::c::use collector::b::use disable_output_lane commit2 free query peek reset scatter gather \
tile::scatter8 tile::gather8
b5x16 b8x8 b16x8 128B 64B 256B bytes elements noftz2 oob2 NaN2 nan_prop abs2 neg inv not bit byte word half double \
quadword
"""
OPERANDS = (
    "%p4", "!%p4", "%bb4", "%h4", "%uh4", "%sh4", "%hf4", "%r4", "%u4", "%s4", "%f4", "%rd4", "%ud4", "%sd4", "%fd4",
    "%q4", "5", "-1", "1.5", "0f3F800000",
    "0d3FF0000000000000", "_", "gm", "sm", "lm", "cm", "p0", "LL", "%tid.x", "%clock64", "%laneid", "WARP_SZ",
    "{%r4, %r5}", "{%h4, %h5}", "{%rd4, %rd5}", "{%r4}", "{%f4, %f5}",
    "{%r4, %r5, %r6, %r7}", "{%f4, %f5, %f6, %f7}", "{_, %r4}", "{1, 2}", "[gm]", "[sm]", "[lm]", "[cm]", "[p0]",
    "[%rd4]", "[%rd4+8]", "[%r4]", "[%f4]", "[8]", "[tx, {%r4, %r5}]", "[tx]", "[sf]",
    "[%rd4, {%r4, %r5}]", "%r4|%p4", "%p4|%p5", "%r4.b0", "%r4.h1", "-%r4", "%r4|_", "_|%p4", "tx", "sf",
)  # fmt: skip


_ELEMENTS = (
    "%p4", "%bb4", "%h4", "%uh4", "%hf4", "%r4", "%u4", "%s4", "%f4", "%rd4", "%ud4", "%fd4", "%q4", "5", "1.5",
    "0f3F800000", "_", "gm", "LL", "tx",
    "%tid.x", "%clock64", "-%r4", "!%p4", "{%r4}", "[gm]", "%r4.b0", "%r4|%p4", "gm+4", "p0",
)  # fmt: skip
_VECTOR = re.compile(r"\{([^{}]*)\}")


def elements_changed(operand: str, matrix: bool) -> Iterator[str]:
    """An operand with a vector in it: each element replaced by each kind, all by each kind, one taken out, one added,
    another vector.

    Not `.b0` in an `mma` or `wmma`: ptxas substitutes other instructions, in which it is a syntax error at another
    line.
    """
    m = _VECTOR.search(operand)
    if m is None:
        return
    head, elements, tail = operand[: m.start()], m.group(1).split(", "), operand[m.end() :]
    first = range(min(2, len(elements)))
    for other in [e for e in _ELEMENTS if not (matrix and e == "%r4.b0")]:
        for k in first:
            yield f"{head}{{{', '.join([*elements[:k], other, *elements[k + 1 :]])}}}{tail}"
        yield f"{head}{{{', '.join([other] * len(elements))}}}{tail}"
    yield f"{head}{{{', '.join(elements[1:])}}}{tail}"
    yield f"{head}{{{', '.join([*elements, elements[-1]])}}}{tail}"
    if head:
        for whole in OPERANDS:
            yield f"{head}{whole}{tail}"
            yield f"[{whole}, {m.group()}]"


def bases(name: str, most: int = 40) -> Iterator[tuple[Row, list[str], tuple[str, ...]]]:
    """The simplest form of each row of a name (of `most` rows, spread), with its first types and its last."""
    rows = table.rows(name)
    for row in rows[:: max(1, len(rows) // most)]:
        if row.gate.version_below or row.gate.target_below:
            continue
        tuples = type_tuples(row)
        mods = modifier_lists(row)[0]
        for types in dict.fromkeys((tuples[0], tuples[-1])):
            yield row, mods, types


def _replacements(row: Row) -> list[str]:
    """Types to insert; only integers if an operand is twice as wide."""
    wide = any(o.type == "W" for o in row.operands)
    return [t for t in sorted(TYPES) if not wide or (t[0] in "usb" and t[1:].isdigit())]


def changed(row: Row, mods: list[str], types: tuple[str, ...], vocabulary: list[str]) -> Iterator[str]:
    """All one-step changes of an instruction, as text."""
    operands = operands_of(row, mods, types, False)
    opcode = opcode_text(row, mods, types)
    given = ", ".join(operands)
    head = len(row.name.split("."))
    parts = opcode.split(".")
    yield f"{opcode} {given};"
    for word in vocabulary:
        yield f"{'.'.join([*parts[:head], word, *parts[head:]])} {given};"
        if word in TYPES:
            yield f"{opcode}.{word} {given};"
    for k in range(head, len(parts)):
        rest = [*parts[:k], *parts[k + 1 :]]
        yield f"{'.'.join(rest)} {given};"
        for word in vocabulary:
            if word in TYPES or parts[k] not in TYPES:
                yield f"{'.'.join([*parts[:k], word, *parts[k + 1 :]])} {given};"
    for k in range(len(types)):
        for word in _replacements(row):
            new = (*types[:k], word, *types[k + 1 :])
            yield f"{opcode_text(row, mods, new)} {', '.join(operands_of(row, mods, new, False))};"
    if len(types) > 1:
        for word in _replacements(row):
            yield (
                f"{opcode_text(row, mods, (word,) * len(types))} "
                f"{', '.join(operands_of(row, mods, (word,) * len(types), False))};"
            )
    for k in range(len(operands)):
        yield f"{opcode} {', '.join([*operands[:k], *operands[k + 1 :]])};"
        for other in OPERANDS:
            yield f"{opcode} {', '.join([*operands[:k], other, *operands[k + 1 :]])};"
        for other in elements_changed(operands[k], "mma" in row.name):
            yield f"{opcode} {', '.join([*operands[:k], other, *operands[k + 1 :]])};"
    for k in range(len(operands) + 1):
        for other in ("%r9", "%p3", "7", "%rd9", "[%rd9]", "%h9", "%f9", register(types[0] if types else "b32", 9)):
            yield f"{opcode} {', '.join([*operands[:k], other, *operands[k:]])};"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="sm_100a")
    parser.add_argument("--names", default="", help="only these instructions")
    parser.add_argument("--every", type=int, default=1, help="take each N-th case")
    parser.add_argument("--show", type=int, default=2)
    args = parser.parse_args()
    vocabulary = sorted(
        {*table.modifiers(), *_STRANGERS.split(), *[part for name in table.names() for part in name.split(".")[1:]]}
    )
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = defaultdict(list)
    names = (
        args.names.split(",")
        if args.names
        else [n for n in table.names() if n not in ("call", "brx.idx", "ret", "exit")]
    )
    lines: dict[str, None] = {}
    for name in names:
        for row, mods, types in bases(name):
            lines.update(dict.fromkeys(changed(row, mods, types, vocabulary)))
    texts = list(lines)[:: args.every]
    for start in range(0, len(texts), 1500):
        part = texts[start : start + 1500]
        for text, a, b in zip(
            part, oracle(part, "9.0", args.target, True), ours(part, "9.0", args.target, True), strict=True
        ):
            counts["cases"] += 1
            if any(severity == "crash" for severity, _ in a):
                counts["oracle crashed"] += 1
                continue
            counts["taken by ptxas"] += not refused(a)
            if refused(a) != refused(b):
                counts["verdict differs"] += 1
                said = next(m for s, m in (*a, *b) if s in ("error", "fatal"))
                side = "only ptxas refuses" if refused(a) else "only we refuse"
                counts[side] += 1
                wrong[f"{side}: {text.split('.')[0].split(' ')[0]}: {message_class(said)}"].append(f"{text}   {said}")
    for key in sorted(wrong, key=lambda k: (k, -len(wrong[k]))):
        print(f"{len(wrong[key]):6} {key}")
        for line in wrong[key][: args.show]:
            print("         ", line)
    print(args.target, dict(counts))
    n = counts["cases"] - counts["oracle crashed"]
    print(
        f"verdicts equal: {n - counts['verdict differs']} of {n} = "
        f"{100 * (n - counts['verdict differs']) / max(1, n):.3f} %"
    )


if __name__ == "__main__":
    main()
