"""Kernels that use the tensor memory instructions of sm_100a, 103a and 110a, and instructions that exist only on these
and later targets.

An entry is a whole kernel named ``NAME``. Operands come from global memory (``reg``: general registers) or from
parameters (``uni``: uniform ones).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

_HEAD = (
    ".visible .entry NAME(.param .align 16 .b8 p0[1024], .param .u64 pa, .param .u64 po) {{\n"
    "  .reg .b64 a, o, sa; .reg .b32 s32a; .reg .b32 r<{n}>; .reg .b64 d<10>; .reg .f32 f<{n}>; .reg .b16 h0, h1; "
    ".reg .pred t<4>; .reg .b128 q0;\n"
    "  ld.param.u64 a, [pa]; ld.param.u64 o, [po]; cvta.to.global.u64 a, a; cvta.to.global.u64 o, o; mov.u64 sa, "
    "smem; cvt.u32.u64 s32a, sa;\n  {body}\n  ret;\n}}\n"
)

#: Elements of a tcgen05.ld or st by shape for .x1.
_UNITS = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1, "16x32bx2": 1}
_PLAIN = ("f16", "tf32", "f8f6f4", "i8")
_SCALED = (
    ("mxf8f6f4", ("", ".scale_vec::1X", ".block32")),
    ("mxf4", ("", ".scale_vec::2X", ".block32")),
    ("mxf4nvf4", (".scale_vec::2X", ".scale_vec::4X", ".block16", ".block32")),
)


def _kernel(body: list[str], regs: int = 40) -> str:
    return _HEAD.format(n=regs, body="\n  ".join(body))


def _operands(space: str, words: int = 12, pairs: int = 4) -> list[str]:
    """Loads of r0.. and d0.., and of the predicates t0 and t1, from global memory or the parameters."""
    base = "a" if space == "global" else "p0"
    kind = "global" if space == "global" else "param"
    out = [f"ld.{kind}.b32 r{k}, [{base}+{4 * k}];" for k in range(words)]
    out += [f"ld.{kind}.b64 d{k}, [{base}+{256 + 8 * k}];" for k in range(pairs)]
    return [*out, f"ld.{kind}.b16 h0, [{base}+400];", "setp.ne.s32 t0, r0, 7;", "setp.eq.s32 t1, r1, 9;"]


def _vector(letter: str, count: int, first: int = 0) -> str:
    return "{" + ", ".join([f"{letter}{first + k}" for k in range(count)]) + "}"


def _transfers() -> Iterator[str]:
    for shape, unit in _UNITS.items():
        half = ", 16" if shape == "16x32bx2" else ""
        x = 1
        while unit * x <= 128:
            n = unit * x
            for pack, space in itertools.product((False, True), ("global", "param")):
                load = [f"ld.{space}.b32 r{n}, [{'a' if space == 'global' else 'p0'}];"]
                mod = ".pack::16b" if pack else ""
                ld = f"tcgen05.ld.sync.aligned.{shape}.x{x}{mod}.b32 {_vector('r', n)}, [r{n}]{half};"
                yield _kernel(
                    [
                        *load,
                        ld,
                        "tcgen05.wait::ld.sync.aligned;",
                        *[f"st.global.b32 [o+{4 * k}], r{k};" for k in range(n)],
                    ],
                    n + 4,
                )
                loads = [f"ld.global.b32 r{k}, [a+{4 * k}];" for k in range(n)]
                mod = ".unpack::16b" if pack else ""
                st = f"tcgen05.st.sync.aligned.{shape}.x{x}{mod}.b32 [r{n}]{half}, {_vector('r', n)};"
                yield _kernel([*load, *loads, st, "tcgen05.wait::st.sync.aligned;"], n + 4)
            x *= 2
    for at in ("r4", "r4+8", "r4+1048576"):
        yield _kernel(
            [
                "ld.global.b32 r4, [a];",
                f"tcgen05.ld.sync.aligned.32x32b.x4.b32 {_vector('r', 4)}, [{at}];",
                "tcgen05.wait::ld.sync.aligned;",
                "st.global.b32 [o], r1;",
            ]
        )
        yield _kernel(
            [
                "ld.param.b32 r4, [p0];",
                f"tcgen05.ld.sync.aligned.32x32b.x4.b32 {_vector('r', 4)}, [{at}];",
                "tcgen05.wait::ld.sync.aligned;",
                "st.global.b32 [o], r1;",
            ]
        )
    for k, t, op in itertools.product(
        range(1, 8), ("u32", "s32", "f32", "f32.abs", "f32.NaN", "f32.abs.NaN"), ("min", "max")
    ):
        n = 1 << k
        kind, _, extra = t.partition(".")
        letter = "f" if kind == "f32" else "r"
        for shape, space in (("32x32b", "global"), ("32x32b", "param"), ("16x32bx2", "global")):
            half = ", 8" if shape == "16x32bx2" else ""
            mods = "." + extra if extra else ""
            ld = (
                f"tcgen05.ld.red.sync.aligned.{shape}.x{n}.{op}{mods}.{kind} {_vector(letter, n)}, {letter}{n}, "
                f"[r{n + 1}]{half};"
            )
            address = f"ld.{space}.b32 r{n + 1}, [{'a' if space == 'global' else 'p0'}];"
            yield _kernel(
                [
                    address,
                    ld,
                    "tcgen05.wait::ld.sync.aligned;",
                    *[f"st.global.b32 [o+{4 * j}], {letter}{j};" for j in range(n + 1)],
                ],
                n + 4,
            )


def _management() -> Iterator[str]:
    for group, space in itertools.product((1, 2), ("global", "param")):
        ops = _operands(space)
        g = f"cta_group::{group}"
        for where, count in itertools.product(("", ".shared::cta"), ("32", "64", "512", "r0")):
            yield _kernel([*ops, f"tcgen05.alloc.{g}.sync.aligned{where}.b32 [{'s32a' if where else 'sa'}], {count};"])
            yield _kernel([*ops, f"tcgen05.alloc.{g}.sync.aligned.shared::cta.b32 [r1+16], {count};"])
            yield _kernel([*ops, f"tcgen05.dealloc.{g}.sync.aligned.b32 r1, {count};"])
        yield _kernel([f"tcgen05.relinquish_alloc_permit.{g}.sync.aligned;"])
        for guard in ("", "@t0 ", "@!t0 "):
            yield _kernel([*ops, f"{guard}tcgen05.shift.{g}.down [r1];"])
            yield _kernel([*ops, f"{guard}tcgen05.shift.{g}.down [r1+32];"])
            for where in ("", ".shared::cluster"):
                for at in ("s32a", "s32a+8", "r1", "r1+8") if where else ("d0", "sa"):
                    yield _kernel([*ops, f"{guard}tcgen05.commit.{g}.mbarrier::arrive::one{where}.b64 [{at}];"])
                    yield _kernel(
                        [
                            *ops,
                            f"{guard}tcgen05.commit.{g}.mbarrier::arrive::one{where}.multicast::cluster.b64 "
                            f"[{at}], h0;",
                        ]
                    )
            for shape in (
                "128x256b",
                "4x256b",
                "128x128b",
                "64x128b.warpx2::02_13",
                "64x128b.warpx2::01_23",
                "32x128b.warpx4",
            ):
                for fmt in ("", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"):
                    yield _kernel([*ops, f"{guard}tcgen05.cp.{g}.{shape}{fmt} [r1], d0;"])
    yield _kernel(["tcgen05.fence::before_thread_sync;", "bar.sync 0;", "tcgen05.fence::after_thread_sync;"])
    yield _kernel(["tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::st.sync.aligned;"])


def _mma() -> Iterator[str]:
    uses = ("", "fill", "use", "lastuse", "discard")
    for group, space, sparse, a in itertools.product((1, 2), ("global", "param"), (False, True), ("d0", "[r1]")):
        ops = _operands(space)
        sp, meta = (".sp", ", [r2]") if sparse else ("", "")
        g = f"cta_group::{group}"
        for use in uses:
            coll = f".collector::a::{use}" if use else ""
            for kind in _PLAIN:
                for shift in ("", ".ashift") if a != "d0" else ("",):
                    head = f"tcgen05.mma{sp}.{g}.kind::{kind}{shift}{coll} [r0], {a}, d1{meta}, r3"
                    lanes = ", " + _vector("r", 4 * group, 4)
                    yield _kernel([*ops, f"{head}, t0;"])
                    if use in ("", "use"):
                        yield _kernel([*ops, f"{head}{lanes}, t0;"])
                        yield _kernel([*ops, f"@t1 {head}, !t0;"])
                    if kind in ("f16", "tf32") and use in ("", "fill"):
                        yield _kernel([*ops, f"{head}, t0, 5;"])
                        yield _kernel([*ops, f"{head}{lanes}, t0, 15;"])
            for kind, vecs in _SCALED:
                for vec in vecs:
                    yield _kernel(
                        [
                            *ops,
                            f"tcgen05.mma{sp}.{g}.kind::{kind}.block_scale{vec}{coll} [r0], {a}, d1{meta}, r3, [r4], "
                            f"[r5], t0;",
                        ]
                    )
                    if not use:
                        yield _kernel(
                            [
                                *ops,
                                f"@!t1 tcgen05.mma{sp}.{g}.kind::{kind}.block_scale{vec} [r0], {a}, d1{meta}, r3, "
                                f"[r4+4], [r5], !t0;",
                            ]
                        )
        if group == 1:
            for kind, zero in itertools.product(_PLAIN, ("", ", d2")):
                for coll in ("", *[f".collector::b{b}::{u}" for b in range(4) for u in uses[1:]]):
                    yield _kernel(
                        [*ops, f"tcgen05.mma.ws{sp}.{g}.kind::{kind}{coll} [r0], {a}, d1{meta}, r3, t0{zero};"]
                    )
                yield _kernel([*ops, f"@t1 tcgen05.mma.ws{sp}.{g}.kind::{kind} [r0+4], {a}, d1{meta}, r3, !t0{zero};"])


#: Tensor memory.
TENSOR_MEMORY: tuple[str, ...] = (*_management(), *_transfers(), *_mma())

#: Other forms that only sm_100 and later targets have, in the notation of :mod:`tests.isa.corpus`.
NEWER: str = """
{add,sub}{.rn,.rz,.rm,.rp}{,.sat}.f32.{f16,bf16} f h f
fma{.rn,.rz,.rm,.rp}{,.sat}.f32.{f16,bf16} f h h f
{min,max}{,.ftz}{,.NaN}{,.abs}.f32 f f f f
cvt.rn.satfinite{,.relu}.{e2m1x2,e2m3x2,e3m2x2,e4m3x2,e5m2x2}.f32 h f f
cvt.rn{,.relu}.f16x2.{e2m3x2,e3m2x2,e4m3x2,e5m2x2} r h
add.{rn,rz}.f32x2 d d d
mul.rn.f32x2 d d d
st.bulk.weak.shared::cta : [sa] d 0 @reg,uni
st.bulk.weak : [sa] 256 0 @reg
st.global{,.relaxed.gpu,.release.gpu,.volatile,.relaxed.sys,.mmio.relaxed.sys}.b32 : [a] r @uni
st.global{,.relaxed.gpu}.b64 : [a] d @uni
st.global.{b8,b16} : [a] h @uni
st.global{,.L1::evict_first,.L1::evict_last,.L1::no_allocate}.v4.b32 : [a] rrrr @uni
st.global.L2::cache_hint.b32 : [a] r d @uni
st.global{,.L2::evict_first,.L2::evict_last}.v8.b32 : [a] rrrrrrrr @reg,uni
st.global{,.L1::evict_first,.L1::no_allocate}{,.L2::evict_first,.L2::evict_last,.L2::evict_normal}.v8.f32 : [a+64] \
ffffffff @reg
st.global{,.volatile,.relaxed.gpu,.relaxed.sys}.v4.f64 : [a+32] gggg @reg
ld.global{,.nc}{,.L1::evict_first,.L1::no_allocate}{,.L2::evict_first,.L2::evict_last,.L2::evict_normal}.v8.f32 \
ffffffff [a+64] @reg
ld.global{,.volatile,.relaxed.gpu,.acquire.sys}.v4.f64 gggg [a+32] @reg
ld.global{,.nc}.L2::cache_hint.v8.b32 rrrrrrrr [a+64] d @reg
red{,.relaxed,.release}{,.gpu,.sys,.cta}.global.{add,min,max,inc,dec}.u32 : [a] r @uni
red.global.{and,or,xor}.b32 : [a] r @uni
red.global.{min,max}.{u64,s64} : [a] d
red.global.{min,max}.s32 : [a] r @uni
red.global.add.f64 : [a] g @uni
red.global.add.f32 : [a] f @uni
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{inc,dec,min,max,add}.u32 : [s32a] r [s32a+8] \
@reg,uni
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{min,max,add}.s32 : [s32a] r [s32a+8] @reg,uni
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{and,or,xor}.b32 : [s32a] r [s32a+8] @reg
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 : [s32a] d [s32a+8] @reg
red.async.mmio.release{.gpu,.sys}.global.add.u64 : [a] d @reg,uni
red.async.mmio.release.gpu.global.{add,inc,dec,min,max}.u32 : [a] r @reg,uni
red.async.mmio.release.gpu.global.{and,or,xor}.b32 : [a] r @reg,uni
st.async.mmio.release{.gpu,.sys}.global.b32 : [a] r @reg,uni
st.async.mmio.release.gpu.global.{b8,b16} : [a] h @reg,uni
st.async{,.weak}.shared::cluster.mbarrier::complete_tx::bytes.{b32,u32,s32} : [s32a] r [s32a+8] @reg,uni
st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 : [s32a] rrrr [s32a+8] @reg
st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 : [s32a] dd [s32a+8] @reg
st.async.mmio.release{.gpu,.sys}.global.b64 : [a] d @reg,uni
ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 rr [s32a] @reg
ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 rrrr [s32a+16] @reg
ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.{b6x16_p32,b4x16_p64} rr [s32a] @reg
ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8x16.{b6x16_p32,b4x16_p64} rrrr [s32a+32] @reg
ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.{b6x16_p32,b4x16_p64} r [s32a] @reg
ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.{b6x16_p32,b4x16_p64} rr [s32a] @reg
ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.{b6x16_p32,b4x16_p64} rrrr [s32a+32] @reg
stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 : [s32a] r @reg
stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 : [s32a] rr @reg
stmatrix.sync.aligned.m16n8.x4.trans.shared.b8 : [s32a+32] rrrr @reg
clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes{,.multicast::cluster::all}.b128 : \
[s32a] [s32a+16] @reg
clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.b128 : [sa] [sa+16] @reg
clusterlaunchcontrol.query_cancel.get_first_ctaid::{x,y,z}.b32.b128 r q @reg
prefetch.local.{L1,L2} : [a] @reg
mbarrier.try_wait{,.parity}.{acquire,relaxed}.{cta,cluster}.shared::cta.b64 p [s32a] r @reg
"""
