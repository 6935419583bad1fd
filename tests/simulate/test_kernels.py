"""ptxas's cubins of the test kernels, run in the simulator, agree with numpy: this makes the simulator a judge."""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest

from stages.check.schedule_checker import check_bytes
from stages.simulate import Device
from tests import oracle
from tests.kernels import cases, cases_corpus
from tests.kernels.model import KernelSpec
from tests.kernels.run import compile_ptxas, ptx_for, run_launch

pytestmark = pytest.mark.oracle

WHOLE = ("80", "90", "120")
PART = ("75", "86", "89", "100")
PART_KERNELS = ("vadd", "saxpy", "reduce_sum", "matmul", "histogram", "switch10")


@functools.cache
def cubin(spec: KernelSpec, arch: str, options: tuple[str, ...] = ()) -> bytes:
    oracle.require("ptxas")
    result = compile_ptxas(ptx_for(spec, arch), arch, list(options))
    assert isinstance(result, bytes), result
    return result


def judge(spec: KernelSpec, arch: str, options: tuple[str, ...] = (), last: int = 0, **how: object) -> None:
    device = Device(cubin(spec, arch, options))
    for launch in spec.launches(0)[-last:]:
        wrong, stats = run_launch(device, launch, **how)
        assert not wrong, f"{spec.name} sm_{arch} {launch.label}: {wrong[:3]}"
        assert not stats.hazards, f"{spec.name} sm_{arch} {launch.label}: {stats.hazards[:3]}"


@pytest.mark.parametrize("arch", WHOLE)
@pytest.mark.parametrize("name", sorted(cases.CASES))
def test_main_kernels_of_ptxas(name: str, arch: str) -> None:
    judge(cases.CASES[name], arch)


@pytest.mark.parametrize("arch", PART)
@pytest.mark.parametrize("name", PART_KERNELS)
def test_a_sample_of_other_kernels_of_ptxas(name: str, arch: str) -> None:
    judge(cases.CASES[name], arch)


@pytest.mark.parametrize("name", sorted(cases.CASES))
def test_unoptimised(name: str) -> None:
    judge(cases.CASES[name], "90", ("-O0",), last=2)


@pytest.mark.parametrize("arch", ("80", "90", "120"))
@pytest.mark.parametrize("name", sorted(cases.CASES))
def test_ptxas_code_has_no_hazard_in_strict_mode(name: str, arch: str) -> None:
    """ptxas keeps every distance and every scoreboard wait: results stay right and no hazard shows, for all
    latencies."""
    for seed in (1, 2, 3):
        judge(cases.CASES[name], arch, last=1, strict=True, seed=seed)


@pytest.mark.parametrize("arch", ("80", "90"))
def test_code_that_drains(arch: str) -> None:
    """ptxas 13.5 at -O0 sets no scoreboard: every stall count is 0, which waits for the instruction, loads included."""
    oracle.require(oracle.NEWER)
    spec = cases.CASES["reduce_sum"]
    made = oracle.run_ptxas(ptx_for(spec, arch), arch, "-O0", tool=oracle.NEWER)
    assert not isinstance(made, oracle.ToolError)
    image = made.read_bytes()
    assert not check_bytes(image).findings
    wrong, stats = run_launch(Device(image), spec.launches(0)[-1], strict=True, seed=1)
    assert not wrong and not stats.hazards


def test_masks_of_comparisons() -> None:
    """VISET of sm_107, of words, against numpy."""
    oracle.require(oracle.NEWER)
    text = """.version 9.5
.target sm_107a
.address_size 64
.entry k(.param .u64 p) { .reg .b64 %p; .reg .b32 %a, %b, %d, %t; ld.param.u64 %p, [p]; mov.u32 %t, %tid.x;
mad.wide.u32 %p, %t, 16, %p; ld.global.u32 %a, [%p]; ld.global.u32 %b, [%p+4];
set.lt.u32.s32 %d, %a, %b; st.global.u32 [%p+8], %d; set.ge.u32.u32 %d, %a, %b; st.global.u32 [%p+12], %d; ret; }
"""
    made = oracle.compile_ptx(text, "107a", tool=oracle.NEWER)
    assert not isinstance(made, oracle.ToolError)
    data = np.random.default_rng(1).integers(-5, 5, (32, 4)).astype(np.int32)
    a, b = data[:, 0].copy(), data[:, 1].copy()
    Device(made.read_bytes()).launch("k", 1, 32, [data], strict=True)
    assert (data[:, 2] == np.where(a < b, -1, 0)).all()
    assert (data[:, 3] == np.where(a.view(np.uint32) >= b.view(np.uint32), -1, 0)).all()


@pytest.mark.parametrize("name", sorted(cases_corpus.CASES))
def test_corpus_strict(name: str) -> None:
    judge(cases_corpus.CASES[name], "90", last=1, strict=True, seed=3)


@pytest.mark.parametrize("name", ["vadd", "scan", "softmax"])
def test_lost_waits_are_caught(name: str) -> None:
    """Clear every wait mask of ptxas's code, one instruction at a time: the strict machine objects if the wait
    mattered."""
    spec = cases.CASES[name]
    device = Device(cubin(spec, "90"))
    launch = max(spec.launches(0), key=lambda candidate: run_launch(device, candidate)[1].instructions)
    _, profile = run_launch(device, launch, cycles=True)
    caught = total = 0
    for row in profile.cycles["instructions"]:  # the instructions that this launch executes
        index = row[1] // 16
        word = device.program.words[index]
        if not (word >> 116) & 63:
            continue
        device.program.words[index] = word & ~(63 << 116)
        device.program.insts[index] = None
        total += 1
        try:
            wrong, stats = run_launch(device, launch, strict=True, seed=2, limit=200_000)
            caught += bool(wrong or stats.hazards)
        except Exception as error:  # an access with a stale address
            assert type(error).__name__ == "SimError"
            caught += 1
        device.program.words[index] = word
        device.program.insts[index] = None
    # Some waits are covered by others.
    assert caught >= 0.8 * total, (caught, total)


def test_seeds_change_nothing() -> None:
    spec = cases.CASES["histogram"]
    device = Device(cubin(spec, "90"))
    for launch in spec.launches(0):
        for seed in (0, 1, 5):
            wrong, _ = run_launch(device, launch, seed=seed)
            assert not wrong


def test_simulation_rate() -> None:
    """At least 300,000 warp instructions per second on ALU-heavy code (usually ten times that)."""
    spec = cases.CASES["matmul"]
    device = Device(cubin(spec, "90"))
    n = 128
    a, b = (np.random.default_rng(i).random((n, n), np.float32) for i in (1, 2))
    c = np.zeros((n, n), np.float32)
    before = time.process_time()  # processor time: the machine may be busy
    stats = device.launch("matmul", (n // 16, n // 16), (16, 16), [a, b, c, n, n, n])
    took = time.process_time() - before
    assert np.allclose(c, a @ b, rtol=1e-4)
    assert stats.rate * stats.seconds > 300_000 * took
