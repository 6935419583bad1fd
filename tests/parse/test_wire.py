"""The wire form: a round trip preserves it, and forged records are refused with one kind of error."""

from __future__ import annotations

import random

import msgpack
import pytest

from ir_format import ptx_wire
from ir_format.diag import StreamError
from tests.parse.helpers import corpus, parse_ok


@pytest.mark.parametrize("path", corpus()[::5], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_round_trip(path) -> None:  # type: ignore[no-untyped-def]
    module, units = parse_ok(
        path.read_text(), "sm_120a" if "120" in str(path) else "sm_100a" if "100" in str(path) else "sm_90a"
    )
    packed = msgpack.packb([ptx_wire.to_wire(module), [ptx_wire.to_wire(u) for u in units]])
    wire_module, wire_units = msgpack.unpackb(packed)
    assert ptx_wire.module_from_wire(wire_module) == module
    assert [ptx_wire.unit_from_wire(u) for u in wire_units] == units


def _forge(rng: random.Random, x: object) -> object:
    """One random change somewhere in nested lists."""
    if isinstance(x, list) and x and rng.random() < 0.9:
        k = rng.randrange(len(x))
        return [*x[:k], _forge(rng, x[k]), *x[k + 1 :]]
    return rng.choice([None, -1, 0, 2**63, 2**65, "x", b"x", True, [], [[]], [5], 1.5, {}])


def test_forged_records_are_refused() -> None:
    path = next(p for p in corpus() if p.stem == "call_twice")
    module, units = parse_ok(path.read_text(), "sm_120a")
    wires = [ptx_wire.to_wire(module), *[ptx_wire.to_wire(u) for u in units]]
    rng = random.Random(5)
    refused = 0
    for _ in range(3000):
        wire = rng.choice(wires)
        forged = _forge(rng, wire)
        try:
            (ptx_wire.module_from_wire if wire is wires[0] else ptx_wire.unit_from_wire)(forged)
        except StreamError:
            refused += 1
    assert refused > 2000


@pytest.mark.parametrize("lanes", [0, -1, 3, 1 << 40])
def test_registers_have_one_two_or_four_elements(lanes: int) -> None:
    """A printer iterates over them."""
    _, units = parse_ok(next(p for p in corpus() if p.stem == "call_twice").read_text(), "sm_120a")
    wire = msgpack.unpackb(msgpack.packb(ptx_wire.to_wire(units[0])))

    def forged(x: object) -> object:
        if isinstance(x, list) and len(x) == 3 and isinstance(x[0], str) and x[0].startswith("%") and x[2] == 1:
            return [*x[:2], lanes]
        return [forged(e) for e in x] if isinstance(x, list) else x

    assert forged(wire) != wire
    with pytest.raises(StreamError, match="1, 2 or 4 elements"):
        ptx_wire.unit_from_wire(forged(wire))
