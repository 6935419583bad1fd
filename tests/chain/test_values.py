"""The sixteen kernels give the right values: our cubins in the simulator against numpy, several launches each.

Hazards are judged too: at -O3 the simulator runs in strict mode, where a value that is read too early is the stale one.
"""

from __future__ import annotations

import pytest

from tests.chain.corpus import FULL, PARTIAL, cubin, kernels
from tests.kernels.cases import CASES
from tests.kernels.run import judge

SUBSET = ("vadd", "saxpy", "reduce_sum", "matmul", "histogram", "switch10")


@pytest.mark.parametrize("kernel", kernels())
@pytest.mark.parametrize("arch", FULL)
def test_optimized(kernel: str, arch: str) -> None:
    spec = CASES[kernel]
    assert len(spec.launches(0)) >= 3
    assert judge(spec, cubin(kernel, arch), strict=True) == []


@pytest.mark.parametrize("kernel", kernels())
@pytest.mark.parametrize("arch", FULL)
def test_unoptimized(kernel: str, arch: str) -> None:
    assert judge(CASES[kernel], cubin(kernel, arch, 0)) == []


@pytest.mark.parametrize("arch", PARTIAL)
def test_other_targets(arch: str) -> None:
    for kernel in SUBSET:
        assert judge(CASES[kernel], cubin(kernel, arch), strict=True) == [], kernel


@pytest.mark.parametrize("kernel", ["matmul", "mandelbrot"])
@pytest.mark.parametrize("arch", FULL)
def test_with_24_registers(kernel: str, arch: str) -> None:
    """24 registers force spills in at least one of them; the values stay right."""
    assert judge(CASES[kernel], cubin(kernel, arch, 3, 24), strict=True) == []


def test_a_wrong_cubin_is_noticed() -> None:
    """The judge can fail: it detects another kernel's answer, and one flipped opcode bit."""
    import io

    from elftools.elf.elffile import ELFFile

    data = bytearray(cubin("vadd", "sm_90"))
    text = next(s for s in ELFFile(io.BytesIO(bytes(data))).iter_sections() if s.name == ".text.vadd")
    at = text["sh_offset"]
    for n in range(text["sh_size"] // 16):
        word = int.from_bytes(data[at + 16 * n : at + 16 * n + 16], "little")
        if word & 0xFFF == 0x221:  # FADD R, R, R: negate the second source
            data[at + 16 * n : at + 16 * n + 16] = (word | 1 << 63).to_bytes(16, "little")
            break
    else:
        pytest.fail("no FADD in vadd")
    assert judge(CASES["vadd"], bytes(data)) != []
