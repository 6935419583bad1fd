"""Writes PTX that LLVM's NVPTX back end makes, for `corpus_check`: one file per NVVM intrinsic, and files of ordinary
code.

    python tests/parse/llvm_corpus.py FOLDER [--every N]

Needs `llvmlite` (any Python); nothing of this repository is imported. The intrinsics' names are read from LLVM's
library, their signatures are found by trying: LLVM's verifier says whether a declaration is right. An intrinsic without
a known signature, or that LLVM cannot select for any of the targets, is left out and counted.
"""

from __future__ import annotations

import argparse
import itertools
import mmap
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGETS = (("sm_80", "+ptx78"), ("sm_90a", "+ptx83"), ("sm_100a", "+ptx88"), ("sm_120a", "+ptx88"), ("sm_75", "+ptx70"))
_HEAD = 'target triple = "nvptx64-nvidia-cuda"\n'
_SCALARS = ("i32", "float", "double", "i64", "i16", "i1", "half", "<2 x half>", "bfloat", "<2 x bfloat>", "i8", "ptr",
"ptr addrspace(1)", "ptr addrspace(3)",
            "ptr addrspace(4)", "ptr addrspace(5)", "ptr addrspace(6)", "ptr addrspace(7)", "<2 x i32>", "<4 x i32>",
            "<2 x float>", "<4 x float>", "i128")  # fmt: skip
_FRAGMENTS = ("i32", "float", "double", "<2 x half>")
_RETURNS = (
    "void", *_SCALARS, "{ i32, i1 }", "{ float, i1 }",
    *["{ " + ", ".join([t] * n) + " }" for t in ("i32", "float", "double", "<2 x half>", "i16", "i64",
    "half") for n in (2, 3, 4, 8)],
    "<4 x i8>", *[f"<{n} x {t}>" for t in ("i32", "float") for n in (8, 16, 32, 64, 128)],
)  # fmt: skip
_ZERO = {"i1": "0", "i3": "0", "i6": "0", "i8": "0", "fl": "0.0", "do": "0.0", "ha": "0.0", "bf": "0.0",
"<2": "zeroinitializer", "<4": "zeroinitializer",
         "<8": "zeroinitializer", "<1": "zeroinitializer", "<3": "zeroinitializer",
         "<6": "zeroinitializer"}  # fmt: skip
_ARGUMENTS = (
    "i32",
    "float",
    "double",
    "i64",
    "ptr",
    "ptr addrspace(1)",
    "ptr addrspace(3)",
    "i1",
    "i16",
    "ptr addrspace(7)",
    "ptr addrspace(6)",
)


def lists() -> Iterator[tuple[str, ...]]:
    """Argument lists to try, the likely ones first."""
    yield ()
    for n in (1, 2, 3, 4):
        yield from [(t,) * n for t in _SCALARS]
    for n in range(5, 25):
        yield from [(t,) * n for t in _FRAGMENTS]
    for a, b in itertools.permutations(_ARGUMENTS, 2):
        yield from ((a, b), (a, b, b), (a, a, b), (a, b, b, b), (a, a, a, b))
    yield from _matrices()
    yield "<4 x float>", "i32"
    yield from _fetches()
    yield from _tensors()
    yield from itertools.product(("i32", "ptr", "ptr addrspace(1)", "ptr addrspace(3)", "i64", "i1", "float"), repeat=3)


def _matrices() -> Iterator[tuple[str, ...]]:
    """Fragments with accumulators of another type, with an address, with scales and sparsity."""
    for t, n, m in itertools.product(_FRAGMENTS, range(1, 17), (1, 2, 4, 8)):
        yield (t,) * n + ("float",) * m
        yield (t,) * n + ("i32",) * m
    for first, n, t in itertools.product(_ARGUMENTS, (4, 8), _FRAGMENTS):
        yield (first, *(t,) * n)
        yield (first, *(t,) * n, "i32")
    for n, accumulators in itertools.product((6, 8, 12), (("float",) * 4, ("i32",) * 2)):
        for tail in (
            ("i32", "i16", "i16", "i32", "i16", "i16"),
            ("i32", "i32"),
            ("i32", "i32", "i32", "i16", "i16", "i32", "i16", "i16"),
        ):
            yield (*("i32",) * n, *accumulators, *tail)


def _fetches() -> Iterator[tuple[str, ...]]:
    """Surfaces and textures."""
    for d, n, t in itertools.product((1, 2, 3), (1, 2, 4), ("i16", "i32", "i64")):
        yield ("i64", *("i32",) * d, *(t,) * n)
    for first, t, n in itertools.product(
        (("i64",), ("i64", "i32"), ("i64", "i64"), ("i64", "i64", "i32")), ("float", "i32"), range(1, 10)
    ):
        yield (*first, *(t,) * n)


def _tensors() -> Iterator[tuple[str, ...]]:
    """Tensor memory; tensor copies: coordinates between addresses, then flags."""
    for n in (2, 4, 8, 16, 32, 64, 128):
        yield "ptr addrspace(6)", f"<{n} x i32>", "i1"
        yield "ptr addrspace(6)", "i64", f"<{n} x i32>", "i1"
    yield "ptr addrspace(6)", "i64", "i1"
    tails = [("i16",) * k + ("i16", "i64", "i1", "i1", "i32") for k in range(4)] + [
        ("i64", "i1"),
        ("i64", "i1", "i32"),
        ("i16", "i64", "i1", "i1"),
        (),
    ]
    shared, tensor = "ptr addrspace(3)", "ptr"
    for d, tail, addresses in itertools.product(
        range(1, 6),
        tails,
        (("ptr addrspace(7)", shared, tensor), (shared, shared, tensor), (shared, tensor), (tensor,)),
    ):
        yield (*addresses, *("i32",) * d, *tail)


def names(library: Path) -> list[str]:
    """Names of the intrinsics in LLVM's library."""
    found = {m.group().decode() for m in re.finditer(rb"llvm\.nvvm\.[a-z0-9][A-Za-z0-9_.]*", library.read_bytes())}
    return sorted(n for n in found if not n.endswith("."))


class Signatures:
    """Finds the declaration of an intrinsic by trying."""

    def __init__(self, binding: Any) -> None:
        self.binding = binding
        self.lists = list(dict.fromkeys(lists()))

    def _verified(self, name: str, result: str, arguments: tuple[str, ...]) -> str:
        """The verifier's message for a call; "" if none. (It does not check declarations.)"""
        call = f"call {result} @{name}({', '.join([t + ' ' + _ZERO.get(t[:2], 'null') for t in arguments])})"
        text = (
            f"declare {result} @{name}({', '.join(arguments)})\ndefine void @t() {{ "
            f"{'' if result == 'void' else '%r = '}{call}\n ret void }}\n"
        )
        try:
            module = self.binding.parse_assembly(_HEAD + text)
            module.verify()
        except RuntimeError as e:
            return str(e)
        return ""

    def find(self, name: str) -> tuple[str, tuple[str, ...]] | None:
        """Result and argument types; None if no try is right.

        A wrong try can end the process (LLVM rewrites calls of old intrinsics without checking their operands). So
        another process makes the tries and records each in shared memory first; if it ends, that try is left out.
        """
        place = mmap.mmap(-1, 16)
        crashed: set[tuple[int, int]] = set()
        while len(crashed) < 60:
            place[:16] = b"\xff" * 16
            child = os.fork()
            if not child:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                self._search(name, place, crashed)
                os._exit(0)
            died = os.waitpid(child, 0)[1]
            result, arguments = int.from_bytes(place[:8], "little"), int.from_bytes(place[8:], "little")
            if not died:
                return (_RETURNS[result], self.lists[arguments]) if result < len(_RETURNS) else None
            crashed.add((result, arguments))
        return None

    def _search(self, name: str, place: mmap.mmap, crashed: set[tuple[int, int]]) -> None:
        def right(result: int, arguments: int) -> str:
            place[:16] = result.to_bytes(8, "little") + arguments.to_bytes(8, "little")
            return self._verified(name, _RETURNS[result], self.lists[arguments])

        for result in range(len(_RETURNS)):
            probe = next(k for k in range(len(self.lists)) if (result, k) not in crashed)
            if "return type" in right(result, probe):
                continue
            for k in range(len(self.lists)):
                if (result, k) not in crashed and not right(result, k):
                    return
        place[:16] = b"\xff" * 16


def kernel(name: str, result: str, arguments: tuple[str, ...], constant: int | None) -> str:
    """A kernel that loads the arguments, calls, and stores the result; integers are constants unless `constant` is
    None."""
    lines = []
    given = []
    for k, t in enumerate(arguments):
        if constant is not None and t in ("i32", "i1", "i16", "i8") and (k or len(arguments) == 1):
            given.append(f"{t} {constant & 1 if t == 'i1' else constant}")
            continue
        lines.append(
            f"  %p{k} = getelementptr i8, ptr addrspace(1) %in, i64 {32 * k}\n  %a{k} = load {t}, "
            f"ptr addrspace(1) %p{k}"
        )
        given.append(f"{t} %a{k}")
    call = f"call {result} @{name}({', '.join(given)})"
    lines.append(f"  {call}" if result == "void" else f"  %r = {call}\n  store {result} %r, ptr addrspace(1) %out")
    head = f"declare {result} @{name}({', '.join(arguments)})\n"
    return (
        f"{head}define ptx_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{\n"
        + "\n".join(lines)
        + "\n  ret void\n}\n"
    )


def ordinary() -> Iterator[tuple[str, str]]:
    """Code without intrinsics of NVVM: operators, conversions, atomics, memory, control flow, by type."""
    ints, floats = ("i8", "i16", "i32", "i64"), ("half", "bfloat", "float", "double", "<2 x half>", "<2 x float>")
    for t in ints:
        ops = ("add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor")
        yield f"int_{t}", _chain(t, [f"{op} {t}" for op in ops])
        compares = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")
        yield f"icmp_{t}", _selects(t, "icmp", compares)
        unary = ("ctpop", "bswap", "bitreverse") if t != "i8" else ("ctpop", "bitreverse")
        yield f"bits_{t}", _calls(t,
            [(f"llvm.{u}.{t}", 1) for u in unary] + [(f"llvm.{u}.{t}", 2) for u in ("smin", "smax", "umin", "umax",
            "sadd.sat", "usub.sat")]
                                  + [(f"llvm.fshl.{t}", 3), (f"llvm.fshr.{t}", 3)])  # fmt: skip
    for t in floats:
        mangled = (
            t.replace("<2 x half>", "v2f16")
            .replace("<2 x float>", "v2f32")
            .replace("half", "f16")
            .replace("bfloat", "bf16")
            .replace("float", "f32")
            .replace("double", "f64")
        )
        mangled = mangled.replace("bf32", "bf16")
        yield f"float_{mangled}", _chain(t, [f"{op} {t}" for op in ("fadd", "fsub", "fmul", "fdiv")])
        yield f"contract_{mangled}", _chain(t, [f"{op} contract {t}" for op in ("fmul", "fadd", "fmul", "fsub")])
        if "x" not in t:
            yield (
                f"fcmp_{mangled}",
                _selects(
                    t,
                    "fcmp",
                    ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"),
                ),
            )
        yield f"fcalls_{mangled}", _calls(t,
            [(f"llvm.fma.{mangled}", 3), (f"llvm.fabs.{mangled}", 1), (f"llvm.copysign.{mangled}", 2),
            (f"llvm.minnum.{mangled}", 2),
                                              (f"llvm.maximum.{mangled}", 2), (f"llvm.floor.{mangled}", 1),
                                              (f"llvm.rint.{mangled}", 1), (f"llvm.sqrt.{mangled}", 1)])  # fmt: skip
    for a, b in itertools.product((*ints, *floats[:4]), repeat=2):
        for op in _casts(a, b):
            yield f"{op}_{a}_{b}", _unary(a, b, op)
    for t in ("i32", "i64", "float", "double", "half", "i16"):
        for space in (0, 1, 3):
            yield f"atomics_{t}_{space}", _atomics(t, space)
    for t, space in itertools.product(
        ("i8", "i16", "i32", "i64", "float", "double", "<4 x float>", "<2 x i64>", "<4 x i8>", "<8 x half>"),
        (0, 1, 3, 4, 5),
    ):
        yield f"memory_{t}_{space}".replace("<", "v").replace(">", "").replace(" ", ""), _memory(t, space)
    yield "control", _CONTROL
    yield "globals", _GLOBALS


def _define(body: str, arguments: str = "ptr addrspace(1) %in, ptr addrspace(1) %out", before: str = "") -> str:
    return f"{before}define ptx_kernel void @k({arguments}) {{\n{body}\n  ret void\n}}\n"


def _chain(t: str, ops: list[str]) -> str:
    lines = [
        (
            f"  %p1 = getelementptr {t}, ptr addrspace(1) %in, i64 1\n  %x = load {t}, "
            f"ptr addrspace(1) %in\n  %y = load {t}, ptr addrspace(1) %p1"
        )
    ]
    for k, op in enumerate(ops):
        lines.append(f"  %r{k} = {op} {'%x' if not k else f'%r{k - 1}'}, %y")
        lines.append(
            f"  %o{k} = getelementptr {t}, ptr addrspace(1) %out, i64 {k}\n  store {t} %r{k}, ptr addrspace(1) %o{k}"
        )
    return _define("\n".join(lines))


def _selects(t: str, op: str, conditions: tuple[str, ...]) -> str:
    lines = [
        (
            f"  %p1 = getelementptr {t}, ptr addrspace(1) %in, i64 1\n  %x = load {t}, "
            f"ptr addrspace(1) %in\n  %y = load {t}, ptr addrspace(1) %p1"
        )
    ]
    for k, c in enumerate(conditions):
        lines.append(f"  %c{k} = {op} {c} {t} %x, %y\n  %z{k} = select i1 %c{k}, i32 {k + 5}, i32 {k * 77}")
        lines.append(
            f"  %o{k} = getelementptr i32, ptr addrspace(1) %out, i64 {k}\n  store i32 %z{k}, ptr addrspace(1) %o{k}"
        )
    return _define("\n".join(lines))


def _calls(t: str, calls: list[tuple[str, int]]) -> str:
    before = "".join([f"declare {t} @{name}({', '.join([t] * n)})\n" for name, n in calls])
    lines = [
        f"  %p{k} = getelementptr {t}, ptr addrspace(1) %in, i64 {k}\n  %a{k} = load {t}, ptr addrspace(1) %p{k}"
        for k in range(3)
    ]
    for k, (name, n) in enumerate(calls):
        given = ", ".join([f"{t} %a{i}" for i in range(n)])
        lines.append(
            f"  %r{k} = call {t} @{name}({given})\n  %o{k} = getelementptr {t}, ptr addrspace(1) %out, "
            f"i64 {k}\n  store {t} %r{k}, ptr addrspace(1) %o{k}"
        )
    return _define("\n".join(lines), before=before)


_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "bfloat": 16, "float": 32, "double": 64}


def _casts(a: str, b: str) -> list[str]:
    if a == b:
        return []
    wider = _BITS[b] > _BITS[a]
    if a[0] == b[0] == "i":
        return ["zext", "sext"] if wider else ["trunc"]
    if a[0] == "i":
        return ["uitofp", "sitofp", *(["bitcast"] if _BITS[a] == _BITS[b] else [])]
    if b[0] == "i":
        return ["fptoui", "fptosi", *(["bitcast"] if _BITS[a] == _BITS[b] else [])]
    return ["fpext"] if wider else ["fptrunc"] if _BITS[a] > _BITS[b] else []


def _unary(a: str, b: str, op: str) -> str:
    return _define(
        f"  %x = load {a}, ptr addrspace(1) %in\n  %y = {op} {a} %x to {b}\n  store {b} %y, ptr addrspace(1) %out"
    )


def _atomics(t: str, space: int) -> str:
    pointer = f"ptr addrspace({space})"
    floating = t in ("float", "double", "half")
    ops = (
        ("xchg", "fadd", "fmax")
        if floating
        else ("xchg", "add", "sub", "and", "or", "xor", "max", "min", "umax", "umin")
    )
    lines = [f"  %v = load {t}, ptr addrspace(1) %out"]
    for k, op in enumerate(ops):
        for j, (order, scope) in enumerate(
            (("monotonic", ""), ("acq_rel", ' syncscope("block")'), ("seq_cst", ' syncscope("device")'))
        ):
            lines.append(
                f"  %r{k}_{j} = atomicrmw {op} {pointer} %in, {t} %v{scope} {order}\n  store volatile {t} "
                f"%r{k}_{j}, ptr addrspace(1) %out"
            )
    if not floating:
        lines.append(
            f"  %c = cmpxchg {pointer} %in, {t} %v, {t} 7 acq_rel monotonic\n  %d = extractvalue {{ {t}, "
            f"i1 }} %c, 0\n  store volatile {t} %d, ptr addrspace(1) %out"
        )
    if t in ("i32", "i64", "float"):
        lines.append(
            f"  %l = load atomic {t}, {pointer} %in acquire, align 8\n  store atomic {t} %l, "
            f'{pointer} %in release, align 8\n  fence syncscope("device") seq_cst'
        )
    return _define("\n".join(lines), f"{pointer} %in, ptr addrspace(1) %out")


def _memory(t: str, space: int) -> str:
    pointer = f"ptr addrspace({space})"
    line = (
        f"  %x = load {t}, {pointer} %in\n  store {t} %x, ptr addrspace(1) %out\n  %q = getelementptr {t}, "
        f"{pointer} %in, i64 3\n  %y = load volatile {t}, {pointer} %q"
    )
    line += f"\n  store volatile {t} %y, ptr addrspace(1) %out"
    return _define(
        line + (f"\n  store {t} %y, {pointer} %in" if space != 4 else ""), f"{pointer} %in, ptr addrspace(1) %out"
    )


_CONTROL = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
@text = private constant [6 x i8] c"a%d\\0A\\00\\00"
declare i32 @vprintf(ptr, ptr)
define internal i32 @twice(i32 %x) noinline { %y = shl i32 %x, 1
 ret i32 %y }
define internal i32 @fact(i32 %x) noinline {
 %c = icmp ult i32 %x, 2
 br i1 %c, label %one, label %more
one: ret i32 1
more: %y = sub i32 %x, 1
 %r = call i32 @fact(i32 %y)
 %z = mul i32 %r, %x
 ret i32 %z }
define ptx_kernel void @k(ptr addrspace(1) %in, ptr %f, i32 %n) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %buffer = alloca [16 x i32]
  %va = alloca i32
  store i32 %t, ptr %va
  %ignored = call i32 @vprintf(ptr @text, ptr %va)
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i1, %latch ]
  %s = phi i32 [ %t, %entry ], [ %s1, %latch ]
  switch i32 %i, label %other [ i32 0, label %a  i32 1, label %b  i32 2, label %c  i32 3, label %d  i32 4, label %a  \
i32 5, label %e ]
a: %xa = call i32 @twice(i32 %s)
  br label %latch
b: %xb = call i32 @fact(i32 %s)
  br label %latch
c: %xc = call i32 %f(i32 %s)
  br label %latch
d: %slot = getelementptr i32, ptr %buffer, i32 %s
  store volatile i32 %s, ptr %slot
  %xd = load volatile i32, ptr %buffer
  br label %latch
e: %xe = mul i32 %s, 77
  br label %latch
other: %xo = xor i32 %s, 99
  br label %latch
latch:
  %s1 = phi i32 [ %xa, %a ], [ %xb, %b ], [ %xc, %c ], [ %xd, %d ], [ %xe, %e ], [ %xo, %other ]
  %i1 = add i32 %i, 1
  %more = icmp ult i32 %i1, %n
  br i1 %more, label %loop, label %end
end:
  store i32 %s1, ptr addrspace(1) %in
  ret void
}
"""
_GLOBALS = """
@a = addrspace(1) global [4 x i32] [i32 1, i32 2, i32 3, i32 -1]
@b = addrspace(4) constant [3 x double] [double 1.0, double 0x7FF0000000000000, double -0.0]
@c = internal addrspace(3) global [64 x float] undef, align 16
@d = addrspace(1) global { i8, i16, i32, i64, float } { i8 1, i16 2, i32 3, i64 4, float 5.0 }
@e = addrspace(1) global [2 x ptr addrspace(1)] [ptr addrspace(1) @a, ptr addrspace(1) getelementptr ([4 x i32], ptr \
addrspace(1) @a, i64 0, i64 2)]
@f = addrspace(1) global ptr addrspacecast (ptr addrspace(1) @a to ptr)
@g = external addrspace(1) global [0 x i32]
@h = weak addrspace(1) global i64 5
define ptx_kernel void @k(ptr addrspace(1) %out, i32 %i) {
  %pa = getelementptr [4 x i32], ptr addrspace(1) @a, i32 0, i32 %i
  %x = load i32, ptr addrspace(1) %pa
  %pb = getelementptr [3 x double], ptr addrspace(4) @b, i32 0, i32 %i
  %y = load double, ptr addrspace(4) %pb
  %pc = getelementptr [64 x float], ptr addrspace(3) @c, i32 0, i32 %i
  store float 1.0, ptr addrspace(3) %pc
  %z = load volatile float, ptr addrspace(3) @c
  %e = load ptr addrspace(1), ptr addrspace(1) @e
  %f = load ptr, ptr addrspace(1) @f
  %v = load i32, ptr %f
  %w = load i32, ptr addrspace(1) %e
  %d = load float, ptr addrspace(1) getelementptr ({ i8, i16, i32, i64, float }, ptr addrspace(1) @d, i64 0, i32 4)
  %h = load i64, ptr addrspace(1) @h
  store volatile i32 %x, ptr addrspace(1) %out
  store volatile double %y, ptr addrspace(1) %out
  store volatile float %z, ptr addrspace(1) %out
  store volatile i32 %v, ptr addrspace(1) %out
  store volatile i32 %w, ptr addrspace(1) %out
  store volatile float %d, ptr addrspace(1) %out
  store volatile i64 %h, ptr addrspace(1) %out
  ret void
}
"""


def assembled(binding: Any, text: str, target: str, features: str, level: int) -> str | None:
    """LLVM's PTX, from a separate process: code that LLVM cannot select ends it."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            module = binding.parse_assembly(_HEAD + text)
            module.verify()
            machine = binding.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(
                cpu=target, features=features, opt=level
            )
            with os.fdopen(write, "wb") as f:
                f.write(machine.emit_assembly(module).encode())
        except RuntimeError:
            os._exit(1)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        out = f.read().decode()
    return out if os.waitpid(child, 0)[1] == 0 and ".entry" in out else None


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take each N-th intrinsic")
    args = parser.parse_args()
    try:
        import llvmlite.binding as binding  # type: ignore[import-not-found]
    except ImportError:
        sys.exit("needs llvmlite (pip install llvmlite)")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    library = next(Path(binding.__file__).parent.glob("libllvmlite*"))
    args.folder.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    for name, text in ordinary():
        for target, features in (("sm_80", "+ptx78"), ("sm_100a", "+ptx88")):
            ptx = assembled(binding, text, target, features, 3 if target == "sm_80" else 1)
            counts["files of ordinary code" if ptx else "ordinary code not assembled"] += 1
            if ptx:
                (args.folder / f"code.{name}.{target}.ptx".replace(" ", "")).write_text(ptx)
    signatures = Signatures(binding)
    for name in names(library)[:: args.every]:
        found = signatures.find(name)
        if found is None:
            counts["intrinsics without a signature"] += 1
            continue
        ptx = None
        for (target, features), constant in itertools.product(TARGETS, (None, 0, 1, 2)):
            ptx = assembled(binding, kernel(name, *found, constant), target, features, 3)
            if ptx:
                (args.folder / f"{name}.{target}.ptx").write_text(ptx)
                break
        counts["files of intrinsics" if ptx else "intrinsics that no target selects"] += 1
    print(
        f"LLVM {'.'.join(map(str, binding.llvm_version_info))}: "
        + ", ".join([f"{n} {what}" for what, n in sorted(counts.items())])
    )


if __name__ == "__main__":
    main()
