"""The Ori stream and its text form: round trips, and hostile bytes."""

from __future__ import annotations

import io
import random

import msgpack
import pytest

from ir_format import wire
from ir_format.diag import StreamError
from ir_format.model import Header, Module, Unit, Var
from ir_format.text import parse_unit, print_unit
from tests.ir.units import random_unit

LEVELS = ("ori", "allocated", "scheduled", "encoded")


def same(a: Unit, b: Unit) -> bool:
    """Units compare by every field."""
    return all(getattr(a, s) == getattr(b, s) for s in Unit.__slots__)


def stream(unit: Unit, level: str) -> bytes:
    """One unit as a whole stream."""
    out = io.BytesIO()
    w = wire.Writer(out.write)
    w.record(wire.MAGIC, wire.header_to_wire(Header(level, "sm_90", "k.ptx")))
    m = Module()
    m.vars = [Var("g", "global", 8, 4, b"abcd", ((0, "tab", 4, 1),))]
    m.units = [unit.name]
    w.record("module", wire.module_to_wire(m))
    w.record("unit", wire.unit_to_wire(unit))
    w.end()
    return out.getvalue()


def read(data: bytes) -> Unit:
    """The unit of a stream; checks everything while reading."""
    level = ""
    unit = None
    for tag, body in wire.records(io.BytesIO(data)):
        if tag == wire.MAGIC:
            level = wire.header_from_wire(body).level
        elif tag == "module":
            wire.module_from_wire(body)
        else:
            unit = wire.unit_from_wire(body, level)
    assert unit is not None
    return unit


@pytest.mark.parametrize("level", LEVELS)
def test_wire_and_text_round_trip(level: str) -> None:
    for seed in range(60):
        u = random_unit(random.Random(seed), level)
        back = read(stream(u, level))
        assert same(u, back)
        text = print_unit(u, level)
        again, lv = parse_unit(text)
        assert lv == level
        assert same(u, again), text
        assert stream(again, level) == stream(u, level)


def test_stream_arrives_in_small_pieces() -> None:
    data = stream(random_unit(random.Random(1), "ori"), "ori")

    class Drip:
        def __init__(self) -> None:
            self.inner = io.BytesIO(data)

        def read(self, n: int) -> bytes:
            return self.inner.read(min(n, 5))

    slow = [t for t, _ in wire.records(Drip())]  # type: ignore[arg-type]
    assert slow == [t for t, _ in wire.records(io.BytesIO(data))]


def test_truncated_and_flipped_streams_are_refused_or_still_valid() -> None:
    rng = random.Random(7)
    refused = 0
    data = stream(random_unit(rng, "scheduled"), "scheduled")
    for case in range(600):
        bad = bytearray(data)
        if case % 2:
            del bad[rng.randrange(len(bad)) :]
        else:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        try:
            read(bytes(bad))
        except StreamError:
            refused += 1
    assert refused == 600  # the checksum sees every flip, the trailer every cut


def test_forged_records_with_a_true_checksum() -> None:
    """Flip values inside a unit and write a correct trailer: the field checks alone must suffice."""
    rng = random.Random(11)
    body = wire.unit_to_wire(random_unit(rng, "allocated"))
    plain = msgpack.unpackb(msgpack.packb(body), use_list=True)

    def mutate(x: object, depth: int = 0) -> object:
        if isinstance(x, list) and x and rng.random() < 0.9:
            i = rng.randrange(len(x))
            return [*x[:i], mutate(x[i], depth + 1), *x[i + 1 :]]
        if isinstance(x, dict) and x and depth == 0:
            k = rng.choice(sorted(x))
            return {**x, k: mutate(x[k], depth + 1)}
        return rng.choice(
            [None, -1, 1 << 40, "", "x" * 100, b"", [], {}, [[]], 3.5, True, "R", ["R", 300, 0, 1, 0, ""]]
        )

    refused = 0
    for _ in range(500):
        forged = msgpack.unpackb(msgpack.packb(mutate(plain)), use_list=False, strict_map_key=False)
        try:
            wire.unit_from_wire(forged, "allocated")
        except StreamError:
            refused += 1
    assert refused > 300


def test_memory_bomb_is_refused() -> None:
    bomb = msgpack.packb("orias")[:0] + b"\x92\xa5orias" + b"\xdd\xff\xff\xff\xff" * 50
    with pytest.raises(StreamError):
        list(wire.records(io.BytesIO(bomb)))


def test_unknown_version_says_so() -> None:
    h = wire.header_to_wire(Header("ori", "sm_90"))
    h["version"] = 99
    with pytest.raises(StreamError, match="version 99"):
        wire.header_from_wire(h)
