"""Messages about warpgroup products and setmaxnreg: texts, lines and reasons against ptxas's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import oracle

_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
"""
_PRODUCTS = """.visible .entry k(.param .u64 p, .param .u64 da, .param .u64 db) {
    .reg .b32 %r<40>; .reg .f32 %f<64>; .reg .b64 %rd<14>; .reg .pred %p<4>;
    ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [da]; ld.param.u64 %rd3, [db];
    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1];
BODY
    st.global.v4.f32 [%rd1], {%f0, %f1, %f2, %f3};
    ret;
}
"""
_PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd2, %rd3, 1, 1, 1, 0, 0;\n"
_FENCE, _COMMIT, _WAIT = (
    "wgmma.fence.sync.aligned;\n",
    "wgmma.commit_group.sync.aligned;\n",
    "wgmma.wait_group.sync.aligned 0;\n",
)
_CALL = (
    "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd1; st.param.b64 [b], %rd1; call.uni "
    "(c), vprintf, (a, b); }\n"
)
_OTHER = _PRODUCT.replace("%rd2, %rd3", "%rd3, %rd2")
_LOAD = "ld.global.f32 %f1, [%rd1+64];\n"
_SUM = "add.f32 %f1, %f1, %f1;\n"
_SOME = "mov.u32 %r1, %tid.x; setp.eq.s32 %p1, %r1, 0; @%p1 bra L1;\n"
_LOOP = "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L1;\n"
STAGES = {
    "right": _FENCE + _PRODUCT + _COMMIT + _WAIT,
    "no fence": _PRODUCT + _COMMIT + _WAIT,
    "no wait": _FENCE + _PRODUCT + _COMMIT,
    "read before the wait": _FENCE + _PRODUCT + _COMMIT + "add.f32 %f0, %f0, %f1;\n" + _WAIT,
    "read inside": _FENCE + _PRODUCT + "st.global.f32 [%rd1+128], %f2;\n" + _PRODUCT + _COMMIT + _WAIT,
    "call before the wait": _FENCE + _PRODUCT + _COMMIT + _CALL + _WAIT,
    "call before": _CALL + _FENCE + _PRODUCT + _COMMIT + _WAIT,
    "call before, no wait": _CALL + _FENCE + _PRODUCT + _COMMIT,
    "call before, no fence": _CALL + _PRODUCT + _COMMIT + _WAIT,
    "call behind": _FENCE + _PRODUCT + _COMMIT + _WAIT + _CALL,
    "call inside": _FENCE + _PRODUCT + _CALL + _PRODUCT + _COMMIT + _WAIT,
    "call inside, fence": _FENCE + _PRODUCT + _CALL + _FENCE + _PRODUCT + _COMMIT + _WAIT,
    "some threads": _SOME + _FENCE + _PRODUCT + _COMMIT + _WAIT + "L1:\n",
    "some threads, no fence": _SOME + _PRODUCT + _COMMIT + _WAIT + "L1:\n",
    "some threads, fence outside": _FENCE + _SOME + _PRODUCT + _COMMIT + _WAIT + "L1:\n",
    "some threads read": _SOME + _FENCE + _PRODUCT + _COMMIT + "add.f32 %f0, %f0, %f1;\n" + _WAIT + "L1:\n",
    "some threads, no wait": _SOME + _FENCE + _PRODUCT + _COMMIT + "L1:\n",
    "some threads wait": _FENCE + _PRODUCT + _COMMIT + _SOME + _WAIT + "L1:\n",
    "call inside, no product": _FENCE + _PRODUCT + _CALL + _COMMIT + _WAIT,
    "call before the next product": _FENCE + _PRODUCT + _COMMIT + _CALL + _OTHER + _COMMIT + _WAIT,
    "call before an empty group": _CALL + _COMMIT + _WAIT + _FENCE + _PRODUCT + _COMMIT + _WAIT,
    "written, read by the next product": _FENCE + _PRODUCT + _LOAD + _OTHER + _COMMIT + _WAIT,
    "written before a fence": _FENCE + _PRODUCT + _COMMIT + _LOAD + _FENCE + _OTHER + _COMMIT + _WAIT,
    "written before the wait": _FENCE + _PRODUCT + _COMMIT + _LOAD + _WAIT + _FENCE + _OTHER + _COMMIT + _WAIT,
    "changed inside": _FENCE + _PRODUCT + _SUM + _OTHER + _COMMIT + _WAIT,
    "changed before the next product": _FENCE + _PRODUCT + _COMMIT + _SUM + _OTHER + _COMMIT + _WAIT,
    "an empty group first": _COMMIT + _FENCE + _PRODUCT + _COMMIT + _WAIT,
    "no commit": _FENCE + _PRODUCT + _WAIT,
    "loop without a fence": "mov.u32 %r1, %tid.x;\nL1:\n" + _PRODUCT + _COMMIT + _LOOP + _WAIT,
}

_COUNTS = """.version 8.6
.target sm_90a
.address_size 64
.extern .func ext(.param .b32 x);
.visible .entry k(.param .u64 p) BOUNDS {
    .reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;
    setmaxnreg.dec.sync.aligned.u32 40;
    CALL
    st.global.u32 [%rd1], %r1; ret; }
"""
_OUTSIDE = "{ .param .b32 x; st.param.b32 [x], %r1; call.uni ext, (x); }"
_KNOWN = ".maxntid 384 .minnctapersm 1"


def _both(text: str, options: list[str], folder: Path) -> tuple[list[str], list[str]]:
    source = folder / "a.ptx"
    source.write_text(text)
    said = []
    for command in ([str(oracle.find("ptxas"))], [sys.executable, "-m", "orchestrator"]):
        done = subprocess.run(
            [*command, *options, "-arch=sm_90a", str(source), "-o", str(folder / "a.out")],
            capture_output=True,
            text=True,
            check=False,
        )
        said.append([line for line in (done.stdout + done.stderr).splitlines() if "(C7" in line])
        assert done.returncode == 0, done.stderr
    return said[0], said[1]


@pytest.mark.parametrize("options", [[], ["-c"]], ids=["whole", "object"])
def test_products(options: list[str], tmp_path: Path) -> None:
    """Each stage in a separate kernel: both compilers print the same messages."""
    oracle.require("ptxas")
    text, names = _HEAD, {}
    for n, (name, body) in enumerate(STAGES.items()):
        names[f"'k{n}'"] = name
        text += _PRODUCTS.replace("entry k", f"entry k{n}").replace("BODY", body.rstrip())
    said = [
        {name: [line for line in lines if quoted in line] for quoted, name in names.items()}
        for lines in _both(text, options, tmp_path)
    ]
    assert said[1] == said[0]
    assert [name for name, lines in said[0].items() if not lines] == [
        "right",
        "some threads",
        "written before a fence",
        "no commit",
    ]


@pytest.mark.parametrize(
    ("bounds", "options", "call"),
    [
        (_KNOWN, [], ""), (".maxntid 384", [], ""), ("", [], ""), (".maxnreg 168", [], ""),
        ("", ["-maxrregcount", "168"], ""), (".maxntid 384", ["-maxrregcount", "168"], ""),
        (_KNOWN, ["-c"], ""), (_KNOWN, ["-c"], _OUTSIDE), (_KNOWN, ["-c", "-v"], _OUTSIDE), (_KNOWN, ["-g"], ""),
        ("", ["-g"], ""), (_KNOWN, ["-ewp"], ""), (_KNOWN, ["-ewp"], _OUTSIDE),
    ],
)  # fmt: skip
def test_register_counts(bounds: str, options: list[str], call: str, tmp_path: Path) -> None:
    oracle.require("ptxas")
    theirs, ours = _both(_COUNTS.replace("BOUNDS", bounds).replace("CALL", call), options, tmp_path)
    assert ours == theirs


@pytest.mark.parametrize("registers", [20, 60])
def test_spills_to_shared_memory_are_not_done(registers: int, tmp_path: Path) -> None:
    """The pragma is reported where it would have had an effect, and nowhere else."""
    loads = "".join(f"ld.volatile.global.u32 %r{k}, [%rd1+{4 * k}];\n" for k in range(registers))
    stores = "".join(f"st.volatile.global.u32 [%rd1+{8 * k}], %r{k};\n" for k in range(registers))
    text = f"""
.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) .maxnreg 32 {{ .reg .b32 %r<80>; .reg .b64 %rd<3>;
.pragma "enable_smem_spilling";
ld.param.u64 %rd1, [p];
{loads}{stores}ret; }}
"""
    source = tmp_path / "a.ptx"
    source.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "-arch=sm_90", str(source), "-o", str(tmp_path / "a.out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert ("line 6; warning : Pragma 'enable_smem_spilling' not supported by orias" in done.stderr) == (
        registers == 60
    ), done.stderr
