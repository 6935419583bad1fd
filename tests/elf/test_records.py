"""Records, section headers and symbols of our cubins against ptxas's, although the code differs (a part of
``python -m tests.elf.records``)."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from orchestrator.api import compile_ptx
from stages.check.record_facts import Info
from tests import oracle
from tests.elf.reader import info_records, read
from tests.elf.records import compare, files

#: Kernels with many records; the command takes all.
PICKED = (
    ("mbarrier", "90"), ("shared_barrier", "80"), ("shared_barrier", "120"), ("shuffles", "90"), ("match_all", "100"),
    ("redux_ops", "80"), ("vote", "75"), ("cluster_pair", "90"),
    ("wmma", "75"), ("wmma", "80"), ("small_floats", "90"), ("shared", "75"), ("barriers_of_the_caller", "90"),
    ("setmaxnreg", "90a"), ("print", "90"), ("atomics", "80"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "sm"),
    [(p, s) for p, s in files() if (p.stem, s) in PICKED],
    ids=lambda v: v.stem if isinstance(v, Path) else v,
)
def test_no_difference_without_a_reason(path: Path, sm: str) -> None:
    oracle.require("ptxas")
    assert compare(path, sm) == []


#: Loads, and which of their results are used (ptxas's list of unused bytes depends on both).
LOADS = (
    ("ld.global.v4.b32", "012"), ("ld.global.v4.b32", "013"), ("ld.global.nc.v4.b32", "123"),
    ("ld.global.v4.b32", "0123"),
    ("ld.volatile.global.v2.b32", "1"), ("ld.volatile.global.v4.b32", "0"), ("ld.volatile.global.v4.b32", "23"),
    ("ld.volatile.global.v4.b32", ""), ("ld.relaxed.gpu.global.v4.b32", "023"),
    ('.pragma "used_bytes_mask 0xfff"; ld.global.v4.b32', "0123"),
    ('.pragma "used_bytes_mask 243"; ld.global.v2.b32', "01"),
    ('.pragma "used_bytes_mask 3"; ld.global.b32', "0"),
)  # fmt: skip


def _used_bytes(data: bytes) -> dict[str, list[int]]:
    """Kernel -> the masks of its UNUSED_LOAD_BYTE_OFFSET."""
    found = {}
    for s in read(data).sections:
        if s.name.startswith(".nv.info.k"):
            words = [p for _, code, p in info_records(s.data) if code == Info.UNUSED_LOAD_BYTE_OFFSET]
            found[s.name] = [mask for p in words for _, mask in struct.iter_unpack("<II", p)]
    return found


@pytest.mark.parametrize("sm", ["80", "90", "100"])
def test_bytes_that_a_load_does_not_need(sm: str) -> None:
    text = f".version 9.0\n.target sm_{sm}\n.address_size 64\n"
    for n, (load, used) in enumerate(LOADS):
        count = int(found[1]) if (found := re.search(r"\.v(\d)", load)) else 1
        into = ", ".join(f"%r{k}" for k in range(count))
        text += f""".visible .entry k{n}(.param .u64 a, .param .u64 b) {{ .reg .b32 %r<4>; .reg .b64 %d<2>;
            ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; {load} {f"{{{into}}}" if count > 1 else into}, [%d0];
            {"".join(f"st.global.b32 [%d1+{16 * int(k)}], %r{k}; " for k in used)} ret; }}\n"""
    theirs = oracle.compile_ptx(text, sm)
    assert isinstance(theirs, Path)
    wanted = _used_bytes(theirs.read_bytes())
    assert sum(map(len, wanted.values())) == len(LOADS) - 2
    assert _used_bytes(compile_ptx(text, f"sm_{sm}")) == wanted


OPERATIONS = """
.version 8.6
.target sm_80
.address_size 64
.shared .align 8 .b64 s[8];
.visible .entry k(.param .u64 p, .param .u32 m) {
    .reg .b32 %r<9>; .reg .b16 %h<9>; .reg .pred %p; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [m];
    mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 7; shl.b32 %r4, %r4, 3; mov.u32 %r5, s; add.u32 %r6, %r5, %r4;
    mbarrier.init.shared.b64 [s], 32; mbarrier.init.shared.b64 [%r6+16], %r1;
    mbarrier.arrive.shared.b64 %rd2, [%r6+24]; st.global.u64 [%rd1+8], %rd2;
    mbarrier.arrive.noComplete.shared.b64 %rd2, [s+8], 3; st.global.u64 [%rd1+16], %rd2;
    mbarrier.arrive_drop.shared.b64 %rd2, [s]; st.global.u64 [%rd1+24], %rd2;
    mbarrier.test_wait.shared.b64 %p, [s], %rd2; selp.u32 %r2, 1, 0, %p; st.global.u32 [%rd1+40], %r2;
    mbarrier.test_wait.parity.shared.b64 %p, [%r6], 1; selp.u32 %r2, 1, 0, %p; st.global.u32 [%rd1+48], %r2;
    cp.async.mbarrier.arrive.shared.b64 [s+8];
    bar.warp.sync 0xffffffff; bar.warp.sync %r1; activemask.b32 %r2; st.global.u32 [%rd1+52], %r2;
    shfl.sync.idx.b32 %r2, %r3, 5, 0x1f, %r1; st.global.u32 [%rd1+56], %r2;
    vote.sync.ballot.b32 %r2, %p, %r1; st.global.u32 [%rd1+60], %r2;
    match.any.sync.b32 %r2, %r3, %r1; st.global.u32 [%rd1+64], %r2;
    redux.sync.add.u32 %r2, %r3, 0xffffffff; st.global.u32 [%rd1+68], %r2;
    ld.global.b16 %h2, [%rd1+4]; atom.global.add.noftz.f16 %h1, [%rd1], %h2; st.global.b16 [%rd1+88], %h1;
    mbarrier.inval.shared.b64 [s];
    ret;
}
"""


@pytest.mark.parametrize("sm", ["80", "90", "100", "120"])
def test_each_operation_is_listed(sm: str, tmp_path: Path) -> None:
    """Operations on mbarriers by number, warp-wide instructions, an emulated atomic: ptxas's list has the same."""
    oracle.require("ptxas")
    path = tmp_path / "k.ptx"
    path.write_text(OPERATIONS)
    assert compare(path, sm) == []


@pytest.mark.parametrize("kind", ["i8", "f16"])
def test_compat_record_marks_byte_products(kind: str, tmp_path: Path) -> None:
    """`.nv.compat` has another number if tcgen05 multiplies bytes."""
    oracle.require("ptxas")
    path = tmp_path / "k.ptx"
    path.write_text(f""".version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 c) {{
    .reg .b64 %d<4>; .reg .b32 %r<4>; .reg .pred %p<3>;
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u32 %r1, [c]; setp.ne.u32 %p1, %r1, 0;
    tcgen05.mma.cta_group::1.kind::{kind} [%r1], %d1, %d2, %r1, %p1; ret;
}}
""")
    assert compare(path, "100a") == []


def test_compat_record_marks_tensor_copies_and_map_changes(tmp_path: Path) -> None:
    """Arrivals that expect bytes are in no list; `.nv.compat` marks copies of tensors and changes of their maps."""
    oracle.require("ptxas")
    path = tmp_path / "k.ptx"
    path.write_text(""".version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 m[128], .param .u32 c) {
    .reg .b64 %d<4>; .reg .b32 %r<4>; .shared .align 128 .b8 s[4096]; .shared .align 8 .b64 bar;
    mov.b64 %d1, m; cvta.param.u64 %d1, %d1; ld.param.u32 %r1, [c]; mov.u32 %r2, s; mov.u32 %r3, bar;
    mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [s], %d1;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1, {%r1, %r1}], [%r3];
    mbarrier.arrive.shared.b64 %d2, [bar]; st.shared.u64 [s], %d2; ret;
}
""")
    assert compare(path, "90a") == []
