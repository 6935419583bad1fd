"""Instructions for which ptxas 13.0 is known to leave the manual: patterns, and the cause. The interpreter follows the
manual.

A form that differs and matches no pattern is a finding; so is one that its model in `quirks` does not predict.
`tests/cosim/known` holds kernels for the main causes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tests.cosim.forms.quirks import LEFT_OUT

_ARITH = r"v(?:add|sub|absdiff|min|max)\.\S*"
#: (pattern of the instruction, cause).
PTXAS: Final = (
    (
        r"v(?:add|sub|absdiff|min|max|set|shl|shr)\.\S* %r40\.h1,",
        "video, destination .h1: ptxas puts the upper half of the intermediate there, not the lower",
    ),
    (
        _ARITH + r"\.sat %r40\.[bh]\d,",
        (
            "video, .sat into a byte or half: ptxas compares without sign, "
            "a negative intermediate becomes the greatest value"
        ),
    ),
    (r"vsh[lr]\.\S*\.sat\S* %r40\.[bh]\d,", "vshl, vshr with .sat into a byte or half: ptxas clamps to 32 bits only"),
    (
        r"vset\.s32\.\S*\.(?:min|max) ",
        "vset with a second min or max: ptxas compares the unsigned c with a sign where a is signed",
    ),
    (r"vmad\.", "vmad: ptxas extends c and whole words by sign, whatever their types say"),
    (
        _ARITH + r"(?:\.sat|\.sat\.(?:min|max|add)|\.min|\.max) %r40, ",
        "video, intermediate of 33 or 34 bits: ptxas adds in 32 bits before it clamps or compares",
    ),
    (
        r"vsh[lr]\.\S*\.sat\S*\.(?:min|max|add) %r40, ",
        "vshl.sat, vshr.sat with a second operation: ptxas compares what the shift moved beyond 32 bits",
    ),
    (r"bf[ei]\.[usb]64 ", "bfe, bfi of 64 bits: ptxas does not cut position and length to 8 bits"),
    (
        r"cvt\.rna(?:\.satfinite)?\.tf32\.f32 ",
        (
            "cvt.rna.tf32: a NaN whose payload lies in the 13 dropped bits becomes an infinity (with "
            ".satfinite: the greatest number)"
        ),
    ),
    (r"cvt\.r[mp]\.ftz(?:\.sat)?\.f16\.f32 ", "cvt.rm/rp.ftz.f16.f32: ptxas drops .ftz"),
    (r"fns\.b32 ", "fns with the offset -2**31: ptxas finds the first bit where there is none"),
    (LEFT_OUT.pattern, "ld, st of 256 bits of scope .cluster: no load, no store"),
    (r"(?:ld|st)\S*\.param\S*\.b128 ", "parameters of 128 bits of a function: ptxas passes the lower half alone"),
)


#: What ptxas makes of forms that the manual does not have (`stages.interpret.undocumented`): (pattern, result).
OUTSIDE: Final = (
    (r"(?:ld|st)\.\S*v8\.[bus](?:8|16) ", "ld, st of eight bytes or halves: moves the first element alone"),
    (r"(?:red|st)\.async\.mmio\.release\.gpu\.", "st.async, red.async with .mmio.release.gpu: no code"),
    (
        r"st\.async(?!.*\.release)",
        "st.async to global memory without .release: no code (with a scope on sm_120: a store)",
    ),
    (
        r"red\.async\.",
        "red.async to global memory other than .release and .add: adds whatever the operation is (sm_90: no code)",
    ),
    (r"testp\.f(?:32|64) ", "testp without a property: no code, the predicate is what it was"),
    (r"fma\.r[zmp]\.\S*bf16 ", "fma.rz, .rm, .rp of bf16: reads the operands as f16"),
    (r"fma\.r[zmp]\.\S*bf16x2 ", "fma.rz, .rm, .rp of bf16x2: rounds to nearest"),
    (
        r"fence\.(?:acquire|release)\.",
        "fence.acquire, fence.release below sm_90: a word of zeros, which is no instruction",
    ),
)

#: Causes that our own chain shares.
OURS: Final = tuple([x for x in PTXAS if x[0].startswith(r"cvt\.rna")])


def cause(text: str, who: str) -> str:
    """The known cause of a difference; "" if there is none."""
    return _first(PTXAS if who == "ptxas" else OURS, text)


def outside(text: str) -> str:
    """What ptxas makes of a form that the manual does not have; "" if that is not known."""
    return _first(OUTSIDE, text)


def _first(table: Iterable[tuple[str, str]], text: str) -> str:
    return next((why for pattern, why in table if re.match(pattern, text)), "")
