"""The order of functions in an object: each after those that it calls (measured on ptxas 13.0.88)."""

from __future__ import annotations

from ir_format.model import Unit


def object_order(units: list[Unit]) -> list[Unit]:
    """``units`` are in order of declaration. Kernels come last first, then functions last first, each after the
    functions that it calls, the last called first."""
    named = {u.name: u for u in units}
    calls = {
        u.name: [r.symbol for c in u.code for r in c.relocs if r.kind == "call_abs" and r.symbol in named]
        for u in units
    }
    roots = [u for u in reversed(units) if u.kind == "entry"] + [u for u in reversed(units) if u.kind != "entry"]
    out: list[Unit] = []
    seen: set[str] = set()
    stack = [(u.name, False) for u in reversed(roots)]
    while stack:
        name, done = stack.pop()
        if done:
            out.append(named[name])
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack += [(other, False) for other in dict.fromkeys(calls[name]) if other not in seen]
    return out
