"""Copies with an order and copies through a fabric (PTX 9.3): the instructions that ptxas 13.5 emits, and
the bytes that arrive."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.interpret.launch import Module
from stages.simulate import Device
from tests import oracle
from tests.parse.full import ours

BAR = "mbarrier::complete_tx::bytes"
FABRIC = "mbarrier::report::fabric"
#: Statements, and the number of the first SM that has them.
COPIES = (
    *(f"cp.async.bulk.relaxed.{s}.shared::cta.global.{BAR}.b128 [%r1], [%rd1], %r2, [%r3];" for s in ("cta", "sys")),
    f"cp.async.bulk.relaxed.gpu.shared::cluster.global.{BAR}.L2::cache_hint.b128 [%r1], [%rd1], %r2, [%r3], %rd2;",
    f"cp.async.bulk.relaxed.cluster.shared::cluster.shared::cta.{BAR}.b128 [%r1], [%r4], %r2, [%r3];",
    "cp.async.bulk.relaxed.cluster.global.shared::cta.bulk_group.b128 [%rd1], [%r1], %r2;",
    "cp.async.bulk.global.shared::cta.bulk_group.b128 [%rd1], [%r1], %r2;",
    "multimem.cp.async.bulk.relaxed.cta.global.shared::cta.bulk_group.b128 [%rd1], [%r1], %r2;",
    "multimem.cp.reduce.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], %r2;",
    "cp.reduce.async.bulk.relaxed.sys.global.shared::cta.bulk_group.add.noftz.f16 [%rd1], [%r1], %r2;",
    f"cp.reduce.async.bulk.relaxed.cta.shared::cluster.shared::cta.{BAR}.add.u32 [%r1], [%r4], %r2, [%r3];",
)
_PUT = f"fabric.try_put.async.shared::cta.mbarrier::complete_tx::16B.{FABRIC}"
_RED = f"fabric.try_red.async.shared::cta.mbarrier::complete_tx::16B.{FABRIC}"
_PULL = f"fabric.try_pullred.async.multimem.shared::cta.{BAR}.{FABRIC}.relaxed.sys"
FABRICS = (
    f"fabric.try_get.async.shared::cta.{BAR}.{FABRIC}.relaxed.sys.b128 [%r1], [%r2, %rd1], %r3, [%r4];",
    f"{_PUT}.relaxed.sys.b128 [%r2, %rd1], [%r1], %r3, [%r4];",
    f"{_PUT}.cp_mask.L2::cache_hint.relaxed.sys.b128 [%r2, %rd1], [%r1], %r3, [%r4], %h1, %rd2;",
    f"{_PUT}.counted::bytes.relaxed.sys.b128 [%r2, %rd1, %rd2], [%r1], %r3, [%r4];",
    f"{_RED}.relaxed.sys.add.f32 [%r2, %rd1], [%r1], %r3, [%r4];",
    f"{_RED}.counted::bytes.relaxed.sys.min.s64 [%r2, %rd1, %rd2], [%r1], %r3, [%r4];",
    f"{_PULL}.add.u32.sync [%r1], [%r2, %rd1], %r3, [%r4], 0xffffffff;",
    f"{_PULL}.add.acc::f32.f16.sync [%r1], [%r2, %rd1], %r3, [%r4], 0xffffffff;",
    f"{_PULL}.max.bf16.sync [%r1], [%r2, %rd1], %r3, [%r4], 0xffffffff;",
)
_SEEN = "mbarrier::report::validity"
_MAP = "[%rd1, {%r2, %r3, %r4}]"
_MMA = "tcgen05.mma.cta_group::1.kind::"
_LANES = "{%r1, %r2, %r3, %r4}"
RUBIN = (  # PTX 9.4 on sm_107
    f"cp.async.bulk.shared::cta.global.{BAR}.{_SEEN}::per_16bytes::8000 [%r1], [%rd1], %r2, [%r3];",
    f"cp.async.bulk.tensor.3d.shared::cta.global.{BAR}.{_SEEN}::per_element::ff [%r1], {_MAP}, [%r3];",
    f"cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.{BAR}.{_SEEN}::per_16bytes::8.multicast::cluster::32b "
    f"[%r1], {_MAP}, [%r3], {{%h1, %h1}}, %r4;",
    f"cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs::w.bulk_group {_MAP}, [%r1];",
    f"cp.reduce.async.bulk.tensor.3d.global.shared::cta.xor.im2col_no_offs::w.bulk_group {_MAP}, [%r1];",
    f"{_MMA}f16.collector::b::fill [%r1], %rd1, %rd2, %r2, {_LANES}, %p1, 3;",
    f"{_MMA}tf32.collector::a::lastuse.collector::b::use [%r1], %rd1, %rd2, %r2, %p1;",
    f"{_MMA}f8f6f4.ashift.collector::b::lastuse [%r1], [%r3], %rd2, %r2, %p1;",
    f"{_MMA}mxf8f6f4.block_scale.collector::b::fill [%r1], %rd1, %rd2, %r2, [%r3], [%r4], %p1;",
    f"{_MMA}mxf4nvf4.block_scale.block16.collector::b::use [%r1], [%r4], %rd2, %r2, [%r3], [%r4], %p1;",
    f"{_MMA}ti16.collector::a::fill.collector::b::discard [%r1], %rd1, %rd2, %r2, %p1;",
    "tcgen05.mma.ws.cta_group::1.kind::ti16.collector::b2::fill [%r1], %rd1, %rd2, %r2, %p1, %rd2;",
    f"{_MMA}f8f6f4.decompress::lut::b.collector::b::fill [%r1], %rd1, %rd2, [%r4], %r2, {_LANES}, %p1;",
    f"{_MMA}mxf8f6f4.block_scale.decompress::lut::b.block32 [%r1], [%r3], %rd2, [%r4], %r2, [%r3], [%r4], %p1;",
    f"cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.{BAR}.multicast::cluster::32b [%r1], "
    "[%rd1, {%r2, %r3, %r4, %r1, %r2}], [%r3], %r4;",
)
PAIRS = tuple(x.replace("group::1", "group::2").replace(f"{_LANES}, ", "") for x in RUBIN[5:11])
_LINE = re.compile(r"/\*[0-9a-f]{4,5}\*/\s+(?:@\S+ )?((?:UBLK|UTMA|UTC|LDGMC|SYNCS|USYNCS|CCTL|FENCE|\.text|BPT).*?) ;")

_NUMBER = re.compile(r"(?<=U[RP])\d+")


def forms(cubin: Path, kernels: int, traps: bool) -> list[list[str]]:
    """Of each kernel the mnemonics of copies and of the sync unit, each once; those of tensor cores with their
    operands, without numbers of registers. The two names of the sync unit's instructions are one."""
    out: list[list[str]] = [[] for _ in range(kernels)]
    for text in oracle.nvdisasm(cubin, "-c").split(".section\t.text.k")[1:]:
        found = {
            _NUMBER.sub("", m[1]) if m[1][:3] == "UTC" else m[1].split(" ")[0].removeprefix("U")
            for m in _LINE.finditer(text)
        }
        out[int(re.match(r"\d+", text)[0])] = sorted(f for f in found if traps or f[:3] != "BPT")  # type: ignore[index]
    return out


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("sm_90a", COPIES),
        ("sm_107a", COPIES + FABRICS),
        ("sm_107f", RUBIN),
        ("sm_107a", PAIRS),
        ("sm_100a", FABRICS),
        ("sm_120a", FABRICS[:4]),
    ],
)
def test_as_ptxas(target: str, lines: tuple[str, ...], tmp_path: Path) -> None:
    oracle.require(oracle.NEWER, "nvdisasm")
    names = ".reg .pred %p1; .reg .b16 %h1; .reg .b32 %r<5>; .reg .b64 %rd<4>;"
    loads = "".join(f"ld.param.b32 %r{k}, [p+{4 * k}];" for k in range(1, 5))
    loads += "ld.param.b64 %rd1, [p+24]; ld.param.b64 %rd2, [p+32]; cvt.u16.u32 %h1, %r3; setp.ne.u32 %p1, %r3, 0;"
    kernels = [f".entry k{n}(.param .b8 p[40]) {{ {names} {loads} {line} ret; }}" for n, line in enumerate(lines)]
    text = "\n".join([".version 9.5", f".target {target}", ".address_size 64", *kernels])
    cubin = oracle.compile_ptx(text, target, tool=oracle.NEWER)
    assert isinstance(cubin, Path), cubin
    own = tmp_path / "own.cubin"
    own.write_bytes(compile_ptx(text, target))
    traps = target == "sm_120a"  # ptxas's code of pull-reductions traps if a thread is missing
    assert not traps or ours(text.encode(), ["-arch", target]).taken  # through streams, which are checked
    want, got = forms(cubin, len(lines), traps), forms(own, len(lines), traps)
    for line, a, b in zip(lines, want, got, strict=True):
        assert a == b and a, line


def test_bytes_of_ordered_copies() -> None:
    """To shared memory, with bytes that may lie outside, and back; ptxas copies all bytes, and so does orias."""
    text = f""".version 9.3
.target sm_90
.address_size 64
.entry k(.param .u64 p) {{ .reg .pred %q; .reg .b64 %p, %t; .shared .align 16 .b8 data[64]; .shared .b64 bar;
ld.param.u64 %p, [p]; mbarrier.init.shared.b64 [bar], 1; fence.proxy.async.shared::cta;
mbarrier.arrive.expect_tx.shared.b64 %t, [bar], 64;
cp.async.bulk.relaxed.gpu.shared::cta.global.{BAR}.ignore_oob.b128 [data], [%p], 64, 3, 5, [bar];
WAIT: mbarrier.try_wait.shared.b64 %q, [bar], %t; @!%q bra WAIT;
cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group.b128 [%p+64], [data], 64;
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret; }}
"""
    for run in (
        lambda data: Device(compile_ptx(text, "sm_90")).launch("k", 1, 1, [data], strict=True),
        lambda data: Module(text, "sm_90").launch("k", (1, 1, 1), (1, 1, 1), [data]),
    ):
        data = np.zeros(128, np.uint8)
        data[:64] = np.arange(64) + 1
        run(data)
        assert data[64:].tolist() == list(range(1, 65))
