"""Warp and warpgroup matrix instructions.  Column meaning: see `stages.parse.table`.

Rows of `mma` differ in the number of registers per fragment only, which follows from shape and types: the table
below gives shapes and types, `_mma_row` the sizes.
"""

from __future__ import annotations

from ir_format.ptx_types import TYPE_BITS

# Registers of a fragment: packed floats want exactly `.b32` (measured), small integers and eight-bit floats anything of
# 32 bits.
_REG = {"f32": "f32", "f64": "F64", "f16": "B32", "bf16": "B32", "tf32": "B32", "s32": "s32"}
_INT8 = "u8,s8.u8,s8"
_INT4 = "u4,s4.u4,s4"
_FP8 = "e4m3,e5m2.e4m3,e5m2"
_FP864 = "e4m3,e5m2,e3m2,e2m3,e2m1.e4m3,e5m2,e3m2,e2m3,e2m1"

# shape; d types; a.b types; c types; layout and other slots; gates
_MMA = """
m8n8k4 ; f16 ; f16.f16 ; f16 ; row/col row/col ; v6.4 t70
m8n8k4 ; f32 ; f16.f16 ; f16,f32 ; row/col row/col ; v6.4 t70
m8n8k4 ; f64 ; f64.f64 ; f64 ; row col rn/rz/rm/rp? ; v7.0 t80
m16n8k4,m16n8k8,m16n8k16 ; f64 ; f64.f64 ; f64 ; row col rn/rz/rm/rp? ; v7.8 t90
m16n8k8 ; f16 ; f16.f16 ; f16 ; row col ; v6.5 t75
m16n8k8 ; f32 ; f16.f16 ; f32 ; row col ; v6.5 t75
m16n8k16 ; f16 ; f16.f16 ; f16 ; row col ; v7.0 t80
m16n8k16 ; f32 ; f16.f16 ; f32 ; row col ; v7.0 t80
m16n8k8,m16n8k16 ; f32 ; bf16.bf16 ; f32 ; row col ; v7.0 t80
m16n8k4,m16n8k8 ; f32 ; tf32.tf32 ; f32 ; row col ; v7.0 t80
m8n8k16 ; s32 ; {int8} ; s32 ; row col satfinite? ; v6.5 t75
m16n8k16,m16n8k32 ; s32 ; {int8} ; s32 ; row col satfinite? ; v7.0 t80
m8n8k32 ; s32 ; {int4} ; s32 ; row col satfinite? ; v6.5 t75
m16n8k32,m16n8k64 ; s32 ; {int4} ; s32 ; row col satfinite? ; v7.0 t80
m8n8k128 ; s32 ; b1.b1 ; s32 ; row col T xor/and popc ; v7.0 t75
m16n8k128,m16n8k256 ; s32 ; b1.b1 ; s32 ; row col T xor/and popc ; v7.0 t80
m16n8k32 ; f32 ; {fp8} ; f32 ; row col ; v8.4 t89
m16n8k16 ; f32 ; {fp8} ; f32 ; row col ; v8.7 t89
m16n8k16,m16n8k32 ; f16 ; {fp8} ; f16 ; row col ; v8.7 t89
m16n8k32 ; f32 ; {fp8} ; f32 ; row col kind::f8f6f4 ; v8.6 on=100f+110f+120f
m16n8k32 ; f16 ; {fp8} ; f16 ; row col kind::f8f6f4 ; v8.7 on=100f+110f+120f
m16n8k32 ; f32 ; {fp864} ; f32 ; row col kind::f8f6f4 ; v8.7 on=120f
m16n8k32 ; f16 ; {fp864} ; f16 ; row col kind::f8f6f4 ; v8.7 on=120f
"""
_MMA_SCALED = """
m16n8k64 ; e2m1.e2m1 ; row col kind::mxf4 block_scale scale_vec::2X? ; ue8m0
m16n8k64 ; e2m1.e2m1 ; row col kind::mxf4nvf4 block_scale scale_vec::2X ; ue8m0
m16n8k64 ; e2m1.e2m1 ; row col kind::mxf4nvf4 block_scale scale_vec::4X ; ue4m3,ue8m0
m16n8k32 ; {fp864} ; row col kind::mxf8f6f4 block_scale scale_vec::1X? ; ue8m0
"""
_MMA_SPARSE = """
m16n8k16 ; f16 ; f16.f16 ; f16 ; row col ; v7.1 t80
m16n8k16 ; f32 ; f16.f16 ; f32 ; row col ; v7.1 t80
m16n8k32 ; f16 ; f16.f16 ; f16 ; row col ; v7.1 t80
m16n8k32 ; f32 ; f16.f16 ; f32 ; row col ; v7.1 t80
m16n8k16,m16n8k32 ; f32 ; bf16.bf16 ; f32 ; row col ; v7.1 t80
m16n8k8,m16n8k16 ; f32 ; tf32.tf32 ; f32 ; row col ; v7.1 t80
m16n8k32,m16n8k64 ; s32 ; {int8} ; s32 ; row col satfinite? ; v7.1 t80
m16n8k64,m16n8k128 ; s32 ; {int4} ; s32 ; row col satfinite? ; v7.1 t80
m16n8k64 ; f32 ; {fp8} ; f32 ; row col ; v8.4 t89
m16n8k64 ; f16 ; {fp8} ; f16 ; row col ; v8.7 on=120f
m16n8k64 ; f32 ; {fp8} ; f32 ; row col kind::f8f6f4 ; v8.6 on=100f+110f+120f
m16n8k64 ; f32 ; {fp864} ; f32 ; row col kind::f8f6f4 ; v8.7 on=120f
m16n8k64 ; f16 ; {fp864} ; f16 ; row col kind::f8f6f4 ; v8.7 on=120f
"""
_MMA_SPARSE_SCALED = """
m16n8k128 ; e2m1.e2m1 ; row col kind::mxf4 block_scale scale_vec::2X? ; ue8m0
m16n8k128 ; e2m1.e2m1 ; row col kind::mxf4nvf4 block_scale scale_vec::2X ; ue8m0
m16n8k128 ; e2m1.e2m1 ; row col kind::mxf4nvf4 block_scale scale_vec::4X ; ue4m3,ue8m0
m16n8k64 ; {fp864} ; row col kind::mxf8f6f4 block_scale scale_vec::1X? ; ue8m0
"""
_SP = "sp/sp::ordered_metadata"


def _dims(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def _fragment(rows: int, cols: int, type_: str, bits: int) -> str:
    if type_ == "f64":
        return f"{max(1, rows * cols // 32)}:F64"
    return f"{max(1, rows * cols * bits // 1024)}:{_REG.get(type_, 'R32')}"


def _sizes(shape: str, d: str, a: str, c: str, sparse: bool, nibble: bool) -> tuple[str, str, str, str]:
    m, n, k = _dims(shape)
    bits = 4 if nibble else TYPE_BITS[a]
    if shape == "m8n8k4" and a == "f16":  # quad pairs: four matrices at once
        return ("4:B32" if d == "f16" else "8:f32"), "2:B32", "2:B32", ("4:B32" if c == "f16" else "8:f32")
    frag_a = _fragment(m, k // 2 if sparse else k, a, bits)
    frag_b = _fragment(k, n, a, bits)
    return _fragment(m, n, d, TYPE_BITS[d]), frag_a, frag_b, _fragment(m, n, c, TYPE_BITS[c])


def _expand(text: str) -> list[list[str]]:
    named = text.format(int8=_INT8, int4=_INT4, fp8=_FP8, fp864=_FP864)
    return [[field.strip() for field in line.split(";")] for line in named.strip().splitlines()]


def _mma_rows() -> str:
    out = []
    for text, sparse in ((_MMA, False), (_MMA_SPARSE, True)):
        for shapes, ds, ab, cs, slots, gates in _expand(text):
            for shape in shapes.split(","):
                for d in ds.split(","):
                    for c in cs.split(","):
                        vd, va, vb, vc = _sizes(shape, d, ab.split(".")[0].split(",")[0], c, sparse, False)
                        form = "sp::ordered_metadata" if "kind::" in slots or gates.endswith("on=120f") else _SP
                        head = f"{form} sync aligned" if sparse else "sync aligned"
                        tail = ", s:R32, i" if sparse else ""
                        check = " | sparse" if sparse else ""
                        out.append(
                            f"mma | {d}.{ab}.{c} | {head} {shape} {slots} | dv{vd}, sv{va}, sv{vb}, "
                            f"sv{vc}{tail} | {gates}{check}"
                        )
    for text, sparse in ((_MMA_SCALED, False), (_MMA_SPARSE_SCALED, True)):
        for shape, ab, slots, scale in _expand(text):
            nibble = "mxf4" in slots
            vd, va, vb, vc = _sizes(shape, "f32", ab.split(".")[0].split(",")[0], "f32", sparse, nibble)
            head = "sp::ordered_metadata sync aligned" if sparse else "sync aligned"
            tail = ", s:R32, i" if sparse else ""
            out.append(
                f"mma | f32.{ab}.f32.{scale} | {head} {shape} {slots} | dv{vd}, sv{va}, sv{vb}, sv{vc}{tail}, "
                "s1:b32, sv2:b16, s1:b32, sv2:b16 | v8.7 on=120f | scaled"
            )
    return "\n".join(out)


# wmma: shape; matrix types with registers per fragment: a, b, c/d.
_WMMA = """
m16n16k16 ; f16 8:B32 8:B32 ; f16 4:B32, f32 8:f32 ; v6.3 t70
m8n32k16 ; f16 8:B32 8:B32 ; f16 4:B32, f32 8:f32 ; v6.3 t70
m32n8k16 ; f16 8:B32 8:B32 ; f16 4:B32, f32 8:f32 ; v6.3 t70
m16n16k16 ; bf16 4:B32 4:B32 ; f32 8:f32 ; v7.0 t80
m8n32k16 ; bf16 2:B32 8:B32 ; f32 8:f32 ; v7.0 t80
m32n8k16 ; bf16 8:B32 2:B32 ; f32 8:f32 ; v7.0 t80
m16n16k8 ; tf32 4:B32 4:B32 ; f32 8:f32 ; v7.0 t80
m16n16k16 ; u8,s8 2:s32 2:s32 ; s32 8:s32 ; v6.3 t72
m8n32k16 ; u8,s8 1:s32 4:s32 ; s32 8:s32 ; v6.3 t72
m32n8k16 ; u8,s8 4:s32 1:s32 ; s32 8:s32 ; v6.3 t72
m8n8k4 ; f64 1:F64 1:F64 ; f64 2:F64 ; v7.0 t80
m8n8k32 ; u4,s4 1:s32 1:s32 ; s32 2:s32 ; v6.3 t75
m8n8k128 ; b1 1:s32 1:s32 ; s32 2:s32 ; v6.3 t75
"""
_SPACES = "global/shared/shared::cta?"


def _wmma_rows() -> str:
    out = []
    seen = set()
    for shape, ab, cd, gates in _expand(_WMMA):
        types, va, vb = ab.split()
        sub = shape in ("m8n8k32", "m8n8k128")
        for matrix, size in (("a", va), ("b", vb)):
            layout = ("row" if matrix == "a" else "col") if sub else "row/col"
            out.append(
                f"wmma.load.{matrix} | {types} | sync aligned {layout} {shape} {_SPACES} | dv{size}, m, "
                f"s:u32? | {gates}"
            )
        for pair in cd.split(","):
            c, vc = pair.split()
            if (shape, c) not in seen:
                seen.add((shape, c))
                out.append(f"wmma.load.c | {c} | sync aligned row/col {shape} {_SPACES} | dv{vc}, m, s:u32? | {gates}")
                out.append(f"wmma.store.d | {c} | sync aligned row/col {shape} {_SPACES} | m, sv{vc}, s:u32? | {gates}")
        out.extend(_wmma_mma(shape, types, va, vb, [p.split() for p in cd.split(",")], gates))
    return "\n".join(out)


def _wmma_mma(shape: str, types: str, va: str, vb: str, accs: list[list[str]], gates: str) -> list[str]:
    out = []
    for d, vd in accs:
        for c, vc in accs:
            operands = f"dv{vd}, sv{va}, sv{vb}, sv{vc}"
            if types == "f16":
                out.append(
                    f"wmma.mma | {d}.{c} | sync aligned row/col row/col {shape} satfinite? | {operands} | {gates}"
                )
            elif types == "b1":
                out.append(f"wmma.mma | {d}.b1.b1.{c} | xor popc sync aligned row col {shape} | {operands} | {gates}")
                out.append(f"wmma.mma | {d}.b1.b1.{c} | and popc sync aligned row col {shape} | {operands} | v7.1 t80")
            elif types == "f64":
                out.append(
                    f"wmma.mma | {d}.f64.f64.{c} | sync aligned row/col row/col {shape} rn/rz/rm/rp? | "
                    f"{operands} | {gates}"
                )
            elif types == "u4,s4":
                out.append(
                    f"wmma.mma | {d}.u4.u4.{c} {d}.s4.s4.{c} | sync aligned row col {shape} satfinite? | "
                    f"{operands} | {gates}"
                )
            elif types == "u8,s8":
                out.append(
                    f"wmma.mma | {d}.u8.u8.{c} {d}.s8.s8.{c} | sync aligned row/col row/col {shape} "
                    f"satfinite? | {operands} | {gates}"
                )
            else:
                out.append(
                    f"wmma.mma | {d}.{types}.{types}.{c} | sync aligned row/col row/col {shape} | {operands} | {gates}"
                )
    return out


# wgmma: d types; a.b types; k; trailing immediates: scale-a, scale-b for floats, transposes for 16-bit types.
_WGMMA = """
f16,f32 ; f16.f16 ; 16 ; , i, i, i, i ; , i, i, i ; v8.0
f32 ; bf16.bf16 ; 16 ; , i, i, i, i ; , i, i, i ; v8.0
f32 ; tf32.tf32 ; 8 ; , i, i ; , i, i ; v8.0
f16,f32 ; {fp8} ; 32 ; , i, i ; , i, i ; v8.0
s32 ; {int8} ; 32 ; ; ; v8.0
s32 ; b1.b1 ; 256 ; ; ; v8.0
"""


def _wgmma_rows() -> str:
    out = []
    for ds, ab, k, imm_desc, imm_reg, gates in _expand(_WGMMA):
        ints = ab in (_INT8, "b1.b1")
        for d in ds.split(","):
            for n in range(8, 257, 8):
                if ints and n > 32 and n % 16:
                    continue
                size = f"{n // 4 if d == 'f16' else n // 2}:{_REG[d]}"
                slots = (
                    f"sync aligned? m64n{n}k{k}"
                    + (" satfinite?" if ab == _INT8 else "")
                    + (" T and popc" if ab == "b1.b1" else "")
                )
                for sp, meta, tag, kk in (("", "", "", int(k)), ("sp ", ", s:b32, i", "sp", 2 * int(k))):
                    if sp and ab == "b1.b1":
                        continue
                    shaped = slots.replace(f"k{k}", f"k{kk}", 1)
                    out.append(
                        f"wgmma.mma_async | {d}.{ab} | {sp}{shaped} | dv{size}, s:u64, s:u64{meta}, "
                        f"ps{imm_desc} | {gates} on=90a | wgmma{tag}"
                    )
                    out.append(
                        f"wgmma.mma_async | {d}.{ab} | {sp}{shaped} | dv{size}, sv4:b32, s:u64{meta}, "
                        f"ps{imm_reg} | {gates} on=90a | wgmma{tag}"
                    )
    return "\n".join(out)


_OTHER = """
ldmatrix | b16 | sync aligned m8n8 x1 trans? shared/shared::cta? | dv1:R32, m | v6.5 t75
ldmatrix | b16 | sync aligned m8n8 x2 trans? shared/shared::cta? | dv2:R32, m | v6.5 t75
ldmatrix | b16 | sync aligned m8n8 x4 trans? shared/shared::cta? | dv4:R32, m | v6.5 t75
ldmatrix | - | sync aligned m8n16 x1 shared/shared::cta? b8x16 b6x16_p32/b4x16_p64 | dv1:R32, m | v8.6 on=100f+110f+120f
ldmatrix | - | sync aligned m8n16 x2 shared/shared::cta? b8x16 b6x16_p32/b4x16_p64 | dv2:R32, m | v8.6 on=100f+110f+120f
ldmatrix | - | sync aligned m8n16 x4 shared/shared::cta? b8x16 b6x16_p32/b4x16_p64 | dv4:R32, m | v8.6 on=100f+110f+120f
ldmatrix | s8.s4 | sync aligned m8n16 x1 shared/shared::cta? | dv1:R32, m | v9.4 on=90a+100f+110f+120f
ldmatrix | s8.s4 | sync aligned m8n16 x2 shared/shared::cta? | dv2:R32, m | v9.4 on=90a+100f+110f+120f
ldmatrix | s8.s4 | sync aligned m8n16 x4 shared/shared::cta? | dv4:R32, m | v9.4 on=90a+100f+110f+120f
ldmatrix | b8 | sync aligned m16n16 x1 trans shared/shared::cta? | dv2:R32, m | v8.6 on=100f+110f+120f
ldmatrix | b8 | sync aligned m16n16 x2 trans shared/shared::cta? | dv4:R32, m | v8.6 on=100f+110f+120f
ldmatrix | - | sync aligned m16n16 x1 trans shared/shared::cta? b8x16 b6x16_p32/b4x16_p64 | dv2:R32, m | \
v8.6 on=100f+110f+120f
ldmatrix | - | sync aligned m16n16 x2 trans shared/shared::cta? b8x16 b6x16_p32/b4x16_p64 | dv4:R32, m | \
v8.6 on=100f+110f+120f
stmatrix | b16 | sync aligned m8n8 x1 trans? shared/shared::cta? | m, sv1:R32 | v7.8 t90
stmatrix | b16 | sync aligned m8n8 x2 trans? shared/shared::cta? | m, sv2:R32 | v7.8 t90
stmatrix | b16 | sync aligned m8n8 x4 trans? shared/shared::cta? | m, sv4:R32 | v7.8 t90
stmatrix | b8 | sync aligned m16n8 x1 trans shared/shared::cta? | m, sv1:R32 | v8.6 on=100f+110f+120f
stmatrix | b8 | sync aligned m16n8 x2 trans shared/shared::cta? | m, sv2:R32 | v8.6 on=100f+110f+120f
stmatrix | b8 | sync aligned m16n8 x4 trans shared/shared::cta? | m, sv4:R32 | v8.6 on=100f+110f+120f
movmatrix | b16 | sync aligned m8n8 row/col? trans | d:R32, s:R32 | v7.8 t75
wgmma.fence | - | sync aligned? | | v8.0 on=90a
wgmma.commit_group | - | sync aligned? | | v8.0 on=90a
wgmma.wait_group | - | sync aligned? | i | v8.0 on=90a
"""

FAMILIES = {"mma": _mma_rows, "wmma": _wmma_rows, "wgmma": _wgmma_rows}
ROWS = _OTHER
