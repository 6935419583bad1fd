"""Combined conditions: comparisons of all types, some negated, combined in trees whose parts and whole are read by
selects, guards and branches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.fuzz.forms import COMPARE, FCOMPARE, KINDS

if TYPE_CHECKING:
    from tests.fuzz.bodies import Body

_TYPES: Final = (
    ("s32", "w"),
    ("u32", "w"),
    ("s32", "w"),
    ("u32", "w"),
    ("s64", "l"),
    ("u64", "l"),
    ("s16", "h"),
    ("u16", "h"),
    ("f32", "f"),
    ("f32", "f"),
    ("f64", "d"),
    ("f16", "e"),
)


def _test(k: Body) -> str:
    """A new predicate from a comparison; sometimes the test of a bit, a select's predicate or another predicate."""
    w, rng = k.w, k.rng
    out = w.new("p")
    kind = rng.random()
    if kind < 0.1:
        return w.pick("p")
    if kind < 0.2:
        bit = w.new("w")
        w.put(
            f"and.b32 {bit}, {w.pick('w')}, {rng.choice((1 << rng.randrange(4), 3, 0xFF, -16))};",
            f"setp.{rng.choice(('ne', 'eq'))}.{rng.choice(('s32', 'u32', 'b32'))} {out}, {bit}, 0;",
        )
        return out
    if kind < 0.27:
        word = w.new("w")
        w.put(
            f"selp.b32 {word}, {rng.choice(('1', '-1', '5', '0'))}, {rng.choice(('0', '0', '2'))}, {w.pick('p')};",
            f"setp.{rng.choice(COMPARE)}.s32 {out}, {word}, {rng.choice(('0', '1', '2'))};",
        )
        return out
    t, reg = rng.choice(_TYPES)
    a, b = w.pick(reg), w.pick(reg)
    if rng.random() < 0.3:  # sometimes equal
        a = w.pick(reg)
    if rng.random() < 0.4 and reg != "e":
        b = w.literal(reg)
    w.put(f"setp.{rng.choice(FCOMPARE if t[0] == 'f' else COMPARE)}.{t} {out}, {a}, {b};")
    return out


def _negated(k: Body, p: str) -> str:
    """The opposite, in a new register."""
    w, rng = k.w, k.rng
    out = w.new("p")
    if rng.random() < 0.2:
        one = w.new("p")
        w.put(f"setp.eq.s32 {one}, 0, 0;", f"xor.pred {out}, {p}, {one};")
    else:
        w.put(f"not.pred {out}, {p};")
    return out


def joined(k: Body) -> None:
    """Two to four conditions, their combination, and readers."""
    w, rng = k.w, k.rng
    tests = [_test(k) for _ in range(rng.choice((2, 2, 3, 4)))]
    k.budget -= len(tests)
    parts = [_negated(k, p) if rng.random() < 0.45 else p for p in tests]
    rng.shuffle(parts)
    while len(parts) > 1:
        a, b = parts.pop(), parts.pop(rng.randrange(len(parts)))
        out = w.new("p")
        if rng.random() < 0.25:
            t, reg = rng.choice(_TYPES[:8])
            w.put(
                f"setp.{rng.choice(COMPARE)}.{rng.choice(('and', 'or', 'xor'))}.{t} {out}, {w.pick(reg)}, "
                f"{w.literal(reg)}, {rng.choice(('', '!'))}{a};"
            )
            a, made = out, w.new("p")
            out = made
        w.put(f"{rng.choice(('and', 'and', 'or', 'or', 'xor'))}.pred {out}, {a}, {b};")
        parts.append(_negated(k, out) if rng.random() < 0.2 else out)
    whole = parts[0]
    read = [whole, *(p for p in tests if rng.random() < 0.3)]
    for p in read:
        how = rng.random()
        if how < 0.4:
            word = w.new("w")
            w.put(f"selp.b32 {word}, {w.pick('w')}, {rng.choice((w.pick('w'), '0', '1'))}, {p};")
            w.show("w", word)
        elif how < 0.7:
            kind = rng.choice("wwlf")
            w.put(f"@{rng.choice(('', '!'))}{p} mov.{KINDS[kind][0]} {w.pick(kind)}, {w.pick(kind)};")
        elif how < 0.8:
            end = w.label()
            w.put(f"@{rng.choice(('', '!'))}{p} bra {end};")
            mark = w.mark()
            k.straight(rng.randint(1, 2), 0)
            w.release(mark)
            w.put(f"{end}:")
        elif k.slots is not None:
            k.store_result("p", name=p)
        if rng.random() < 0.6:
            w.show("p", p)
