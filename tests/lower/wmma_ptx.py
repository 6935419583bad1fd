"""Kernels that load, multiply and store whole matrices with wmma, and their expected results."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

Arr = np.ndarray[Any, Any]

#: shape -> registers of a and b by type of factor.
_FACTORS = {
    "m16n16k16": {"f16": (8, 8), "bf16": (4, 4), "u8": (2, 2), "s8": (2, 2)},
    "m8n32k16": {"f16": (8, 8), "bf16": (2, 8), "u8": (1, 4), "s8": (1, 4)},
    "m32n8k16": {"f16": (8, 8), "bf16": (8, 2), "u8": (4, 1), "s8": (4, 1)},
    "m16n16k8": {"tf32": (4, 4)},
    "m8n8k4": {"f64": (1, 1)},
    "m8n8k32": {"u4": (1, 1), "s4": (1, 1)},
    "m8n8k128": {"b1": (1, 1)},
}
_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "f64": 64,
    "s32": 32,
    "u8": 8,
    "s8": 8,
    "u4": 4,
    "s4": 4,
    "b1": 1,
}


class Case(NamedTuple):
    """One product: types and layouts of a, b, c, d; ``mod``: modifier of wmma.mma; ``stride``: natural (none given),
    constant or register."""

    shape: str
    at: str
    ct: str
    dt: str
    la: str
    lb: str
    lc: str
    ld: str
    mod: str
    space: str
    stride: str

    @property
    def name(self) -> str:
        """For test reports."""
        return "_".join(x for x in self if x).replace(".", "").replace("::", "")


def dims(shape: str) -> tuple[int, int, int]:
    """m, n, k."""
    found = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    assert found is not None
    m, n, k = (int(x) for x in found.groups())
    return m, n, k


def cases(sm: int) -> list[Case]:
    """Every shape, type and accumulator, layouts, spaces and strides taken in turn."""
    out: list[Case] = []
    turn = 0
    for shape, types in _FACTORS.items():
        for at in types:
            if sm < 80 and at in ("bf16", "tf32", "f64"):
                continue
            pairs = (
                [(c, d) for c in ("f16", "f32") for d in ("f16", "f32")]
                if at == "f16"
                else [("f64", "f64")]
                if at == "f64"
                else [("s32", "s32")]
            )
            if at in ("bf16", "tf32"):
                pairs = [("f32", "f32")]
            mods = {"f64": ("", ".rz", ".rp"), "b1": (".xor.popc", ".and.popc")}.get(at, ("",))
            if at[1:] in ("8", "4"):
                mods = ("", ".satfinite")
            sub = at in ("u4", "s4", "b1")
            for ct, dt in pairs:
                for mod in mods:
                    if mod.startswith(".and") and sm < 80:
                        continue
                    for k in range(1 if sub else 4):
                        la, lb = ("row", "col") if sub else (("row", "col")[k & 1], ("row", "col")[k >> 1])
                        lc, ld = ("row", "col")[turn & 1], ("col", "row")[(turn >> 1) & 1]
                        out.append(
                            Case(
                                shape,
                                at,
                                ct,
                                dt,
                                la,
                                lb,
                                lc,
                                ld,
                                mod,
                                ("global", "", "shared")[turn % 3],
                                ("natural", "constant", "register")[turn // 3 % 3],
                            )
                        )
                        turn += 1
    return out


def _leading(case: Case, matrix: str) -> tuple[int, int, int]:
    """rows, columns, elements from one to the next."""
    m, n, k = dims(case.shape)
    rows, cols = {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))
    layout = {"a": case.la, "b": case.lb, "c": case.lc, "d": case.ld}[matrix]
    natural = cols if layout == "row" else rows
    return (
        rows,
        cols,
        natural
        if case.stride == "natural"
        else natural + {"b1": 128, "u4": 32, "s4": 32, "u8": 16, "s8": 16}.get(case.at if matrix in "ab" else "", 8),
    )


def _register(t: str) -> str:
    return {"f64": "f64", "f32": "f32"}.get(t, "b32")


def accumulators(shape: str, t: str) -> int:
    """Registers of c or d."""
    return 2 if shape.startswith("m8n8") else 4 if t == "f16" else 8


def kernel(case: Case, name: str) -> str:
    """Copies its operands to shared memory if they are to be loaded from there; parameters a, b, c, d and their four
    strides."""
    na, nb = _FACTORS[case.shape][case.at]
    nc, nd = accumulators(case.shape, case.ct), accumulators(case.shape, case.dt)
    rab = "f64" if case.at == "f64" else "b32"
    lines = [
        f".visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u32 sa, "
        f".param .u32 sb, .param .u32 sc, .param .u32 sd) {{",
        f" .reg .b64 a, b, c, d, s, w; .reg .b32 t, v, la, lb, lc, ld, ha, hb, hc, hd; .reg .pred p; .reg .{rab} "
        f"x<{na}>, y<{nb}>;",
        f" .reg .{_register(case.ct)} u<{nc}>; .reg .{_register(case.dt)} z<{nd}>;",
        *[f" ld.param.u64 {x}, [p{x}];" for x in "abcd"],
        *[f" ld.param.u32 l{x}, [s{x}];" for x in "abcd"],
        *([f" cvta.to.global.u64 {x}, {x};" for x in "abcd"] if case.space != "" else []),
    ]
    at = dict(zip("abcd", "abcd", strict=True))
    dot = f".{case.space}" if case.space else ""
    if case.space == "shared":  # 4 KiB each
        lines.append(" mov.u32 t, %tid.x;")
        for i, x in enumerate("abc"):
            lines += [
                f" mov.u32 h{x}, buffer; add.u32 h{x}, h{x}, {4096 * i}; mov.u32 v, 0;",
                f"L{x}: shl.b32 ld, t, 2; add.u32 ld, ld, v; cvt.u64.u32 w, ld; add.u64 s, {x}, w; add.u32 ld, ld, "
                f"h{x};",
                " .reg .b32 q"
                + x
                + f"; ld.global.b32 q{x}, [s]; st.shared.b32 [ld], q{x}; add.u32 v, v, 128; setp.lt.u32 p, v, 4096; "
                f"@p bra L{x};",
            ]
            at[x] = f"h{x}"
        lines += [f" mov.u32 hd, buffer; add.u32 hd, hd, {4096 * 3}; ld.param.u32 ld, [sd]; bar.sync 0;"]
        at["d"] = "hd"

    def vec(letter: str, n: int) -> str:
        return "{" + ", ".join(f"{letter}{k}" for k in range(n)) + "}"

    def stride(x: str) -> str:
        return {"natural": "", "constant": f", {_leading(case, x)[2]}", "register": f", l{x}"}[case.stride]

    head = "sync.aligned"
    for x, letter, n, layout, t in (
        ("a", "x", na, case.la, case.at),
        ("b", "y", nb, case.lb, case.at),
        ("c", "u", nc, case.lc, case.ct),
    ):
        lines.append(f" wmma.load.{x}.{head}.{layout}.{case.shape}{dot}.{t} {vec(letter, n)}, [{at[x]}]{stride(x)};")
    logic, sat = (case.mod, "") if case.at == "b1" else ("", case.mod)
    types = f"{case.dt}.{case.ct}" if case.at == "f16" else f"{case.dt}.{case.at}.{case.at}.{case.ct}"
    lines.append(
        f" wmma.mma{logic}.{head}.{case.la}.{case.lb}.{case.shape}{sat if case.at == 'f64' else ''}"
        f".{types}{sat if case.at != 'f64' else ''} {vec('z', nd)}, {vec('x', na)}, {vec('y', nb)}, {vec('u', nc)};"
    )
    lines.append(
        f" wmma.store.d.{head}.{case.ld}.{case.shape}{dot}.{case.dt} [{at['d']}], {vec('z', nd)}{stride('d')};"
    )
    if case.space == "shared":
        lines += [
            " bar.sync 0; mov.u32 v, 0;",
            "Ld: shl.b32 la, t, 2; add.u32 la, la, v; cvt.u64.u32 w, la; add.u64 s, d, w; add.u32 la, la, hd; "
            "ld.shared.b32 lb, [la]; st.global.b32 [s], lb;",
            " add.u32 v, v, 128; setp.lt.u32 p, v, 4096; @p bra Ld;",
        ]
    return "\n".join([*lines, " ret;", "}"]) + "\n"


def module(sm: str, chosen: list[Case]) -> str:
    """All kernels, ``k0``..."""
    head = f".version 9.0\n.target sm_{sm}\n.address_size 64\n.shared .align 32 .b8 buffer[16384];\n"
    return head + "".join(kernel(case, f"k{i}") for i, case in enumerate(chosen))


# --------------------------------------------------------------------------- values


def _bits_of(values: Arr, t: str) -> Arr:
    """Matrix elements as bit patterns (object integers)."""
    kind = {
        "f16": (np.float16, np.uint16),
        "f32": (np.float32, np.uint32),
        "f64": (np.float64, np.uint64),
        "tf32": (np.float32, np.uint32),
    }.get(t)
    if t == "bf16":
        return np.asarray(values.astype(np.float32).view(np.uint32) >> 16).astype(object)
    if kind is not None:
        return np.asarray(values.astype(kind[0]).view(kind[1])).astype(object)
    mask = (1 << _BITS[t]) - 1
    return np.asarray(np.vectorize(lambda v: int(v) & mask, otypes=[object])(values))


def image(case: Case, matrix: str, values: Arr) -> Arr:
    """The matrix in memory: 4 KiB, other bytes 0xA5."""
    t = {"c": case.ct, "d": case.dt}.get(matrix, case.at)
    rows, cols, step = _leading(case, matrix)
    layout = {"a": case.la, "b": case.lb, "c": case.lc, "d": case.ld}[matrix]
    bits = _BITS[t]
    big = int.from_bytes(b"\xa5" * 4096, "little")
    patterns = _bits_of(values, t)
    for r in range(rows):
        for c in range(cols):
            at = (r * step + c if layout == "row" else c * step + r) * bits
            big = big & ~(((1 << bits) - 1) << at) | int(patterns[r, c]) << at
    return np.frombuffer(big.to_bytes(4096, "little"), np.uint8).copy()


def operands(case: Case, rng: np.random.Generator, wild: bool) -> tuple[Arr, Arr, Arr]:
    """a, b, c: small whole numbers with exact products and sums; ``wild``: arbitrary numbers."""
    m, n, k = dims(case.shape)
    shapes = ((m, k), (k, n), (m, n))
    a: Arr
    b: Arr
    c: Arr
    if case.at == "b1":
        a, b = (rng.integers(0, 2, s) for s in shapes[:2])
        return a, b, rng.integers(-1000, 1000, shapes[2])
    if case.at[0] in "us" and case.at[1:] in ("8", "4"):
        bits = int(case.at[1:])
        low, high = (0, 1 << bits) if case.at[0] == "u" else (-(1 << bits - 1), 1 << bits - 1)
        near = 2**31 - 200 if case.mod == ".satfinite" else 100000
        return (
            rng.integers(low, high, shapes[0]),
            rng.integers(low, high, shapes[1]),
            rng.integers(near - 5000, near, shapes[2]) * rng.choice((-1, 1), shapes[2]),
        )
    if wild:
        a, b, c = (rng.standard_normal(s) * 3 for s in shapes)
        if case.at == "tf32":
            a, b = ((x.astype(np.float32).view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
        return a, b, c
    return tuple(rng.integers(-3, 4, s).astype(np.float64) for s in shapes)  # type: ignore[return-value]


def expected(case: Case, a: Arr, b: Arr, c: Arr) -> Arr:
    """d for whole numbers."""
    if case.at == "b1":
        pairs = a[:, :, None] ^ b[None] if "xor" in case.mod else a[:, :, None] & b[None]
        return np.asarray(pairs.sum(axis=1) + c)
    d = a @ b + c
    if case.mod == ".satfinite":
        return np.asarray(np.clip(d, -(2**31), 2**31 - 1))
    return np.asarray(d)


def launch(device: Any, case: Case, name: str, a: Arr, b: Arr, c: Arr, strict: bool = False) -> Arr:
    """The bytes of d."""
    images = [image(case, x, v) for x, v in (("a", a), ("b", b), ("c", c))]
    d = np.full(4096, 0xA5, np.uint8) if case.space != "shared" else np.zeros(4096, np.uint8)
    steps = [np.uint32(_leading(case, x)[2]) for x in "abcd"]
    device.launch(name, 1, 32, [*images, d, *steps], strict=strict)
    return d


def element_mask(case: Case) -> Arr:
    """Bytes of the image of d that belong to the matrix."""
    t = case.dt
    rows, cols, step = _leading(case, "d")
    big = 0
    for r in range(rows):
        for c in range(cols):
            at = (r * step + c if case.ld == "row" else c * step + r) * _BITS[t]
            big |= (1 << _BITS[t]) - 1 << at
    return np.frombuffer(big.to_bytes(4096, "little"), np.uint8)
