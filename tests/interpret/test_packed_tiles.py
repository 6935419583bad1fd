"""Tiles of packed elements: both judges beside bytes that numpy unpacks."""

from __future__ import annotations

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.interpret.launch import Module
from stages.simulate import Device


@pytest.mark.parametrize(("form", "bits"), (("b4x16_p64", 4), ("b6x16_p32", 6)))
def test_elements_become_low_bits_of_bytes(form: str, bits: int) -> None:
    """Lane 4 g + t has elements 4 t to 4 t + 3 of row g. The low bits: CUTLASS shifts four-bit floats by two more for a
    product, which wants them in the middle of a byte."""
    text = f""".version 8.8
.target sm_100a
.address_size 64
.entry k(.param .u64 p) {{ .reg .b64 %p, %q; .reg .b32 %r<8>; .shared .align 16 .b8 s[512];
ld.param.u64 %p, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %q, %r0, 32; add.u64 %p, %p, %q;
ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%p]; mov.u32 %r5, s; mad.lo.u32 %r5, %r0, 16, %r5;
st.shared.v4.b32 [%r5], {{%r1, %r2, %r3, %r4}}; bar.warp.sync -1;
ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.{form} {{%r1, %r2, %r3, %r4}}, [%r5];
st.global.v4.b32 [%p+16], {{%r1, %r2, %r3, %r4}}; ret; }}
"""
    given = np.random.default_rng(5).integers(0, 256, (32, 16)).astype(np.uint8)
    rows = np.array(
        [[int.from_bytes(row.tobytes(), "little") >> bits * i & (1 << bits) - 1 for i in range(16)] for row in given]
    )
    want = rows.astype(np.uint8).reshape(4, 32, 4).transpose(1, 0, 2).reshape(32, 16)
    for run in (
        lambda data: Device(compile_ptx(text, "sm_100a")).launch("k", 1, 32, [data], strict=True),
        lambda data: Module(text, "sm_100a").launch("k", (1, 1, 1), (32, 1, 1), [data]),
    ):
        data = np.zeros((32, 32), np.uint8)
        data[:, :16] = given
        run(data)
        assert (data[:, 16:] == want).all()
