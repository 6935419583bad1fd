"""Fifth-generation tensor cores (tcgen05).  Column meaning: see `stages.parse.table`."""

from __future__ import annotations

_ON = "v8.6 on=100f+110f"
_CG = "cta_group::1/cta_group::2"
_LD = {"16x64b": 1, "16x128b": 2, "16x256b": 4, "32x32b": 1}
_COLLECTOR = "collector::a::fill/collector::a::use/collector::a::lastuse/collector::a::discard"
_COLLECTOR_DENSE = "/".join([f"collector::b::{u}" for u in ("fill", "use", "lastuse", "discard")])
_COLLECTOR_B = "/".join([f"collector::b{k}::{u}" for k in range(4) for u in ("fill", "use", "lastuse", "discard")])


def _transfers() -> list[str]:
    out = []
    for shape, unit in _LD.items():
        x = 1
        while unit * x <= 128:
            out.append(f"tcgen05.ld | b32 | sync aligned? {shape} x{x} pack::16b? | dv{unit * x}:b32, ta | {_ON}")
            out.append(f"tcgen05.st | b32 | sync aligned? {shape} x{x} unpack::16b? | ta, sv{unit * x}:b32 | {_ON}")
            x *= 2
    for k in range(8):
        x = 1 << k
        out.append(f"tcgen05.ld | b32 | sync aligned? 16x32bx2 x{x} pack::16b? | dv{x}:b32, ta, i | {_ON}")
        out.append(f"tcgen05.st | b32 | sync aligned? 16x32bx2 x{x} unpack::16b? | ta, i, sv{x}:b32 | {_ON}")
    for k in range(1, 8):
        x = 1 << k
        for t, extra in (("u32,s32", ""), ("f32", " abs? NaN?")):
            reg = "f32" if t == "f32" else "b32"
            out.append(
                f"tcgen05.ld.red | {t} | sync aligned 32x32b x{x} min/max{extra} | dv{x}:{reg}, d, ta | v8.8 "
                "on=103f+110f"
            )
            out.append(
                f"tcgen05.ld.red | {t} | sync aligned 16x32bx2 x{x} min/max{extra} | dv{x}:{reg}, d, ta, i | "
                "v8.8 on=103f+110f"
            )
    return out


def _mma() -> list[str]:
    out = []
    plain = "kind::f16/kind::tf32/kind::f8f6f4/kind::i8"
    for sp, meta in (("", ""), (" sp", ", ta")):
        for a in ("s:u64", "ta"):
            shift = " ashift?" if a == "ta" else ""
            name = f"tcgen05.mma | - |{sp} {_CG} {plain}{shift} {_COLLECTOR}?"
            out.append(f"{name} | ta, {a}, s:u64{meta}, s:u32, sv:b32?, ps, i? | {_ON}")
            newer = _ON.replace("v8.6", "v8.8")
            exact = "v8.6 on=100a+103a+107a+110a"
            for kind, vec, gates in (
                ("kind::mxf8f6f4", "scale_vec::1X", exact),
                ("kind::mxf8f6f4", "block32?", newer),
                ("kind::mxf4", "scale_vec::2X", exact),
                ("kind::mxf4", "block32?", newer),
                ("kind::mxf4nvf4", "scale_vec::2X/scale_vec::4X", exact),
                ("kind::mxf4nvf4", "block16/block32", newer),
            ):
                out.append(
                    f"tcgen05.mma | - |{sp} {_CG} {kind} block_scale {vec} {_COLLECTOR}? | ta, {a}, s:u64{meta}, "
                    f"s:u32, ta, ta, ps | {gates}"
                )
            out.append(
                f"tcgen05.mma.ws | - |{sp} cta_group::1 {plain} {_COLLECTOR_B}? | ta, {a}, s:u64{meta}, s:u32, "
                f"ps, s:u64? | {_ON}"
            )
    return out + _mma_107()


def _mma_107() -> list[str]:
    """What PTX 9.4 adds: a collector of B, products of 16-bit integers, numbers of B from a table."""
    out = []
    gates = "v9.4 on=107f"
    held = f"{_COLLECTOR}? {_COLLECTOR_DENSE}"
    scales = [
        "kind::mxf8f6f4 block_scale block32?",
        "kind::mxf8f6f4 block_scale scale_vec::1X",
        "kind::mxf4 block_scale block32?",
        "kind::mxf4 block_scale scale_vec::2X",
        "kind::mxf4nvf4 block_scale block16/block32/scale_vec::2X/scale_vec::4X",
    ]
    for a in ("s:u64", "ta"):
        shift = " ashift?" if a == "ta" else ""
        for sp, meta in (("", ""), (" sp", ", ta")):
            head = f"tcgen05.mma | - |{sp} {_CG}"
            tail = f"ta, {a}, s:u64{meta}, s:u32"
            plain = "kind::f16/kind::tf32/kind::f8f6f4"
            out.append(f"{head} {plain}{shift} {held} | {tail}, sv:b32?, ps, i? | {gates}")
            out.append(f"{head} kind::ti16{shift} {_COLLECTOR}? {_COLLECTOR_DENSE}? | {tail}, sv:b32?, ps | {gates}")
            out.extend([f"{head} {kind} {held} | {tail}, ta, ta, ps | {gates}" for kind in scales])
            out.append(
                f"tcgen05.mma.ws | - |{sp} cta_group::1 kind::ti16 {_COLLECTOR_B}? | {tail}, ps, s:u64? | {gates}"
            )
        lut = f"decompress::lut::b {_COLLECTOR}? {_COLLECTOR_DENSE}?"
        head, tail = f"tcgen05.mma | - | {_CG}", f"ta, {a}, s:u64, ta, s:u32"
        out.append(f"{head} kind::f8f6f4 {lut} | {tail}, sv:b32?, ps | {gates}")
        out.append(f"{head} kind::mxf8f6f4 block_scale block32? {lut} | {tail}, ta, ta, ps | {gates}")
    return out


_OTHER = f"""
tcgen05.alloc | b32 | {_CG} sync aligned shared::cta? | m, s:u32 | {_ON} | columns
tcgen05.alloc | b32 | {_CG} sync aligned shared::cta? exclusive | m, s:u32 | v9.4 on=100f+110f
tcgen05.dealloc | b32 | {_CG} sync aligned | s:u32, s:u32 | {_ON} | columns
tcgen05.relinquish_alloc_permit | - | {_CG} sync aligned | | {_ON}
tcgen05.cp | - | {_CG} 128x256b/4x256b/128x128b | ta:A, s:u64 | {_ON}
tcgen05.cp | - | {_CG} 64x128b warpx2::02_13/warpx2::01_23 | ta:A, s:u64 | {_ON}
tcgen05.cp | - | {_CG} 32x128b warpx4 | ta:A, s:u64 | {_ON}
tcgen05.cp | - | {_CG} 128x256b/4x256b/128x128b b8x16 b6x16_p32/b4x16_p64 | ta:A, s:u64 | {_ON}
tcgen05.cp | - | {_CG} 64x128b warpx2::02_13/warpx2::01_23 b8x16 b6x16_p32/b4x16_p64 | ta:A, s:u64 | {_ON}
tcgen05.cp | - | {_CG} 32x128b warpx4 b8x16 b6x16_p32/b4x16_p64 | ta:A, s:u64 | {_ON}
tcgen05.shift | - | {_CG} down | ta:A | v8.6 on=100a+103a+107a+110a
tcgen05.commit | b64 | {_CG} mbarrier::arrive::one shared::cluster? | m | {_ON}
tcgen05.commit | b64 | {_CG} mbarrier::arrive::one shared::cluster? multicast::cluster/multicast::cluster::16b | \
m, s:u16 | {_ON}
tcgen05.commit | b64 | {_CG} mbarrier::arrive::one shared::cluster? multicast::cluster::32b | m, s:u32 | v9.4 on=107f
tcgen05.commit | b64 | {_CG} sync_restrict::shared::read::mma::a mbarrier::arrive::one shared::cluster? | m | \
v9.4 on=107f
tcgen05.commit | b64 | {_CG} sync_restrict::shared::read::mma::a mbarrier::arrive::one shared::cluster? \
multicast::cluster/multicast::cluster::16b | m, s:u16 | v9.4 on=107f
tcgen05.commit | b64 | {_CG} sync_restrict::shared::read::mma::a mbarrier::arrive::one shared::cluster? \
multicast::cluster::32b | m, s:u32 | v9.4 on=107f
tcgen05.fence::before_thread_sync | - | | | {_ON}
tcgen05.fence::after_thread_sync | - | | | {_ON}
tcgen05.wait::ld | - | sync aligned | | {_ON}
tcgen05.wait::st | - | sync aligned | | {_ON}
"""


def _rows() -> str:
    return _OTHER + "\n".join(_transfers() + _mma())


FAMILIES = {"tcgen05": _rows}
ROWS = ""
