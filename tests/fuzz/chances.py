"""Patterns that errors of single passes need in order to show, and that plain random code rarely has: loads in loops
with stores to the same bytes; loads whose address is valid only where they execute; small differences that fall below
zero; shifts that lose all set bits; halves shifted separately; warp-uniform words in code whose paths do not
converge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.fuzz.forms import COMPARE
from tests.fuzz.memory import OWN

if TYPE_CHECKING:
    from tests.fuzz.bodies import Body

_MIX: Final = (
    "add.s32 {d}, {d}, {a}",
    "xor.b32 {d}, {d}, {a}",
    "mad.lo.s32 {d}, {d}, 3, {a}",
    "sub.s32 {d}, {a}, {d}",
    "max.u32 {d}, {d}, {a}",
)


def _mix(k: Body, to: str, value: str) -> None:
    k.w.put(f"{k.rng.choice(_MIX).format(d=to, a=value)};")


def _rounds(k: Body, low: int, high: int) -> tuple[str, str, str]:
    """A counter that goes down, its predicate and the label of the loop's head; the number of iterations may or may not
    be known."""
    w, rng = k.w, k.rng
    count, again, head = w.new("w"), w.new("p"), w.label()
    if rng.random() < 0.5:
        w.put(f"mov.u32 {count}, {rng.randint(low, high)};")
    else:
        w.put(
            f"and.b32 {count}, {w.pick('u' if w.scope['u'] and rng.random() < 0.5 else 'w')}, 3;",
            f"add.u32 {count}, {count}, {low};",
        )
    w.put(f"{head}:")
    return count, again, head


def _again(k: Body, loop: tuple[str, str, str]) -> None:
    count, again, head = loop
    k.w.put(
        f"sub.s32 {count}, {count}, 1;",
        f"setp.{k.rng.choice(('gt', 'ne'))}.s32 {again}, {count}, 0;",
        f"@{again} bra {head};",
    )


def reloaded(k: Body, depth: int, whole: int) -> None:
    """A loop that loads from where it stores, in one or several widths, through one or two pointers."""
    w, rng = k.w, k.rng
    same = [p for p in k.memory.writable if p.space != ".param"]
    if not same:
        return
    to = rng.choice(same)
    others = [p for p in same if p.space == to.space or not p.space] or [to]
    total = w.move("w", w.pick("w"))
    value, at = w.new("w"), rng.randrange(OWN // 8) * 8
    k.budget -= 8
    loop = _rounds(k, 2, 5)
    load = f"ld{to.space}.{rng.choice(('b32', 'b32', 'u16', 's8'))} {value}, {to.at(at)};"
    if not to.narrow and not to.bias and rng.random() < 0.3:  # an address that the loop recomputes
        base = w.new("l")
        w.put(f"add.s64 {base}, {to.base}, {at};")
        load = f"ld{to.space}.b32 {value}, [{base}];"
    early = rng.random() < 0.6
    if early:
        w.put(load)
        _mix(k, total, value)
    if rng.random() < 0.3:
        mark = w.mark()
        k.straight(rng.randint(1, 3), 0)
        w.release(mark)
    by = rng.choice(others) if rng.random() < 0.5 else to
    guard = k.guard() if rng.random() < 0.3 else ""
    w.put(f"{guard}st{by.space}.{rng.choice(('b32', 'b32', 'u16', 'u8'))} {by.at(at)}, {rng.choice((total, loop[0]))};")
    if not early:
        w.put(load)
        _mix(k, total, value)
    _again(k, loop)
    w.show("w", total)


def checked(k: Body, depth: int, whole: int) -> None:
    """A loop with a load whose address is valid only for the threads that reach it."""
    w, rng = k.w, k.rng
    wide = [
        p
        for p in (*k.memory.writable, *k.memory.readable)
        if not p.narrow and not p.bias and p.space != ".param" and p.base.startswith("%")
    ]
    if not wide:
        return
    to = rng.choice(wide)
    p, address, value, skip = w.new("p"), w.new("l"), w.new("w"), w.label()
    at = rng.randrange(OWN // 4) * 4
    k.budget -= 10
    w.put(
        f"setp.{rng.choice(COMPARE)}.s32 {p}, {w.pick('w')}, {w.pick('w')};",
        f"selp.b64 {address}, {to.base}, {rng.choice(('16', '0', '1099511627776'))}, {p};",
    )
    total = w.move("w", w.pick("w"))
    loop = _rounds(k, 2, 5)
    if rng.random() < 0.3:
        _mix(k, total, loop[0])
    w.put(f"@!{p} bra {skip};")
    mark = w.mark()
    k.straight(rng.randint(1, 9), 0)  # too much for execution under a guard
    w.put(f"ld{to.space}.b32 {value}, [{address}+{at}];")
    _mix(k, total, value)
    if rng.random() < 0.5:
        k.straight(rng.randint(1, 9), 0)
    w.release(mark)
    w.put(f"{skip}:")
    _again(k, loop)
    w.show("w", total)


def bits(k: Body) -> None:
    """Words of which a compiler knows some bits, and could believe that it knows too many."""
    w, rng = k.w, k.rng
    x, out, p = w.new("w"), w.new("w"), w.new("p")
    n = rng.choice((1, 2, 4, 8, 16, 24, 28, 30, 31))
    k.budget -= 3
    what = rng.random()
    if what < 0.35:  # nothing is left of the value shifted out
        how = rng.choice(("shl.b32", "shr.u32"))
        seed = rng.choice(
            (
                f"and.b32 {x}, {w.pick('w')}, {rng.choice((0xF, 0xFF, 0xF0000000, 0x10001, 7))};",
                f"mov.b32 {x}, {w.pick('w')};",
                f"shl.b32 {x}, {w.pick('w')}, {rng.choice((4, 16, 28))};",
            )
        )
        w.put(
            seed,
            f"{how} {out}, {x}, {n};",
            f"setp.{rng.choice(('eq', 'ne'))}.{rng.choice(('s32', 'u32', 'b32'))} {p}, {out}, 0;",
        )
        w.show("p", p)
        if k.slots is not None and rng.random() < 0.5:
            k.store_result("p", name=p)
    elif what < 0.8:  # a difference of small numbers
        y = w.new("w")
        a, b = rng.choice(((15, 7), (7, 15), (255, 31), (1, 1), (3, 0xFFFF)))
        w.put(f"and.b32 {x}, {w.pick('w')}, {a};", f"and.b32 {y}, {w.pick('w')}, {b};", f"sub.s32 {out}, {x}, {y};")
        made = w.new("w")
        most = max(a, b)
        mask = (1 << most.bit_length() + rng.randint(0, 2)) - 1
        kind = rng.random()
        if kind < 0.3:
            w.put(f"and.b32 {made}, {out}, {mask};")
        elif kind < 0.5:
            w.put(f"shr.u32 {made}, {out}, {rng.choice((1, most.bit_length(), 8))};")
        elif kind < 0.7:
            w.put(
                f"setp.{rng.choice(('gt', 'le'))}.u32 {p}, {out}, {most + rng.randint(0, 9)};",
                f"selp.u32 {made}, 1, 0, {p};",
            )
        elif kind < 0.85:
            w.put(f"bfe.{rng.choice(('u32', 's32'))} {made}, {out}, 0, {rng.choice((8, 16, mask.bit_length()))};")
        else:
            long = w.new("l")
            w.put(
                f"cvt.u64.u32 {long}, {out};",
                f"shl.b64 {long}, {long}, 2;",
                f"shr.u64 {long}, {long}, 20;",
                f"cvt.u32.u64 {made}, {long};",
            )
        w.show("w", made)
    else:  # a 64-bit sum whose halves are shifted separately, by equal or different amounts
        high, low, top = w.new("w"), w.new("w"), w.new("w")
        n = rng.choice((1, 3, 5, 12))
        m = n if rng.random() < 0.4 else rng.choice((1, 3, 5, 12))
        w.put(
            f"mov.b32 {x}, {w.pick('w')};",
            f"shl.b32 {low}, {x}, {n};",
            f"shf.l.{rng.choice(('clamp', 'wrap'))}.b32 {high}, {x}, {w.pick('w')}, {m};",
        )
        w.put(f"add.cc.u32 {out}, {low}, {w.pick('w')};", f"addc.u32 {top}, {high}, {w.pick('w')};")
        w.show("w", top)
    w.show("w", out)


def apart(k: Body, depth: int, whole: int) -> None:
    """Blocks that jump to each other. Each keeps a warp-uniform word (a parameter, the block's index, a reduction by
    one lane) across a jump that threads take independently."""
    w, rng = k.w, k.rng
    fuel, empty, end = w.new("w"), w.new("p"), w.label()
    state = w.move("w", w.pick("w"))
    w.put(f"mov.u32 {fuel}, {rng.randint(4, 10)};")
    mask = w.move("w", "%lanemask_eq") if k.sm >= 80 else ""
    labels = [w.label() for _ in range(rng.randint(2, 4))]
    k.loops += 1
    k.budget -= 6 * len(labels)
    for n, label in enumerate(labels):
        held, p, bit = w.new("w"), w.new("p"), w.new("w")
        w.put(f"{label}:", f"sub.s32 {fuel}, {fuel}, 1;", f"setp.le.s32 {empty}, {fuel}, 0;", f"@{empty} bra {end};")
        if mask and rng.random() < 0.5:
            w.put(f"redux.sync.{rng.choice(('add.s32', 'max.u32', 'xor.b32'))} {held}, {state}, {mask};")
        elif k.slots is not None and rng.random() < 0.8:
            w.put(f"ld.param.u32 {held}, [{rng.choice(('s0', 's1', 'st', 'st+4', 'st+20', 's2'))}];")
        else:
            w.put(f"mov.u32 {held}, {rng.choice(('%ctaid.x', '%nctaid.x', '%ctaid.y'))};")
        w.put(
            f"and.b32 {bit}, {state}, {1 << rng.randrange(4)};", f"setp.{rng.choice(('ne', 'eq'))}.u32 {p}, {bit}, 0;"
        )
        if rng.random() < 0.3:
            inside = w.mark()
            k.straight(rng.randint(1, 3), 0)
            w.release(inside)  # the other blocks may come from elsewhere
        w.put(f"@{p} bra {rng.choice((*labels, *labels[n + 1 :], *labels[n + 1 :]))};")
        for _ in range(rng.choice((1, 2, 2))):
            _mix(k, state, held)
        w.put(f"shf.l.wrap.b32 {state}, {state}, {state}, {rng.choice((1, 3, 7))};")
        if rng.random() < 0.4:
            w.put(f"@!{p} bra {rng.choice(labels)};")
            _mix(k, state, held)
    k.loops -= 1
    w.put(f"{end}:")
    w.show("w", state)
