"""Addresses in initialisers: whole ones, single bytes of them (LLVM's packed structures), offsets of const variables.
Values in the simulator, relocations as ptxas's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.api import ChainError, compile_ptx
from stages.check.command import compile_elsewhere
from stages.simulate import Device
from stages.simulate.elfread import read_elf
from tests import oracle


def _bytes(x: str) -> str:
    return ", ".join([f"{0xFF << 8 * i:#X}({x})".replace("0X", "0x") for i in range(8)])


DATA = f"""
.const .align 4 .u32 first[3] = {{1, 2, 3}};
.const .align 4 .u32 c[4] = {{11, 22, 33, 44}};
.visible .global .align 4 .u32 p[4] = {{5, 6, 7, 8}};
.visible .global .align 1 .u8 packed[27] = {{12, {_bytes("generic(p)")}, 34, {_bytes("generic(c)+4")}, \
{_bytes("p+8")}, 56}};
.visible .global .align 8 .u64 whole[4] = {{generic(p)+4, p+12, generic(c), c+8}};
.visible .global .align 1 .u8 offset[3] = {{9, 0xFF(c+12), 0xFF00(c+12)}};
.const .align 8 .u64 inside[2] = {{generic(c)+12, c+4}};
"""
WORDS = {  # the expected words (the simulator has no generic addresses of constants)
    "packed 1": 5, "packed 18": 7, "whole 0": 6, "whole 1": 8, "whole 3": 33, "offset 1": 44, "inside 1": 22,
}  # fmt: skip


def _text(sm: str) -> str:
    out = [
        (
            f".version 8.7\n.target {sm}\n.address_size 64\n{DATA}\n.visible .entry k(.param .u64 out) {{ .reg "
            f".b64 %a, %d, %o; .reg .b32 %r; ld.param.u64 %o, [out];"
        )
    ]
    for i, key in enumerate(WORDS):
        name, at = key.split()
        if name in ("whole", "inside"):
            out.append(f"ld.{'const' if name == 'inside' else 'global'}.u64 %a, [{name}+{8 * int(at)}];")
        else:
            out.append("mov.u64 %a, 0;")
            for byte in range(2 if name == "offset" else 8):
                out.append(
                    f"ld.global.u8 %d, [{name}+{int(at) + byte}]; shl.b64 %d, %d, {8 * byte}; or.b64 %a, %a, %d;"
                )
        space = ".const" if key in ("whole 3", "offset 1", "inside 1") else ""
        out.append(f"ld{space}.u32 %r, [%a]; st.global.u32 [%o+{4 * i}], %r;")
    return "\n".join([*out, "ret; }\n"])


def _run(image: bytes) -> list[int]:
    out = np.zeros(len(WORDS), np.uint32)
    Device(image).launch("k", (1, 1, 1), (1, 1, 1), [out])
    return [int(x) for x in out]


@pytest.mark.parametrize("sm", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_values(sm: str) -> None:
    assert _run(compile_ptx(_text(sm), sm)) == list(WORDS.values())


def _rows(image: bytes) -> list[tuple[Any, ...]]:
    """(variable, offset in it, type, symbol, addend) of every relocation of data."""
    elf = read_elf(image)
    out = []
    for r in elf.relocations:
        for v in elf.symbols:
            if (
                v.section == r.target
                and v.size
                and v.value <= r.offset < v.value + v.size
                and elf.sections[r.target].name in (".nv.global.init", ".nv.constant3")
            ):
                out.append((v.name, r.offset - v.value, r.type, elf.symbols[r.symbol].name, r.addend or 0))
    return sorted(out)


@pytest.mark.oracle
@pytest.mark.parametrize("sm", ["sm_80", "sm_90"])
@pytest.mark.parametrize("object_", [False, True])
def test_relocations_are_those_of_ptxas(sm: str, object_: bool, tmp_path: Path) -> None:
    oracle.require("ptxas")
    path = tmp_path / "k.ptx"
    extra = f".func f() {{ ret; }}\n.visible .global .align 1 .u8 code[9] = {{1, {_bytes('f')}}};\n" if object_ else ""
    path.write_text(_text(sm) + extra)
    theirs = compile_elsewhere(oracle.find("ptxas"), path, sm, ["-c"] if object_ else [])  # type: ignore[arg-type]
    assert isinstance(theirs, bytes), theirs
    ours = compile_ptx(path.read_text(), sm, {"compile-only": 1} if object_ else {})
    assert len(_rows(ours)) > 25
    assert _rows(ours) == _rows(theirs)
    if not object_:
        assert _run(theirs) == list(WORDS.values())


def test_half_an_address_is_refused() -> None:
    """ptxas overwrites the bytes after it."""
    with pytest.raises(ChainError, match="32 bits of the address of 'p' are not supported"):
        compile_ptx(
            (
                ".version 8.7\n.target sm_80\n.address_size 64\n.global .u32 p;\n.visible .global .u32 q[2] = "
                "{p, 4};\n.visible .entry k() { ret; }\n"
            ),
            "sm_80",
        )
