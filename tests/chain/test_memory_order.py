"""Communication between threads through memory: exchanges between the lanes of a warp, flags that threads wait for,
reads after an acquire."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from orchestrator.api import compile_ptx
from stages.simulate import Device

HEAD = """.version 8.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 out)
{{
.reg .b32 %r<20>;
.reg .b64 %d<8>;
.reg .pred %p<4>;
.shared .align 16 .b8 s[1024];
ld.param.u64 %d1, [out];
cvta.to.global.u64 %d1, %d1;
mov.u32 %r1, %tid.x;
mul.wide.u32 %d2, %r1, 4;
add.s64 %d2, %d1, %d2;
shl.b32 %r2, %r1, 2;
mov.u32 %r3, s;
add.u32 %r2, %r2, %r3;
"""
ARCHES = ("sm_75", "sm_80", "sm_90", "sm_120")


def kernel(arch: str, body: str) -> str:
    return HEAD.format(target="sm_75") + body + "ret;\n}\n"


def run(
    arch: str, body: str, data: NDArray[np.uint32], block: int, level: int = 3, strict: bool = False
) -> NDArray[np.uint32]:
    device = Device(compile_ptx(kernel(arch, body), arch, {"opt-level": level}))
    out = data.copy()
    device.launch("k", 1, block, [out], limit=200_000, strict=strict)
    return out


EXCHANGE = """
ld.global.u32 %r4, [%d2];
st.shared.u32 [%r2], %r4;
bar.warp.sync -1;
xor.b32 %r5, %r2, 32;
ld.shared.u32 %r6, [%r5];
bar.warp.sync -1;
mad.lo.u32 %r7, %r6, 3, %r4;
st.shared.u32 [%r2], %r7;
bar.warp.sync -1;
xor.b32 %r8, %r2, 16;
ld.shared.u32 %r9, [%r8];
add.u32 %r7, %r7, %r9;
st.global.u32 [%d2], %r7;
bar.warp.sync -1;
xor.b32 %r10, %r1, 1;
mul.wide.u32 %d3, %r10, 4;
add.s64 %d3, %d1, %d3;
ld.global.u32 %r11, [%d3];
st.global.u32 [%d2+128], %r11;
"""


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("level", "strict"), [(0, False), (1, False), (3, False), (3, True)])
def test_lanes_see_what_was_stored_before_they_met(arch: str, level: int, strict: bool) -> None:
    """The warp is converged all the time, so that no WARPSYNC is needed; the order of memory is."""
    lane = np.arange(32, dtype=np.uint32)
    a = (lane * 2654435761).astype(np.uint32)
    b = (a[lane ^ 8] * np.uint32(3) + a).astype(np.uint32)
    c = (b + b[lane ^ 4]).astype(np.uint32)
    got = run(arch, EXCHANGE, np.concatenate([a, np.zeros(32, np.uint32)]), 32, level, strict)
    assert (got == np.concatenate([c, c[lane ^ 1]])).all()


FLAG = """
setp.lt.u32 %p1, %r1, 32;
@%p1 bra WAIT;
st.shared.u32 [s+512], 77;
membar.cta;
{store} [s+256], 1;
bra END;
WAIT:
{load} %r4, [s+256];
setp.ne.u32 %p2, %r4, 1;
@%p2 bra WAIT;
ld.shared.u32 %r5, [s+512];
st.global.u32 [%d2], %r5;
END:
"""


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("store", "load"),
    [
        ("st.volatile.shared.u32", "ld.volatile.shared.u32"),
        ("st.relaxed.cta.shared.u32", "ld.relaxed.cta.shared.u32"),
        ("st.release.cta.shared.u32", "ld.acquire.cta.shared.u32"),
    ],
)
def test_a_flag_in_shared_memory_is_read_until_it_is_set(arch: str, store: str, load: str) -> None:
    """The first warp enters its loop before the second has stored anything; a load moved out of the loop would never
    see it."""
    zero = "st.shared.u32 [s+256], 0;\nbar.sync 0;\n"
    got = run(arch, zero + FLAG.format(store=store, load=load), np.zeros(64, np.uint32), 64)
    assert (got[:32] == 77).all()


def lines(arch: str, body: str) -> list[str]:
    """The instructions as text, in order."""
    from ir_format.text import print_inst
    from stages.check.streams import Stream

    streams: dict[str, bytes] = {}
    compile_ptx(kernel(arch, body), arch, streams=streams)
    return [
        print_inst(i, None)
        for u in Stream(streams["schedule"]).units()
        for f in u.functions
        for b in f.blocks
        for i in b.insts
    ]


def place(text: list[str], *parts: str) -> int:
    (found,) = [n for n, line in enumerate(text) if all(p in line for p in parts)]
    return found


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    "acquire",
    [
        "atom.acquire.cta.shared.exch.b32 %r4, [s], 1;",
        "atom.acq_rel.cta.shared.add.u32 %r4, [s], %r1;",
        "ld.acquire.cta.shared.u32 %r4, [s];",
        "ld.acquire.cta.global.u32 %r4, [%d1+64];",
    ],
)
def test_nothing_is_read_before_an_acquire_has_its_value(arch: str, acquire: str) -> None:
    body = (
        f"{acquire}\nld.global.u32 %r5, [%d1+2048];\nld.shared.u32 %r6, [s+768];\nadd.u32 %r7, %r5, "
        f"%r6;\nadd.u32 %r7, %r7, %r4;\nst.global.u32 [%d1], %r7;\n"
    )
    text = lines(arch, body)
    late = [place(text, "LDG", "0x800"), place(text, "LDS", "0x300")]
    (wait,) = [n for n, line in enumerate(text) if line.lstrip().startswith("NOP") and n < min(late)]
    first = next(n for n, line in enumerate(text) if "ATOMS" in line or "LDS" in line or "LDG" in line)
    assert first < wait < min(late)


@pytest.mark.parametrize("arch", ARCHES)
def test_volatile_loads_of_neighbours_are_not_merged(arch: str) -> None:
    body = (
        "shl.b32 %r2, %r1, 4;\nadd.u32 %r2, %r2, %r3;\nld.volatile.shared.u32 %r4, "
        "[%r2];\nld.volatile.shared.u32 %r5, [%r2+4];\n"
        "ld.volatile.shared.u32 %r6, [%r2+8];\nld.volatile.shared.u32 %r7, "
        "[%r2+12];\nld.volatile.shared.u32 %r8, [%r2+12];\nadd.u32 %r4, %r4, %r5;\nadd.u32 %r6, %r6, "
        "%r7;\nadd.u32 %r4, %r4, %r6;\n"
        "st.global.u32 [%d2], %r4;\n"
    )
    assert sum("LDS" in line for line in lines(arch, body)) == 5  # including the one that nothing reads
