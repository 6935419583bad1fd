"""Programs that ptxas compiles without its ABI, and arguments in registers that are wider or narrower than a word:
values by hand, verdicts as ptxas's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from orchestrator.api import compile_ptx
from stages.plumbing.front_end import parse_to_stream
from stages.simulate import Device
from tests import oracle

HEAD = ".version {version}\n.target {target}\n"
PREDICATE = """.func (.reg .u32 a, .reg .pred b, .reg .pred n) f(.reg .u32 x, .reg .pred c, .reg .u16 h)
{ .reg .u32 t; cvt.u32.u16 t, h; add.u32 a, x, t; setp.eq.u32 b, 0, 0; not.pred n, c; ret; }
.visible .entry k(.param .u64 in, .param .u64 out)
{ .reg .u64 i, o; .reg .u32 t, u; .reg .u16 h; .reg .pred p, q, c; ld.param.u64 i, [in]; ld.param.u64 o, [out];
ld.global.u32 t, [i]; setp.gt.u32 c, t, 40; cvt.u16.u32 h, t;
call (u, p, q), f, (t, c, h);
st.global.u32 [o], u; @p st.global.u32 [o+4], 123; @q st.global.u32 [o+8], 7; @!q st.global.u32 [o+12], 8; ret; }
"""
VECTORS = """.func (.reg .v4 .u32 r) f(.reg .u32 a, .reg .v4 .u32 x, .reg .v2 .u32 y,
.reg .v2 .u16 z, .reg .v4 .b8 w, .reg .u32 last)
{ .reg .u32 t, u; add.u32 r.x, x.x, y.x; add.u32 r.y, x.y, y.y; cvt.u32.u16 t, z.x; add.u32 r.z, x.z, t;
cvt.u32.u16 t, z.y; cvt.u32.u8 u, w.w;
mad.lo.u32 r.w, u, 1000, t; mad.lo.u32 r.w, x.w, 1000000, r.w; add.u32 r.x, r.x, last; add.u32 r.y, r.y, a; ret; }
.visible .entry k(.param .u64 in, .param .u64 out)
{ .reg .u64 i, o; .reg .u32 t; .reg .v4 .u32 v; .reg .v2 .u32 y; .reg .v2 .u16 z; .reg .v4 .b8 w;
ld.param.u64 i, [in]; ld.param.u64 o, [out]; ld.global.u32 t, [i]; mov.u32 v.x, t; add.u32 v.y, t, 1;
add.u32 v.z, t, 2; add.u32 v.w, t, 3;
mov.u32 y.x, 5; mov.u32 y.y, 6; mov.u16 z.x, 7; mov.u16 z.y, 8; cvt.u8.u32 w.x, t; cvt.u8.u32 w.y, v.y;
cvt.u8.u32 w.z, v.z; cvt.u8.u32 w.w, v.w;
call (v), f, (t, v, y, z, w, 100); st.global.v4.u32 [o], v; ret; }
"""
MODULE_SCOPE = """.local .align 8 .b8 scratch[16];
.reg .u32 total, spare<3>;
.reg .pred flag;
.reg .v2 .u32 pair;
.func add1 (.reg .u32 x)
{ .reg .u32 r; ld.local.u32 r, [scratch+4]; add.u32 r, r, x; st.local.u32 [scratch+4], r; add.u32 total, total, r;
setp.gt.u32 flag, total, 100; add.u32 pair.y, pair.y, 7; ret; }
.func (.reg .u32 y) twice (.reg .u32 x)
{ call add1, (x); call add1, (x); mov.u32 y, total; ret; }
.entry k (.param .u64 in, .param .u64 out)
{ .reg .u64 i, o; .reg .u32 t, u; ld.param.u64 i, [in]; ld.param.u64 o, [out]; ld.global.u32 t, [i];
mov.u32 total, 0; mov.u32 pair.x, 5; mov.u32 pair.y, 6; mov.u32 spare2, 9; st.local.u32 [scratch+4], 1000;
setp.ne.u32 flag, t, t; call (u), twice, (t);
selp.u32 spare2, 1, 2, flag; st.global.u32 [o], u; st.global.u32 [o+4], spare2; ld.local.u32 t, [scratch+4];
st.global.u32 [o+8], t; st.global.u32 [o+12], pair.y; ret; }
"""
ADDRESSES = """.local .align 8 .b8 scratch[16];
.local .u32 other;
.reg .u64 where;
.func (.reg .u32 r) get ()
{ .reg .u64 a; mov.u64 a, scratch+8; ld.local.u32 r, [a]; mov.u64 where, a; st.local.u32 [other], r; ret; }
.func (.reg .u32 r) outer ()
{ .reg .u32 t; call (t), get, (); ld.local.u32 r, [where]; add.u32 r, r, t; ret; }
.entry k (.param .u64 in, .param .u64 out)
{ .reg .u64 i, o; .reg .u32 t, u; ld.param.u64 i, [in]; ld.param.u64 o, [out]; ld.global.u32 t, [i];
st.local.u32 [scratch+8], t; st.local.u32 [other], 5; call (u), outer, (); st.global.u32 [o], u;
ld.local.u32 u, [other]; st.global.u32 [o+4], u; ret; }
.entry k2 (.param .u64 in, .param .u64 out)
{ .reg .u32 u; st.local.u32 [scratch+8], 3; call (u), get, (); ret; }
"""
OLD, NEW = HEAD.format(version="2.1", target="sm_20"), HEAD.format(version="7.0", target="sm_75") + ".address_size 64\n"
CASES = {
    "predicates": (NEW + PREDICATE, [82, 123, 0, 8]),
    "vectors": (NEW + VECTORS, [41 + 5 + 100, 42 + 6 + 41, 43 + 7, 44 * 1_000_000 + 44 * 1000 + 8]),
    "module scope": (OLD + MODULE_SCOPE, [(1000 + 41) + (1000 + 82), 1, 1082, 20]),
    "addresses at module scope": (OLD + ADDRESSES, [82, 41, 0, 0]),
}


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("case", CASES)
def test_values(case: str, arch: str) -> None:
    text, want = CASES[case]
    for level in (0, 1, 3):
        out = np.zeros(4, np.uint32)
        Device(compile_ptx(text, arch, {"opt-level": level})).launch("k", 1, 1, [np.array([41], np.uint32), out])
        assert [int(x) for x in out] == want


SEVERAL = ".func (.reg .u32 a, .reg .u32 b) g() { mov.u32 a, 1; mov.u32 b, 2; ret; }\n"
ENTRY = (
    ".visible .entry k(.param .u64 out) { .reg .u64 o; .reg .u32 t, y; ld.param.u64 o, [out]; mov.u32 t, 1; %s "
    "st.global.u32 [o], t; ret; }\n"
)
VERDICTS = {
    "several results": (NEW + SEVERAL + ENTRY % "", ()),
    "several results in an object": (NEW + SEVERAL + ENTRY % "", ("-c",)),
    "several of memory": (NEW + ".func (.param .u32 a, .param .u32 b) g();\n" + ENTRY % "", ()),
    "recursive": (
        NEW + ".func (.reg .u32 a, .reg .u32 b) g(.reg .u32 n) { .reg .pred p; .reg .u32 m; setp.eq.u32 p, n, 0; "
            "mov.u32 a, n; mov.u32 b, n; @p ret; sub.u32 m, n, 1; "
        "call (a, b), g, (m); ret; }\n" + ENTRY % "call (t, y), g, (t);", (),
    ),
    "by pointer": (NEW + SEVERAL + ENTRY % "P: .callprototype (.reg .u32 a, .reg .u32 b) _ (); mov.u64 o, g; call "
        "(t, y), o, (), P;", ()),
    "short argument": (NEW + ".func f(.param .u16 a) { ret; }\n"
        + ENTRY % ".param .u16 x; .reg .u16 h; mov.u16 h, 1; st.param.u16 [x], h; call f, (x);", ()),
    "short argument, never called": (NEW + ".func f(.param .u16 a) { ret; }\n" + ENTRY % "", ()),
    "short result": (NEW + ".func (.param .s8 r) f() { ret; }\n" + ENTRY % ".param .s8 x; call (x), f, ();", ()),
    "bits are no short argument": (NEW + ".func f(.param .b16 a) { ret; }\n"
        + ENTRY % ".param .b16 x; .reg .u16 h; mov.u16 h, 1; st.param.b16 [x], h; call f, (x);", ()),
    "predicate alone": (NEW + ".func (.reg .pred a) f() { setp.eq.u32 a, 1, 1; ret; }\n"
        + ENTRY % ".reg .pred p; call (p), f, ();", ()),
    "vector in memory": (NEW + ".func f(.param .v4 .u32 x) { ret; }\n" + ENTRY % "", ()),
    "module scope": (OLD + ".reg .u32 s; .local .u32 u;\n" + ENTRY % "", ()),
    "module scope, later": (NEW + ".reg .u32 s;\n" + ENTRY % "", ()),
    "object of old PTX": (OLD + ENTRY % "", ("-c",)),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("case", VERDICTS)
def test_verdicts(case: str, tmp_path: Path) -> None:
    """Accepted or refused, and every line of the messages."""
    oracle.require("ptxas")
    text, options = VERDICTS[case]
    (tmp_path / "k.ptx").write_text(text)
    done = subprocess.run(
        [str(oracle.find("ptxas")), "-arch", "sm_80", *options, "k.ptx", "-o", "k.cubin"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    said: list[str] = []
    refused = parse_to_stream(
        [("k.ptx", text.encode())],
        "sm_80",
        {"opt-level": 3, **({"compile-only": 1} if options else {})},
        lambda data: None,
        say=said.append,
    )
    assert (bool(refused), "".join(said)) == (done.returncode != 0, done.stderr + done.stdout)
