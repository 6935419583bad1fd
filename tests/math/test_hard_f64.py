"""f64 divisors whose reciprocal is closest to a midpoint of two numbers: only for these could a reciprocal be rounded
wrongly.

``b * m = 2**k - j`` for an odd m of 54 bits and 0 < |j| <= 13 (k = 105, 106, 107) says how near. The list is complete:
it comes from factoring those 78 numbers. The error of the sequence before its last rounding is below 12 * 2**-107
(docs/math.md), so no other divisor can fail.
"""

from __future__ import annotations

import pytest

from .exact import F64, MODES, div
from .sasseval import Evaluator, one_op

HARD = """
    1014ca35e947b6 1024a3bd98da02 10699d36aec84e 109107683ee29e 10aadc6f562fdc 10af911aa26396 10d03f8a57cc76
    10ed85c351e224 110af85de838ce
    110d10000221a2 1125e52b034982 113deff6b41e35 115efb8b10aa42 11d3799c32581e 11f98ea5d9b262 120a8f5bbf2106
    12af4d6bc06922 12bf5907e316d2
    12d2d2d2d2d2d4 12e3c6a0509ca4 12e93952a2ed6e 130a0dd90e13a2 132160ccc0848c 134d8fe343ef42 13541c0067f83c
    1379cb88f092f2 13a324a526d5ee
    13a7a1d01d1ec2 13d75d54b37492 1403e897077b16 14873ecade304c 14a6fb45f5d782 14cad5a5fa03ee 15555555555554
    155f2490c86132 156a8cb0234262
    159aa11aaecb86 16026c81a85766 161c2909f39d4b 163baaac17d1e2 163dd0554d0122 16d6422e5cf246 16f0f27bf434d6
    16fae7ba173812 172f10bf899124
    17641c46f799ee 178cb7d5d6e322 178d42e524dcdc 17f52093014f0e 1806c89fcb9452 181efe51ead722 18401cbcdb5596
    184a12efef626e 194ab05a4ecedc
    194c4511fa3124 1960a45d1a71e6 199d2b42ffe9f4 199e1b447e99c2 19f142d24e1352 1a0b8ffffcbe8e 1a149bad85de72
    1a2ce4d7478a06 1a6f41dab98cb2
    1aa7c88ee59082 1ae6849e786ad2 1b227794e85702 1bea3278b789d2 1c2693dcf34742 1c36899addce3c 1c384d119331c4
    1c4d3aabd478f6 1c69bf28eba166
    1c928b5b9dc714 1d5b9032f086be 1da210daeb138e 1de441d5331432 1de4a0d00fa9b2 1e20adbc4078a2 1e756f08df1792
    1e8d517d09c5c2 1e9a9473949bf6
    1ef43974550f69 1ef7930608393e 1f65fad23b0d86 1f739bd459bea2 1fe24bffeb8794 1ffb8a8b628dbc 1ffffff8000001
    1ffffffffffffd 1fffffffffffff
"""
DIVISORS = [int(h, 16) for h in HARD.split()]
ONE = 1023 << 52


def number(significand: int) -> int:
    """The f64 of [1, 2) with that significand."""
    return ONE | (significand - (1 << 52))


def test_hard_divisors_are_close_to_midpoints() -> None:
    for b in DIVISORS:
        near = (
            abs((1 << k) - b * m)
            for k in (105, 106, 107)
            for m in ((1 << k) // b, (1 << k) // b + 1)
            if m & 1 and m.bit_length() == 54
        )
        assert 0 < min(near) <= 13, hex(b)


@pytest.mark.parametrize("mode", MODES)
def test_reciprocals(mode: str) -> None:
    ev = Evaluator(one_op(f"rcp.{mode}.f64 $d, $0", "f64", ["f64"], "sm_90"), 2)
    for b in DIVISORS:
        for x in (number(b), number(b) | 1 << 63):
            for _ in range(4):
                assert ev.run(x) == div(F64, ONE, x, mode), hex(x)
    assert ev.calls == 0


def quotients(b: int) -> list[int]:
    """Dividends whose quotient by b is within 12/(b*m) of a 54-bit number m."""
    t = (b & -b).bit_length() - 1
    odd = b >> t
    out = []
    for scale in (53, 54):
        for k in range(-12, 13):
            if k and not k & ((1 << t) - 1):
                a = (k >> t) * pow(1 << (scale - t), -1, odd) % odd
                out += [x for x in range(a, 1 << 53, odd) if x >= 1 << 52]
    return out


@pytest.mark.parametrize("mode", MODES)
def test_quotients(mode: str) -> None:
    ev = Evaluator(one_op(f"div.{mode}.f64 $d, $0, $1", "f64", ["f64", "f64"], "sm_90"), 2)
    tried = 0
    for b in DIVISORS:
        if b & 63:
            for a in quotients(b):
                tried += 1
                assert ev.run(number(a), number(b)) == div(F64, number(a), number(b), mode), (hex(a), hex(b))
    assert tried > 1000 and ev.calls == 0
