"""The corpus of bulk copies, tensor-map copies and warpgroup matrix operations: see :mod:`tests.isa.corpus`.

``OPS`` are lines in the corpus's notation, ``RAW`` whole kernels: address lists, and accumulators that are both read
and written, do not fit the lines.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

OPS: dict[str, str] = {
    "bulk": """
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint : [s32a] [a] r [s32a+8] d @reg,uni
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes : [s32a] [a] {16,4096} [s32a+8] @reg
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes : [s32a] [a] r [s32a+8] @reg,uni
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster : [s32a] [a] r [s32a+8] h @reg,uni
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint : [s32a] [a] r \
[s32a+8] h d @reg,uni
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes : [s32a] [a] r [s32a+8] @reg,uni
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint : [s32a] [a] r [s32a+8] d @reg,uni
cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes : [s32a] [s32a+64] r [s32a+8] @reg,uni
cp.async.bulk.global.shared::cta.bulk_group : [a] [s32a] r @reg,uni
cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint : [a] [s32a] r d @reg,uni
cp.async.bulk.global.shared::cta.bulk_group.cp_mask : [a] [s32a] r h @reg,uni
cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask : [a] [s32a] r d h @reg,uni
cp.async.bulk.prefetch.L2.global : [a] r @reg,uni
cp.async.bulk.prefetch.L2.global.L2::cache_hint : [a] r d @reg,uni
cp.async.bulk.prefetch.L2.global : [a] 256 @reg
cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{add,inc,dec,min,max}.u32 : [s32a] \
[s32a+64] r [s32a+8] @reg,uni
cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{add,min,max}.s32 : [s32a] [s32a+64] r \
[s32a+8] @reg
cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{add.u64,and.b32,or.b32,xor.b32} \
: [s32a] [s32a+64] r [s32a+8] @reg
cp.reduce.async.bulk.global.shared::cta.bulk_group.{add,inc,dec,min,max}.u32 : [a] [s32a] r @reg,uni
cp.reduce.async.bulk.global.shared::cta.bulk_group.{add,min,max}.{s32,u64} : [a] [s32a] r @reg
cp.reduce.async.bulk.global.shared::cta.bulk_group.{min,max}.{s64,f16,bf16} : [a] [s32a] r @reg
cp.reduce.async.bulk.global.shared::cta.bulk_group.{and,or,xor}.{b32,b64} : [a] [s32a] r @reg
cp.reduce.async.bulk.global.shared::cta.bulk_group.{add.noftz.f16,add.noftz.bf16,add.f32,add.f64} : [a] [s32a] r @reg
cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.{add.u32,add.f32,max.s64,add.noftz.f16,xor.b64} \
: [a] [s32a] r d @reg,uni
cp.async.bulk.commit_group : @reg
cp.async.bulk.wait_group{,.read} : {0,1,2,3,7,63} @reg
prefetch.{,const.,param.}tensormap : [a] @reg,uni
st.bulk.weak.shared::cta : [s32a] {64,4096} 0 @reg
st.bulk.weak.shared::cta : [s32a] d 0 @reg,uni
""",
    "tmap": """
tensormap.replace.tile.global_address{,.global}.b1024.b64 : [a] d @reg,imm
tensormap.replace.tile.global_address.shared::cta.b1024.b64 : [s32a] d @reg,imm
tensormap.replace.tile.rank{,.global}.b1024.b32 : [a] r @reg,imm
tensormap.replace.tile.rank.shared::cta.b1024.b32 : [s32a] r @reg,imm
tensormap.replace.tile.{box_dim,global_dim,element_stride}{,.global}.b1024.b32 : [a] {0,1,2,3,4} r @reg
tensormap.replace.tile.{box_dim,global_dim,element_stride}.shared::cta.b1024.b32 : [s32a] {0,1,2,3,4} r @reg
tensormap.replace.tile.global_stride{,.global}.b1024.b64 : [a] {0,1,2,3} d @reg
tensormap.replace.tile.global_stride.shared::cta.b1024.b64 : [s32a] {0,1,2,3} d @reg
tensormap.replace.tile.elemtype.global.b1024.b32 : [a] {0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15} @reg
tensormap.replace.tile.{interleave_layout,fill_mode}.global.b1024.b32 : [a] {0,1,2} @reg
tensormap.replace.tile.swizzle_mode.{global,shared::cta}.b1024.b32 : [a] {0,1,2,3,4} @reg
tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 : [a] {0,1,2,3} @reg
tensormap.replace.tile.{elemtype,interleave_layout,swizzle_mode,fill_mode,swizzle_atomicity}.shared::cta.b1024.b32 : \
[s32a] {0,1,2} @reg
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{cta,cluster,gpu,sys}.sync.aligned : [a] [s32a] \
128 @reg
fence.proxy.tensormap::generic.release.{cta,cluster,gpu,sys} : @reg
fence.proxy.tensormap::generic.acquire.{cta,cluster,gpu,sys} : [a] 128 @reg
fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster} : @reg
fence.proxy.async::generic.{acquire.sync_restrict::shared::cluster,release.sync_restrict::shared::cta}.cluster : @reg
fence.{acquire.sync_restrict::shared::cluster,release.sync_restrict::shared::cta}.cluster : @reg
fence.mbarrier_init.release.cluster : @reg
fence.{sc,acq_rel,acquire,release}.{cta,cluster,gpu,sys} : @reg
""",
    "multimem": """
multimem.ld_reduce{.weak,.relaxed.cta,.relaxed.cluster,.relaxed.gpu,.relaxed.sys,.acquire.cta,.acquire.gpu,\
.acquire.sys}.global.add.u32 r [a+16] @reg
multimem.ld_reduce.relaxed.sys{,.global}.{add,min,max}.{u32,s32} r [a] @reg,uni
multimem.ld_reduce.relaxed.sys.global.{add,min,max}.u64 d [a] @reg
multimem.ld_reduce.relaxed.sys.global.{min,max}.s64 d [a] @reg
multimem.ld_reduce.weak.global.{and,or,xor}.b32 r [a] @reg
multimem.ld_reduce.weak.global.{and,or,xor}.b64 d [a] @reg
multimem.ld_reduce.weak.global.add.f32 f [a] @reg
multimem.ld_reduce.weak.global.add.f64 g [a] @reg
multimem.ld_reduce.weak.global.add.v2.f32 ff [a] @reg
multimem.ld_reduce.weak.global.add.v4.f32 ffff [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}.v2.{f16,bf16} hh [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}.v4.{f16,bf16} hhhh [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}.v8.{f16,bf16} hhhhhhhh [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}.{f16x2,bf16x2} r [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}.v2.{f16x2,bf16x2} rr [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}.v4.{f16x2,bf16x2} rrrr [a] @reg
multimem.ld_reduce.weak.global.add.acc::f32.v4.{f16x2,bf16x2} rrrr [a] @reg
multimem.ld_reduce.weak.global.add.acc::f32.{f16x2,bf16x2} r [a] @reg
multimem.ld_reduce.weak.global.add.acc::f32.v2.{f16x2,bf16x2} rr [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}{,.acc::f16}.{e4m3x4,e5m2x4} r [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}{,.acc::f16}.v2.{e4m3x4,e5m2x4} rr [a] @reg
multimem.ld_reduce.weak.global.{add,min,max}{,.acc::f16}.v4.{e4m3x4,e5m2x4} rrrr [a] @reg
multimem.ld_reduce.weak.global.{add,min}.v2.{e4m3x2,e5m2x2} hh [a] @reg
multimem.ld_reduce.weak.global.{add,min}.v4.{e4m3x2,e5m2x2} hhhh [a] @reg
multimem.ld_reduce.weak.global.{add,min}.v8.{e4m3x2,e5m2x2} hhhhhhhh [a] @reg
multimem.st{.weak,.relaxed.cta,.relaxed.cluster,.relaxed.gpu,.relaxed.sys,.release.gpu,.release.sys}.global.u32 : \
[a+16] r @reg
multimem.st.weak{,.global}.{u32,s32,b32} : [a] r @reg,uni
multimem.st.weak.global.{u64,s64,b64} : [a] d @reg
multimem.st.weak.global.f64 : [a] g @reg
multimem.st.weak.global.f32 : [a] f @reg
multimem.st.weak.global.v2.f32 : [a] ff @reg
multimem.st.weak.global.v4.f32 : [a] ffff @reg
multimem.st.weak.global.v2.{f16,bf16} : [a] hh @reg
multimem.st.weak.global.v4.{f16,bf16} : [a] hhhh @reg
multimem.st.weak.global.v8.{f16,bf16} : [a] hhhhhhhh @reg
multimem.st.weak.global.{f16x2,bf16x2,e4m3x4} : [a] r @reg
multimem.st.weak.global.v2.{f16x2,bf16x2} : [a] rr @reg
multimem.st.weak.global.v4.{f16x2,bf16x2,e5m2x4} : [a] rrrr @reg
multimem.red{.relaxed.cta,.relaxed.cluster,.relaxed.gpu,.relaxed.sys,.release.gpu,.release.sys}.global.add.u32 : \
[a+16] r @reg
multimem.red.relaxed.sys{,.global}.{add,min,max}.{u32,s32} : [a] r @reg,uni
multimem.red.relaxed.sys.global.{add,min,max}.u64 : [a] d @reg
multimem.red.relaxed.sys.global.{min,max}.s64 : [a] d @reg
multimem.red.relaxed.sys.global.{and,or,xor}.b32 : [a] r @reg
multimem.red.relaxed.sys.global.{and,or,xor}.b64 : [a] d @reg
multimem.red.relaxed.sys.global.add.f32 : [a] f @reg
multimem.red.relaxed.sys.global.add.f64 : [a] g @reg
multimem.red.relaxed.sys.global.add.v2.f32 : [a] ff @reg
multimem.red.relaxed.sys.global.add.v4.f32 : [a] ffff @reg
multimem.red.relaxed.sys.global.{add,min,max}.v2.{f16,bf16} : [a] hh @reg
multimem.red.relaxed.sys.global.{add,min,max}.v4.{f16,bf16} : [a] hhhh @reg
multimem.red.relaxed.sys.global.{add,min,max}.v8.{f16,bf16} : [a] hhhhhhhh @reg
multimem.red.relaxed.sys.global.add.{f16x2,bf16x2} : [a] r @reg
multimem.red.relaxed.sys.global.{add,min,max}.v2.{f16x2,bf16x2} : [a] rr @reg
multimem.red.relaxed.sys.global.{add,min,max}.v4.{f16x2,bf16x2} : [a] rrrr @reg
""",
    "mbar": """
mbarrier.init.shared{,::cta}.b64 : [s32a] r @reg,imm,uni
mbarrier.inval.shared.b64 : [s32a] @reg
mbarrier.arrive{,.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster}.shared.b64 d [s32a] @reg
mbarrier.arrive{,.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster}.shared.b64 d [s32a] r @reg,imm
mbarrier.arrive{,.release.cta,.release.cluster,.relaxed.cluster}.shared{,::cluster}.b64 _ [s32a] r @reg,imm,uni
mbarrier.arrive{,.release.cluster,.relaxed.cluster}.shared::cluster.b64 _ [s32a] @reg
mbarrier.arrive.expect_tx{,.release.cta,.release.cluster,.relaxed.cta,.relaxed.cluster}.shared.b64 d [s32a] r @reg,imm
mbarrier.arrive.expect_tx{,.release.cluster,.relaxed.cluster}.shared{,::cluster}.b64 _ [s32a] r @reg,imm,uni
mbarrier.arrive.noComplete.shared.b64 d [s32a] r @reg,imm
mbarrier.arrive_drop{,.release.cluster,.relaxed.cta}.shared.b64 d [s32a] @reg
mbarrier.arrive_drop{,.release.cluster,.relaxed.cta}.shared.b64 d [s32a] r @reg,imm
mbarrier.arrive_drop{,.release.cluster}.shared::cluster.b64 _ [s32a] @reg
mbarrier.arrive_drop{,.release.cluster}.shared::cluster.b64 _ [s32a] r @reg
mbarrier.arrive_drop.expect_tx{,.release.cluster,.relaxed.cta}.shared.b64 d [s32a] r @reg,imm
mbarrier.arrive_drop.expect_tx{,.release.cluster}.shared::cluster.b64 _ [s32a] r @reg
mbarrier.arrive_drop.noComplete.shared.b64 d [s32a] r @reg
mbarrier.expect_tx.relaxed.{cta,cluster}.shared{::cta,::cluster}.b64 : [s32a] r @reg,imm,uni
mbarrier.complete_tx.relaxed.{cta,cluster}.shared{::cta,::cluster}.b64 : [s32a] r @reg,imm,uni
mbarrier.test_wait{,.acquire.cta,.acquire.cluster,.relaxed.cta,.relaxed.cluster}.shared.b64 p [s32a] d @reg
mbarrier.test_wait.parity{,.acquire.cta,.acquire.cluster,.relaxed.cta,.relaxed.cluster}.shared.b64 p [s32a] r @reg,imm
mbarrier.try_wait{,.acquire.cta,.acquire.cluster,.relaxed.cta,.relaxed.cluster}.shared.b64 p [s32a] d @reg
mbarrier.try_wait.parity{,.acquire.cta,.acquire.cluster,.relaxed.cta,.relaxed.cluster}.shared.b64 p [s32a] r @reg,imm
mbarrier.try_wait.shared.b64 p [s32a] d r @reg,imm
mbarrier.try_wait.parity.shared.b64 p [s32a] r r @reg,imm
mbarrier.{test,try}_wait.parity.shared.b64 p [s32a] {0,1} @reg
mbarrier.pending_count.b64 r d @reg
setmaxnreg.{inc,dec}.sync.aligned.u32 : {24,32,128,232,240,256} @reg
griddepcontrol.{launch_dependents,wait} : @reg
barrier.cluster.arrive{,.release,.relaxed}{,.aligned} : @reg
barrier.cluster.wait{,.acquire}{,.aligned} : @reg
elect.sync r|p : r @reg,uni
elect.sync r|p : 0x{ffffffff,1} @reg
elect.sync _|p : 0x{ffffffff,f0} @reg
""",
}

#: A kernel with addresses a (global), sa (shared, generic) and s32a, 32-bit r0-r9, 64-bit d0 and d1, 16-bit h0-h3,
#: predicate q0.
_KERNEL = """.visible .entry NAME(.param .align 16 .b8 p0[1024], .param .u64 pa, .param .u64 po, .param .align 64 .b8 \
pm[128])ATTR {
  .reg .b64 a, o, sa, d<4>; .reg .b32 s32a, r<10>, t; .reg .b16 h<4>; .reg .pred q<4>;
  ld.param.u64 a, [pa]; ld.param.u64 o, [po]; cvta.to.global.u64 a, a; cvta.to.global.u64 o, o; mov.u64 sa, smem;
  cvt.u32.u64 s32a, sa;
LOADS  BODY
  ret;
}
"""


def kernel(body: str, uniform: bool = False, attributes: str = "") -> str:
    """A kernel around ``body``; the values come from parameters (``uniform``) or from global memory."""
    space, base = ("param", "p0") if uniform else ("global", "a")
    loads = [f"ld.{space}.b32 r{i}, [{base}+{4 * i}];" for i in range(10)]
    loads += [f"ld.{space}.b64 d{i}, [{base}+{64 + 8 * i}];" for i in range(2)]
    loads += [f"ld.{space}.b16 h{i}, [{base}+{96 + 2 * i}];" for i in range(4)]
    loads += [f"ld.{space}.b32 t, [{base}+112];", "setp.ne.s32 q0, t, 0;"]
    return (
        _KERNEL.replace("ATTR", attributes).replace("LOADS", "".join(f"  {x}\n" for x in loads)).replace("BODY", body)
    )


def _coordinates(dims: int, first: int = 0) -> str:
    return "{" + ", ".join(f"r{i}" for i in range(first, first + dims)) + "}"


def _tensor_lines() -> Iterator[str]:
    """Every form of the tensor-map copies; a map in global memory at a."""
    tx = ".mbarrier::complete_tx::bytes"
    hints = (("", ""), (".L2::cache_hint", ", d0"))
    for dims in range(1, 6):
        coords = f"[a, {_coordinates(dims)}]"
        for to, group, (hint, hval) in itertools.product(
            ("shared::cluster", "shared::cta"), ("", ".cta_group::1", ".cta_group::2"), hints
        ):
            for cast, cval in (("", ""), (".multicast::cluster", ", h0")) if to == "shared::cluster" else (("", ""),):
                head = f"cp.async.bulk.tensor.{dims}d.{to}.global"
                tail = f"{tx}{cast}{group}{hint}"
                yield f"{head}.tile{tail} [s32a], {coords}, [s32a+8]{cval}{hval};"
                if dims >= 3:
                    offs = "{" + ", ".join(f"h{i + 1}" for i in range(dims - 2)) + "}"
                    yield f"{head}.im2col{tail} [s32a], {coords}, [s32a+8], {offs}{cval}{hval};"
                    for mode in ("im2col::w", "im2col::w::128"):
                        yield f"{head}.{mode}{tail} [s32a], {coords}, [s32a+8], {{h1, h2}}{cval}{hval};"
                if dims == 2:
                    yield f"{head}.tile::gather4{tail} [s32a], [a, {_coordinates(5)}], [s32a+8]{cval}{hval};"
        for hint, hval in hints:
            yield f"cp.async.bulk.tensor.{dims}d.global.shared::cta.tile.bulk_group{hint} {coords}, [s32a]{hval};"
            yield f"cp.async.bulk.prefetch.tensor.{dims}d.L2.global.tile{hint} {coords}{hval};"
            if dims >= 3:
                offs = "{" + ", ".join(f"h{i + 1}" for i in range(dims - 2)) + "}"
                yield (
                    f"cp.async.bulk.tensor.{dims}d.global.shared::cta.im2col_no_offs.bulk_group{hint} {coords}, "
                    f"[s32a]{hval};"
                )
                yield f"cp.async.bulk.prefetch.tensor.{dims}d.L2.global.im2col{hint} {coords}, {offs}{hval};"
                for mode in ("im2col::w", "im2col::w::128"):
                    yield f"cp.async.bulk.prefetch.tensor.{dims}d.L2.global.{mode}{hint} {coords}, {{h1, h2}}{hval};"
            if dims == 2:
                five = f"[a, {_coordinates(5)}]"
                yield (
                    f"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group{hint} {five}, [s32a]{hval};"
                )
                yield f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4{hint} {five}{hval};"
            for op in ("add", "min", "max", "inc", "dec", "and", "or", "xor"):
                for mode in ("tile", "im2col_no_offs") if dims >= 3 else ("tile",):
                    yield (
                        f"cp.reduce.async.bulk.tensor.{dims}d.global.shared::cta.{op}.{mode}.bulk_group{hint} "
                        f"{coords}, [s32a]{hval};"
                    )


def _tensor() -> Iterator[str]:
    for line in _tensor_lines():
        yield kernel(line)
    for line in list(_tensor_lines())[::7]:
        yield kernel(line, uniform=True)
        yield kernel("mov.b64 a, pm; cvta.param.u64 a, a;\n  " + line, uniform=True)


_FLOAT_K = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32}


def _warpgroup_forms(acc: str) -> Iterator[tuple[str, str, bool]]:
    """(types of A and B, trailing immediates without transposes, whether the integer ``satfinite`` applies) for an
    accumulator type."""
    if acc == "s32":
        for a, b in itertools.product(("s8", "u8"), repeat=2):
            yield f"{a}.{b}", "", True
        yield "b1.b1", "", False
        return
    for a, b in (("f16", "f16"), ("bf16", "bf16"), ("tf32", "tf32"), *itertools.product(("e4m3", "e5m2"), repeat=2)):
        if acc == "f32" or a not in ("bf16", "tf32"):
            yield f"{a}.{b}", "1, 1", False


def _warpgroup_kernel(n: int, acc: str, lines: list[str]) -> str:
    count = n // 4 if acc == "f16" else n // 2
    kind = "f32" if acc == "f32" else "b32"
    regs = [f"c{i}" for i in range(count)]
    body = [f".reg .{kind} c<{count}>; .reg .b32 u<4>;"]
    body += [f"ld.global.{kind} {x}, [o+{4 * i}];" for i, x in enumerate(regs)]
    body += [f"mov.b32 u{i}, r{i};" for i in range(4)]
    for line in lines:
        body.append(line.replace("ACC", "{" + ", ".join(regs) + "}").replace("FRAG", "{u0, u1, u2, u3}"))
    body += [f"st.global.{kind} [o+{4 * i}], {x};" for i, x in enumerate(regs)]
    return kernel("\n  ".join(body))


_FENCE, _COMMIT, _WAIT = (
    "wgmma.fence.sync.aligned;",
    "wgmma.commit_group.sync.aligned;",
    "wgmma.wait_group.sync.aligned 0;",
)


def _mma(
    n: int,
    acc: str,
    types: str,
    a: str,
    tail: str,
    sparse: bool = False,
    sat: bool = False,
    scale: str = "1",
    sel: int = 0,
) -> str:
    kind = types.partition(".")[0]
    k = _FLOAT_K.get(kind, 256 if kind == "b1" else 32) * (2 if sparse else 1)
    mods = f"m64n{n}k{k}.{acc}.{types}" + (".and.popc" if kind == "b1" else "") + (".satfinite" if sat else "")
    meta = f", r8, {sel}" if sparse else ""
    return (
        f"wgmma.mma_async{'.sp' if sparse else ''}.sync.aligned.{mods} ACC, {a}, d1{meta}, "
        f"{scale}{', ' + tail if tail else ''};"
    )


def _variants(n: int, acc: str, full: bool) -> Iterator[str]:
    for types, tail, integer in _warpgroup_forms(acc):
        half = types in ("f16.f16", "bf16.bf16")
        for sparse, a in itertools.product((False, True), ("d0", "FRAG")):
            if sparse and types == "b1.b1":
                continue
            end = tail if not half else tail + (", 0, 0" if a == "d0" else ", 0")
            yield _mma(n, acc, types, a, end, sparse)
            if not full:
                continue
            yield _mma(n, acc, types, a, end, sparse, scale="0")
            yield _mma(n, acc, types, a, end, sparse, scale="q0")
            if sparse and types.split(".")[0] in ("f16", "bf16", "tf32"):
                yield _mma(n, acc, types, a, end, sparse, sel=1)
            if integer:
                yield _mma(n, acc, types, a, end, sparse, sat=True)
            if tail:
                for sa, sb in (("-1", "1"), ("1", "-1"), ("-1", "-1")):
                    yield _mma(n, acc, types, a, f"{sa}, {sb}{end[4:]}", sparse)
            if half:
                for ta, tb in ((0, 1), (1, 0), (1, 1)) if a == "d0" else ((0, 1),):
                    yield _mma(n, acc, types, a, f"{tail}, {ta}, {tb}" if a == "d0" else f"{tail}, {tb}", sparse)


def _warpgroup() -> Iterator[str]:
    for acc in ("f32", "f16", "s32"):
        for n in range(8, 257, 8):
            if acc == "s32" and n > 32 and n % 16:
                continue
            full = n in (8, 64)
            one = [x for form in _variants(n, acc, full) for x in (_FENCE, form, _COMMIT, _WAIT)]
            yield _warpgroup_kernel(n, acc, one)
    f16 = [_mma(64, "f32", "f16.f16", a, "1, 1, 0, 0" if a == "d0" else "1, 1, 0") for a in ("d0", "FRAG")]
    for a in f16:
        yield _warpgroup_kernel(
            64, "f32", [_FENCE, a, a.replace("d1", "d0"), a, _COMMIT, "wgmma.wait_group.sync.aligned 0;"]
        )
        for wait in (0, 1, 2, 7):
            yield _warpgroup_kernel(
                64,
                "f32",
                [_FENCE, a, _COMMIT, a, _COMMIT, f"wgmma.wait_group.sync.aligned {wait};", "bar.sync 0;", _WAIT],
            )
        yield _warpgroup_kernel(64, "f32", [a, a])
        yield _warpgroup_kernel(64, "f32", [_FENCE, "@q0 bra L;", a, "L:", _COMMIT, _WAIT])


def _registers() -> Iterator[str]:
    for count in (24, 40, 160, 240):
        for how in ("inc", "dec"):
            yield kernel(
                f"setmaxnreg.{how}.sync.aligned.u32 {count};\n  st.global.b32 [o], r0;",
                attributes="\n.maxntid 384\n.minnctapersm 1\n",
            )


RAW: dict[str, tuple[str, ...]] = {
    "tensormap": tuple(_tensor()),
    "wgmma": tuple(_warpgroup()),
    "maxnreg": tuple(_registers()),
}
