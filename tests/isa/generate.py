"""Random instruction words from the rows.

    python -m tests.isa.generate --sm 90 --count 40 [--op IMAD,LDG] [--seed 1]

Every form of every row gets ``count`` words with random modifiers and operand fields; each word that our decoder
accepts is compared with nvdisasm's text.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Iterator

from ir_format import isa
from ir_format.isa.machine import Target
from ir_format.isa.plan import CTL_MASK, Form, Plan
from tests.isa.coverage import fault
from tests.isa.probe import BATCH, texts

CTL = 0x7E0 << 105 | 17 << 105  # without bit 109 there are no reuse hints
ALL = (1 << 128) - 1
REUSE = 15 << 122
#: Values for which printing or a derived name changes: infinities and NaNs of every width, limits of f32 printing,
#: powers of two, signs.
IMMEDIATES = (
    0,
    1,
    2,
    3,
    0x10000,
    0x80000000,
    0x7FFFFFFF,
    0xFFFFFFFF,
    0x8000,
    0xFFFF,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x7FF00000,
    0xFFF80000,
    0x7C007C00,
    0xFC00,
    0x3C003C00,
    0x4E6E6B28,
    0x4E6E6B27,
    0x80000001,
    1 << 20,
    0x3F800000,
    0x3FF00000,
    0x7F807F80,
    0x41CDCD65,
    0x41CDCD64,
)


def random_plan(form: Form, rng: random.Random) -> Plan | None:
    """A random defined modifier combination of a form, or None if none was found."""
    for _ in range(60):
        plan = form.plan_for_word(form.fixvalue | (rng.getrandbits(128) & form.modmask))
        if plan is not None:
            return plan
    return None


def random_word(form: Form, rng: random.Random, plan: Plan | None = None) -> int | None:
    """A word of a form (with the modifiers of ``plan``), or None if no defined modifier combination was found."""
    plan = plan or random_plan(form, rng)
    if plan is None:
        return None
    owned = ALL & ~(plan.mask | CTL_MASK)
    bits = rng.getrandbits(128)
    kind = rng.random()
    if kind < 0.3:
        bits |= rng.getrandbits(128)  # more ones: RZ, PT
    elif kind < 0.45:
        bits &= rng.getrandbits(128) & rng.getrandbits(128)  # few ones: zeros, powers of two, register 0
    elif kind < 0.55:
        bits = bits & ~(0xFFFFFFFF << 32) | rng.choice(IMMEDIATES) << 32
    for low in (16, 24, 32, 64):
        if rng.random() < 0.06:
            bits |= 255 << low  # RZ or URZ in one place
    if rng.random() < 0.7:
        bits = bits & ~(0xF << 12) | 7 << 12
    if rng.random() < 0.6:
        bits &= ~REUSE
    return plan.value | bits & owned | CTL


def random_words(
    target: Target, count: int, seed: int, ops: set[str] | None = None, plans: int = 0
) -> Iterator[tuple[Form, int]]:
    """``count`` words of every form of the target, in the order of the tables; with ``plans`` at most this many
    modifier combinations of a form."""
    rng = random.Random(seed)
    for op in target.mnemonics():
        if ops and op not in ops:
            continue
        for form in target.forms(op):
            kept = [random_plan(form, rng) for _ in range(plans)]
            for k in range(count):
                word = random_word(form, rng, kept[k % plans] if plans else None)
                if word is not None:
                    yield form, word


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sm", required=True, help="an SM, or several with commas")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", default="", help="only these mnemonics")
    parser.add_argument("--show", type=int, default=2)
    args = parser.parse_args()
    for sm in args.sm.split(","):
        sweep(sm, args.count, args.seed, set(args.op.split(",")) if args.op else None, args.show)


def sweep(sm: str, count: int, seed: int, ops: set[str] | None, show: int) -> int:
    """Generate, compare and print the differences of one SM by form; returns their number."""
    target = isa.target(sm)
    pairs = list(random_words(target, count, seed, ops))
    taken = [(f, w) for f, w in pairs if target.decode_plan(w)]
    wrong: dict[str, list[str]] = defaultdict(list)
    for k, ((form, word), text) in enumerate(zip(taken, texts([w for _, w in taken], sm))):
        why = fault(target, word, 16 * (k % BATCH), text)
        if why:
            wrong[f"{form.row.name}/{form.letters}"].append(why)
    for name, items in wrong.items():
        print(f"{name}: {len(items)}")
        for item in items[:show]:
            print("   ", re.sub(r" {2,}", " ", item)[:230])
    total = sum(map(len, wrong.values()))
    print(f"sm_{sm}: {len(pairs)} made, {len(taken)} taken, {total} wrong in {len(wrong)} forms", flush=True)
    return total


if __name__ == "__main__":
    main()
