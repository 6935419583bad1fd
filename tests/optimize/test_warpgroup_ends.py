"""Groups of warpgroup products end as often as the program commits them: a wait with a count relies on it."""

from __future__ import annotations

import pytest

from ir_format import isa
from ir_format.model import Imm, Inst
from orchestrator.api import compile_ptx
from stages.disasm.cubin import read_cubin
from stages.disasm.listing import decode_section
from tests import oracle

_KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 da, .param .u64 db, .param .u32 n) {
.reg .b32 %i, %n; .reg .f32 %f<8>; .reg .b64 %p, %a, %b; .reg .pred %q;
ld.param.u64 %p, [p]; ld.param.u64 %a, [da]; ld.param.u64 %b, [db]; ld.param.u32 %n, [n];
ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%p]; mov.u32 %i, 0;
BODY
st.global.v4.f32 [%p], {%f0, %f1, %f2, %f3};
ret; }
"""
_NAME = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
_FIRST = _NAME + " {%f0, %f1, %f2, %f3}, %a, %b, 1, 1, 1, 0, 0;\n"
_DEAD = _NAME + " {%f4, %f5, %f6, %f7}, %b, %a, 0, 1, 1, 0, 0;\n"
_NEXT = _NAME + " {%f0, %f1, %f2, %f3}, %b, %a, 1, 1, 1, 0, 0;\n"
_FENCE, _COMMIT = "wgmma.fence.sync.aligned;\n", "wgmma.commit_group.sync.aligned;\n"
_LOOP = "add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %n; @%q bra L;\n"
_OTHER = "wgmma.wait_group.sync.aligned 1;\n"
_ALL = "wgmma.wait_group.sync.aligned 0;\n"
#: Body -> products (o: the group goes on, e: it ends) and waits of the cubin, in order.
CASES = {
    "a commit behind a loop": (f"{_FENCE}L:\n{_FIRST}{_LOOP}{_COMMIT}{_NEXT}{_COMMIT}{_OTHER}{_ALL}", "oee10"),
    "a product that nothing reads ends the group": (
        f"{_FENCE}{_FIRST}{_DEAD}{_COMMIT}{_NEXT}{_COMMIT}{_OTHER}{_ALL}", "ee10"),
    "a group of nothing that is read": (
        f"{_FENCE}{_FIRST}{_COMMIT}{_DEAD}{_COMMIT}{_NEXT}{_COMMIT}{_OTHER}{_ALL}", "eee10"),
    "an empty group": (f"{_FENCE}{_FIRST}{_COMMIT}{_COMMIT}{_OTHER}{_ALL}", "ee10"),
}  # fmt: skip


def _order(cubin: bytes) -> str:
    def of(i: Inst) -> str:
        if i.op == "HGMMA":
            return "e" if "gsb0" in str(i.srcs[-1]) else "o"
        return str(next(o.value for o in i.srcs if isinstance(o, Imm)))

    (section,) = read_cubin(cubin).sections
    insts = [d.inst for d in decode_section(section, isa.target(90)) if d.inst is not None]
    return "".join(of(i) for i in insts if i.op == "HGMMA" or (i.op == "WARPGROUP" and "DEPBAR" in i.mods))


@pytest.mark.parametrize("name", CASES)
def test_every_commit_ends_a_group(name: str) -> None:
    body, wanted = CASES[name]
    text = _KERNEL.replace("BODY", body.rstrip())
    assert _order(compile_ptx(text, "sm_90a")) == wanted
    if oracle.find("ptxas") is not None and "loop" not in name:
        made = oracle.compile_ptx(text, "90a")
        assert not isinstance(made, oracle.ToolError)
        assert _order(made.read_bytes()) == wanted
