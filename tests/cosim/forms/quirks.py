"""The results of ptxas 13.0 for instructions where it leaves the manual: models taken from its code, so that a known
difference can be checked value by value.

Only this sweep uses them. A difference that a model predicts in every thread is ptxas's, not the simulator's. The same
holds for forms that the manual does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from tests.cosim.forms.base import Form
from tests.cosim.forms.values import Array, differ, wrong

U64 = np.uint64
Outputs = tuple[Array, Array]
#: Sources, third buffer and parameter bytes of a form.
Given = tuple[Array, Array, bytes]
_VIDEO = re.compile(r"(v\w+)\.(\S+) %r40(\.[bh]\d)?, (-?)%r0(\.[bh]\d)?, (-?)%r1(\.[bh]\d)?(?:, (-?)%r2)?;")
_FIELD = re.compile(r"bf(e|i)\.([usb])64 ")
_COMPARE = {"eq": int.__eq__, "ne": int.__ne__, "lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__}
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def _signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def _part(x: int, selector: str | None, signed: bool) -> int:
    bits = 32 if not selector else 8 if selector[1] == "b" else 16
    x >>= bits * int(selector[2]) if selector else 0
    return _signed(x, bits) if signed else x & ((1 << bits) - 1)


def _clamp(x: int, signed: bool, bits: int) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(x, low), high)


#: Accesses of 256 bits with scope .cluster: no load and no store, no matter what else they say (sm_100 and above, which
#: have such accesses).
LEFT_OUT: Final = re.compile(r"(ld|st)\.(?:acquire|relaxed|release)\.cluster\.(?:\S*\.)?v(?:8\.\w32|4\.\w64) ")

#: Parameters of functions that are only partly stored.
_UNSET = re.compile(r"st\S*\.param\S*\.v8\.\w(8|16) \[ca(?:\+(\d+))?\]")
#: A form that behaves like another one: (pattern of the target and the instruction, the other instruction, whether only
#: its first result is defined). "" for no instruction at all. The interpreter runs the other one.
AS_IF: Final = (
    (r"\S+ (ld\S*)\.v8\.(\w+) \{(%\w+), .*\}, (.*)", r"\1.\2 \3, \4", True),
    (r"\S+ (st\S*)\.v8\.(\w+) (\[.*\]), \{(%\w+),[^}]*\}(.*)", r"\1.\2 \3, \4\5", False),
    (r"\S+ fma\.r[zmp]\.(.*bf16x2 .*)", r"fma.rn.\1", False),
    (r"\S+ cvt\.(r[mp])\.ftz(\S*\.f16\.f32 .*)", r"cvt.\1\2", False),
    (r"\S+ (?:st|red)\.async\.mmio\.release\.gpu\..*", "", False),
    (r"sm_1\S+ st\.async\.(?:gpu|sys)((?:\.global)?\.\w+ .*)", r"st\1", False),
    (r"\S+ st\.async(?!.*\.release).*", "", False),
    (r"sm_90\w? red\.async\..*", "", False),
    (
        r"\S+ red\.async\.(?:mmio\.)?(?:release|relaxed)\.(?:gpu|sys)(\.global)?\.\w+\.\w(\d\d .*)",
        r"red\1.add.u\2",
        False,
    ),
)


def predicts(
    form: Form,
    target: str,
    given: Given,
    want: Outputs | None,
    got: Outputs,
    interpret: Callable[[Form], Outputs],
    execute: Callable[[Given], Outputs],
) -> bool:
    """Whether a cubin of ptxas returns in every thread what the form's model says.

    ``want``: the interpreter's answer (None: the manual does not have the form); ``interpret`` runs another form;
    ``execute`` runs the cubin on other input than ``given``.
    """
    left_out = LEFT_OUT.match(form.text)
    if left_out:
        untouched = bool((got[1] == given[1]).all())
        if left_out.group(1) == "st":
            return untouched
        elsewhere = execute((given[0], ~given[1], given[2]))  # registers that nothing writes do not follow the memory
        return untouched and bool((elsewhere[0] == got[0]).all())
    if re.match(r"testp\.f(?:32|64) ", form.text):  # a predicate that nothing writes does not follow the operand
        elsewhere = execute((~given[0], given[1], given[2]))
        return bool((elsewhere[0] == got[0]).all())
    for pattern, other, first in AS_IF:
        found = re.fullmatch(pattern, f"{target} {form.text}")
        if found:
            text = found.expand(other)
            changed = replace(
                form, text=text, body=form.body.replace(form.text, text), module=form.module.replace(form.text, text)
            )
            if (changed.body, changed.module) == (form.body, form.module):
                return False
            model = interpret(changed)
            if first:
                return not differ(model[0][:, 0], got[0][:, 0], form.dests[0]).any()
            unset = _UNSET.match(form.text)
            if unset:  # nothing writes the other elements of a parameter
                start, size = int(unset.group(2) or 0), int(unset.group(1)) // 8
                for side in (model, got):
                    side[1].reshape(form.count, -1)[:, start + size : start + 8 * size] = 0
            return not wrong(form, model, got).any()
    if want is not None and re.match(r"ld\S*\.param\S*\.b128 ", form.text):
        elsewhere = execute(
            (given[0], ~given[1], given[2])
        )  # the upper half is an arbitrary register value, not the argument's
        return bool((got[0][:, 0] == want[0][:, 0]).all() and (elsewhere[0][:, 1] == got[0][:, 1]).all())
    if re.match(r"st\S*\.param", form.text):
        return bool((_half_parameter(form, given[0], given[1]) == got[1]).all())
    if form.text.startswith("fns") and want is not None:
        least = given[0][:, 2] & U64(M32) == U64(1 << 31)
        return not differ(np.where(least, U64(0), want[0][:, 0]), got[0][:, 0], "b32").any()
    results = _results(form, given[0])
    return results is not None and not differ(results, got[0][:, 0], form.dests[0]).any()


def _results(form: Form, data: Array) -> Array | None:
    """The first result of each thread as ptxas computes it; None without a model."""
    found = _VIDEO.match(form.text)
    if found:
        if found.group(1) == "vmad":
            return _each(form, data, lambda row: _vmad(found, row))
        if not found.group(1)[-1].isdigit():
            return _each(form, data, lambda row: _scalar(found, row))
    field = _FIELD.match(form.text)
    if field:
        return _each(form, data, lambda row: _bits(field, row))
    if form.text.startswith("cvt.rna"):
        return _each(form, data, lambda row: _rna(row, "satfinite" in form.text))
    if re.match(r"fma\.r[zmp]\.\S*bf16 ", form.text):
        return _fma_halves(data, form.text[4:6])
    return None


def _fma_halves(data: Array, mode: str) -> Array:
    """fma of bf16 with a rounding other than to nearest: the operands are read as f16, the sum is rounded to f32 as
    asked and then to the nearest f16."""
    from stages.interpret.floats import FORMATS, decode, fma, narrow

    half, single = FORMATS["f16"], FORMATS["f32"]
    x, y, z = (narrow(decode(data[:, k] & U64(0xFFFF), half), single) for k in range(3))
    return np.asarray(narrow(decode(fma(x, y, z, single, mode), single), half))


def _half_parameter(form: Form, data: Array, third: Array) -> Array:
    """The third buffer after 128 bits went through a parameter: only the lower half arrives."""
    out = third.copy().view(U64).reshape(form.count, -1)
    at = re.search(r"\[ca\+(\d+)\]", form.text)
    out[:, int(at.group(1)) // 8 if at else 0] = data[:, 0]
    return out.reshape(-1).view(np.uint8)


def _each(form: Form, data: Array, one: Any) -> Array:
    return np.array([one([int(x) for x in row]) & M64 for row in data], np.uint64)


def _scalar(found: re.Match[str], row: list[int]) -> int:
    """Scalar video instructions: clamps of bytes and halves without sign, no upper clamp of words, the upper half for
    .h1, comparisons of the lower 32 bits of sums and clamped results extended by sign."""
    name, rest, into = found.group(1), found.group(2).split("."), found.group(3)
    types = [x for x in rest if x in ("u32", "s32")]
    dest, ta, tb = types if name != "vset" else ("u32", *types)
    sat, second = "sat" in rest, next((x for x in rest if x in ("add", "min", "max")), "")
    a, b = _part(row[0], found.group(5), ta == "s32"), _part(row[1], found.group(7), tb == "s32")
    c = row[2] & M32 if len(row) > 2 else 0
    d_signed = dest == "s32"
    n = b & 31 if "wrap" in rest else min(b & M32, 32)
    if name == "vset":
        compare = next(x for x in rest if x in _COMPARE)
        r = int(_COMPARE[compare](a, b))
    else:
        r = {
            "vadd": a + b,
            "vsub": a - b,
            "vabsdiff": abs(a - b),
            "vmin": min(a, b),
            "vmax": max(a, b),
            "vshl": a << n,
            "vshr": a >> n,
        }[name]
    shifts = name in ("vshl", "vshr")
    if into:
        bits = 8 if into[1] == "b" else 16
        if sat and shifts:
            r = _clamp(_signed(r, 34), d_signed, 32)
        elif sat:
            top = (1 << bits - d_signed) - 1
            r = r if 0 <= r <= top else top
        at = int(into[2]) * bits
        if into == ".h1":
            return c & 0xFFFF | r & 0xFFFF0000
        low = (1 << bits) - 1
        return c & ~(low << at) & M32 | (r & low) << at
    if name == "vset":
        signed = types[0] == "s32"
        x, y = (r, _signed(c, 32)) if signed else (r, c)
        return {"min": min(x, y), "max": max(x, y), "add": x + y}.get(second, r) & M32
    if sat and d_signed:
        r = _clamp(_signed(r, 34) if shifts else r, True, 32)
    elif sat:
        r = _signed(r, 34) if shifts else r
        r = _clamp(r, False, 32) if shifts else max(r, 0) & M32
    if not second:
        return r & M32
    w = _signed(c, 32) if d_signed else c
    if second == "add":
        return r + w & M32
    if sat or name in ("vadd", "vsub"):
        r = _signed(r, 32)
    x, y = (r, w) if d_signed else (r & M64, w)
    return (min(x, y) if second == "min" else max(x, y)) & M32


def _vmad(found: re.Match[str], row: list[int]) -> int:
    """vmad: c and 32-bit factors signed, no matter what their types say; sums in 64 bits."""
    rest = found.group(2).split(".")
    types = [x for x in rest if x in ("u32", "s32")][1:]
    factors = []
    for value, selector, type_ in ((row[0], found.group(5), types[0]), (row[1], found.group(7), types[1])):
        factors.append(_part(value, selector, type_ == "s32" or not selector))
    product = factors[0] * factors[1]
    negative = (found.group(4) == "-") != (found.group(6) == "-")
    minus_c = found.group(8) == "-"
    is_signed = "s32" in types or negative or minus_c
    c = _signed(row[2], 32)
    r = (-product if negative else product) + (-c if minus_c else c) + ("po" in rest)
    r = _signed(r, 64) if is_signed or not any(x.startswith("shr") for x in rest) else r & M64
    r >>= next((int(x[3:]) for x in rest if x.startswith("shr")), 0)
    if "sat" in rest:
        r = _clamp(r, is_signed, 32)
    return r & M32


def _bits(found: re.Match[str], row: list[int]) -> int:
    """bfe and bfi of 64 bits: position and length as they are, shifts by 64 and more give zeros (or the sign)."""
    if found.group(1) == "i":
        x, y, at, n = row[0], row[1], row[2] & M32, row[3] & M32
        where = ((1 << min(n, 64)) - 1) << min(at, 64) & M64
        return y & ~where & M64 | (x << min(at, 64)) & where
    at, n = row[1] & M32, row[2] & M32
    x = _signed(row[0], 64) if found.group(2) == "s" else row[0]
    if n == 0:
        return 0
    field = x >> min(at, 64)
    if found.group(2) == "u":
        return field & ((1 << min(n, 64)) - 1)
    return _signed(field, min(n, 64)) if n < 64 else field


def _rna(row: list[int], finite: bool) -> int:
    """cvt.rna.tf32: an addition to finite bits, then a cut."""
    x = row[0] & M32
    if x & 0x7FFFFFFF < 0x7F800000:
        x = x + 0x1000 & M32
    x &= 0xFFFFE000
    return x - 0x2000 if finite and x & 0x7FFFFFFF >= 0x7F800000 else x
