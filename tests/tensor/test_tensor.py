"""Products of warpgroups and copies by tensor maps in the simulator and the interpreter, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ir_format.hazards.model import file_of, hazards
from ir_format.model import Inst
from orchestrator.api import compile_ptx
from stages.simulate.argspec import ArgError, parse_arg
from stages.simulate.device import Device
from stages.simulate.program import isa_decoder
from stages.simulate.tensor_maps import tensor_map
from tests import oracle
from tests.tensor.cases import KERNELS
from tests.tensor.run import cubin, execute

#: The kernels of the suite; the command (tests.tensor.run) runs the others.
QUICK = ("gemm_special", "gemm_major", "gemm_split", "attention", "gemm5_f16", "gemm5_major")


@pytest.mark.parametrize("name", QUICK)
def test_our_code_matches_numpy(name: str) -> None:
    """Our cubin gives numpy's values in the simulator."""
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(1)), file, "ours") == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["gemm_bf16", "gemm_tf32", "gemm_special", "gemm5_f16", "gemm5_major"])
def test_code_of_ptxas_matches_numpy(name: str) -> None:
    """So does ptxas's, whose code relies on measured properties of the machine."""
    oracle.require("ptxas")
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(2)), file, "ptxas") == []


@pytest.mark.parametrize("name", ["gemm_e4m3", "gemm_s8", "gemm_major", "gemm_split", "gemm5_f16", "gemm5_major"])
def test_interpreter_matches_numpy(name: str) -> None:
    """So does the interpreter."""
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(3)), file, "interpreter") == []


class _Without:
    """A decoder in which some instructions do nothing."""

    def __init__(self, *names: str) -> None:
        self.names, self.gone, self.decode = names, 0, isa_decoder(90)

    def __call__(self, word: int, address: int) -> Inst:
        inst = self.decode(word, address)
        if ".".join((inst.op, *inst.mods)).startswith(self.names):
            self.gone += 1
            return Inst("NOP", (), (), (), None, inst.line, ctl=inst.ctl)
        return inst


@pytest.mark.parametrize(
    ("name", "without", "seen"),
    [
        ("gemm_split", "WARPGROUP.DEPBAR", "in flight, read by"),
        ("gemm_split", "WARPGROUP.ARRIVE", "not handed over to"),
        ("gemm_special", "WARPGROUP.DEPBAR", "in flight, read by"),
    ],
)
def test_strict_mode_misses_waits(name: str, without: str, seen: str) -> None:
    """Without a wait for products, or without the ARRIVE that makes registers available to them, strict mode reports
    the accesses; with them it is silent."""
    file, small, _ = KERNELS[name]
    assert execute(small(np.random.default_rng(4)), file, "ours", True) == []
    decoder = _Without(without)
    case = small(np.random.default_rng(4))
    device = Device(cubin(file, "ours"), decoder)
    stats = device.launch(case.kernel, case.grid, case.block, case.args, shared=case.shared, strict=True, limit=100_000)
    assert decoder.gone and any(seen in x for x in stats.hazards)


_HALVES = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
.shared .align 4 .b32 at;
.reg .b32 %a, %t, %r<4>, %s<4>; .reg .b64 %o, %x;
mov.u32 %t, %tid.x;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [at], 32;
ld.shared.b32 %a, [at];
mad.lo.u32 %r0, %t, 100, 0; mad.lo.u32 %r1, %t, 100, 1; mad.lo.u32 %r2, %t, 100, 2; mad.lo.u32 %r3, %t, 100, 3;
tcgen05.st.sync.aligned.16x32bx2.x4.b32 [%a], 8, {%r0, %r1, %r2, %r3};
tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.16x32bx2.x4.b32 {%s0, %s1, %s2, %s3}, [%a], 8;
tcgen05.wait::ld.sync.aligned;
ld.param.u64 %o, [out]; mul.wide.u32 %x, %t, 16; add.u64 %o, %o, %x;
st.global.v4.b32 [%o], {%s0, %s1, %s2, %s3};
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 32;
ret;
}
"""


@pytest.mark.oracle
def test_two_loads_of_half_a_warp_under_way() -> None:
    """Strict mode joins what two loads of tensor memory write to the threads of their halves; ptxas waits for the last
    alone."""
    oracle.require("ptxas")
    got = oracle.compile_ptx(_HALVES, "100a")
    assert not isinstance(got, oracle.ToolError), got
    for image in (got.read_bytes(), compile_ptx(_HALVES, "sm_100a", {})):
        for seed in range(4):
            out = np.zeros((32, 4), np.uint32)
            assert not Device(image).launch("k", 1, 32, [out], strict=True, seed=seed).hazards
            assert out.tolist() == [[100 * t + i for i in range(4)] for t in range(32)]


_FLAG = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n, .param .u64 o) .maxntid 128 {
.reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<4>; .reg .pred %p<3>;
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n]; ld.param.u64 %rd3, [o]; mov.u32 %r2, 0;
mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
wgmma.fence.sync.aligned;
L: setp.ne.u32 %p1, %r2, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd2, %p1, 1, 1, 0, 0;
add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %r1; @%p2 bra L;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; st.global.v4.f32 [%rd3], {%f0, %f1, %f2, %f3}; ret; }
"""


def test_the_flag_of_a_product_comes_in_time() -> None:
    """UISETP writes the uniform predicate that says whether sums count at least 11 cycles before the product (ptxas
    13.0 keeps exactly that in four loops like this one); at 6, as for other operands, the product may read the old
    one."""
    program = Device(compile_ptx(_FLAG, "sm_90a", {}, name="k.ptx")).program
    table = hazards("sm_90a")
    products = [x for x in map(program.inst, range(len(program.words))) if x.op == "HGMMA" and x.dsts]
    flags = [r for x in products for r in table.access(x).reads if file_of(r[0]) == "UP"]
    assert flags
    for _, role, _ in flags:
        assert table.cell("raw", "UP", "udp", role).cycles == 11


def test_maps_on_the_command_line() -> None:
    """orias-run reads the maps that a program makes, and reports mistakes."""
    generator = np.random.default_rng(0)
    got, buffers = parse_arg("map:f16[128x256]=iota,box=64x32,swizzle=128,steps=1x2,type=bf16", generator)
    tensor = np.arange(128 * 256).astype(np.float16).reshape(128, 256)
    want, _ = tensor_map(tensor, (64, 32), swizzle=128, steps=(1, 2), type_="bf16")
    assert got == want and np.array_equal(buffers[0], tensor)
    for text, why in (
        ("map:f16[8x8],boxx=8", "no 'boxx=8'"),
        ("map:f16[8x8]", "needs box"),
        ("map:f16[8x8],box=4x4", "16"),
    ):
        with pytest.raises(ArgError, match=why):
            parse_arg(text, generator)
