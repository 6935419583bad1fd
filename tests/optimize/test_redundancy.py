"""Redundant loads and dead stores: small kernels and the accesses that remain."""

from __future__ import annotations

import pytest

from ir_format.model import RZ
from tests.optimize.test_passes import HEAD, of, optimized

SMS = ("sm_75", "sm_120")
SHARED = ".shared .align 16 .b8 s[256]; .shared .align 16 .b8 t[256]; mov.u32 %r9, s; "


@pytest.mark.parametrize("target", SMS)
@pytest.mark.parametrize(
    ("body", "loads", "stores"),
    [
        # the same word twice; with a store to other bytes of the same base between; with one that may alias
        (
            "ld.global.u32 %r3, [%rd3]; ld.global.u32 %r4, [%rd3]; add.u32 %r3, %r3, %r4; st.global.u32 [%rd3+4], %r3;",
            1,
            1,
        ),
        (
            (
                "ld.global.u32 %r3, [%rd3]; st.global.u32 [%rd3+4], %r3; ld.global.u32 %r4, [%rd3]; "
                "st.global.u32 [%rd3+8], %r4;"
            ),
            1,
            2,
        ),
        (
            (
                "ld.global.u32 %r3, [%rd3]; st.global.u32 [%rd1], %r3; ld.global.u32 %r4, [%rd3]; "
                "st.global.u32 [%rd3+8], %r4;"
            ),
            2,
            2,
        ),
        # read-only data does not change
        (
            (
                "ld.global.nc.u32 %r3, [%rd3]; st.global.u32 [%rd1], %r3; ld.global.nc.u32 %r4, [%rd3]; "
                "st.global.u32 [%rd1+8], %r4;"
            ),
            1,
            2,
        ),
        # words of a vector; a narrow load is no part of a word
        (
            (
                "ld.global.v2.u32 {%r3, %r4}, [%rd3]; ld.global.u32 %r5, [%rd3+4]; add.u32 %r3, %r3, %r5; "
                "st.global.u32 [%rd1], %r3;"
            ),
            1,
            1,
        ),
        (
            "ld.global.u32 %r3, [%rd3]; ld.global.u8 %r4, [%rd3]; add.u32 %r3, %r3, %r4; st.global.u32 [%rd1], %r3;",
            2,
            1,
        ),
        # forwarding; not across a barrier, not of volatile accesses
        ("st.global.u32 [%rd3], %r1; ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd3+4], %r4;", 0, 2),
        ("st.global.u32 [%rd3], %r1; bar.sync 0; ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd3+4], %r4;", 1, 2),
        ("st.global.u32 [%rd3], %r1; ld.volatile.global.u32 %r4, [%rd3]; st.global.u32 [%rd3+4], %r4;", 1, 2),
        ("st.global.u32 [%rd3], %r1; membar.gl; ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd3+4], %r4;", 1, 2),
        (
            (
                "st.global.u32 [%rd3], %r1; atom.global.add.u32 %r5, [%rd1], 1; ld.global.u32 %r4, [%rd3]; "
                "st.global.u32 [%rd3+4], %r4;"
            ),
            1,
            2,
        ),
        # dead stores: overwritten, partly overwritten, with a load that may read in between, volatile
        ("st.global.u32 [%rd3], %r1; st.global.u32 [%rd3], %r2;", 0, 1),
        ("st.global.u32 [%rd3], %r1; st.global.v2.u32 [%rd3], {%r2, %r1};", 0, 1),
        ("st.global.u32 [%rd3], %r1; st.global.u8 [%rd3], %r2;", 0, 2),
        ("st.global.u32 [%rd3], %r1; ld.global.u32 %r4, [%rd1]; st.global.u32 [%rd3], %r4;", 1, 2),
        ("st.global.u32 [%rd3], %r1; ld.global.u32 %r4, [%rd3+4]; st.global.u32 [%rd3], %r4;", 1, 1),
        ("st.global.u32 [%rd3], %r1; bar.sync 0; st.global.u32 [%rd3], %r2;", 0, 2),
        ("st.volatile.global.u32 [%rd3], %r1; st.global.u32 [%rd3], %r2;", 0, 2),
        # under a guard: hidden by a store under the same guard or none, not the other way
        ("setp.lt.u32 %p1, %r1, %r2; @%p1 st.global.u32 [%rd3], %r1; @%p1 st.global.u32 [%rd3], %r2;", 0, 1),
        ("setp.lt.u32 %p1, %r1, %r2; @%p1 st.global.u32 [%rd3], %r1; st.global.u32 [%rd3], %r2;", 0, 1),
        ("setp.lt.u32 %p1, %r1, %r2; st.global.u32 [%rd3], %r1; @%p1 st.global.u32 [%rd3], %r2;", 0, 2),
        # after a join: known if no path to it stores
        (
            (
                "ld.global.u32 %r3, [%rd3]; setp.lt.u32 %p1, %r3, %r2; @%p1 bra X; bar.sync 0; "
                "atom.shared.add.u32 %r5, [%r9], 1; X: ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd1], %r4;"
            ),
            2,
            1,
        ),
    ],
)
def test_redundant_accesses_to_global_memory(body: str, loads: int, stores: int, target: str) -> None:
    unit, _ = optimized(SHARED + HEAD + body + " ret;", target)
    assert (len(of(unit, "LDG")), len(of(unit, "STG"))) == (loads, stores)


@pytest.mark.parametrize("target", SMS)
def test_loads_are_redundant_after_a_join(target: str) -> None:
    """Neither arm stores: loads in and after them use the first one's value; a loop that stores invalidates it."""
    long = "xor.b32 %r5, %r5, %r1; mul.lo.s32 %r5, %r5, %r5;" * 6
    body = (
        f"ld.global.u32 %r3, [%rd3]; mov.u32 %r5, %r3; setp.lt.u32 %p1, %r3, %r2; @%p1 bra X; "
        f"ld.global.u32 %r4, [%rd3]; add.u32 %r5, %r4, %r5; {long} X: ld.global.u32 %r6, [%rd3]; add.u32 %r5, "
        f"%r5, %r6; st.global.u32 [%rd1], %r5; ret;"
    )
    unit, stats = optimized(HEAD + body, target)
    assert len(of(unit, "LDG")) == 1 and stats["loads replaced"] == 2
    loop = (
        "mov.u32 %r5, 0; ld.global.u32 %r3, [%rd3]; L: ld.global.u32 %r4, [%rd3]; add.u32 %r5, %r5, %r4; "
        "st.global.u32 [%rd1], %r5; setp.lt.u32 %p1, %r5, %r2; @%p1 bra L; st.global.u32 [%rd1+64], %r3; ret;"
    )
    unit, stats = optimized(HEAD + loop, target)
    assert "loads replaced" not in stats


@pytest.mark.parametrize("target", SMS)
def test_symbols_do_not_alias(target: str) -> None:
    """A store to one shared variable does not affect what is known of another."""
    body = (
        "ld.shared.u32 %r3, [s+4]; st.shared.u32 [t+4], %r1; ld.shared.u32 %r4, [s+4]; add.u32 %r3, %r3, %r4; "
        "st.global.u32 [%rd3], %r3; ret;"
    )
    unit, _ = optimized(SHARED + HEAD + body, target)
    assert len(of(unit, "LDS")) == 1


@pytest.mark.parametrize("target", SMS)
def test_local_memory_dies_with_the_kernel(target: str) -> None:
    """A value stored to it and loaded again is forwarded; the stores are then dead."""
    body = (
        ".local .align 4 .b8 l[16]; mov.u64 %rd5, l; cvta.local.u64 %rd6, %rd5; cvta.to.local.u64 %rd5, %rd6; "
        "st.local.u32 [%rd5], %r1; st.local.u32 [%rd5+4], %r2; ld.local.u32 %r3, [%rd5+4]; "
        "st.global.u32 [%rd3], %r3; ret;"
    )
    unit, _ = optimized(body.replace("mov.u64", HEAD + "mov.u64", 1), target)
    assert not of(unit, "LDL") and not of(unit, "STL")
    assert of(unit, "STG")[0].srcs[-1] != RZ
