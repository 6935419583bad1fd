"""A new engineer's walk, done in a scratch copy: add an SM, a SASS instruction, a PTX instruction, a pass, each in the
places that docs/architecture.md names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAXPY = ROOT / "tests/kernels/ptx/sm_120/saxpy.ptx"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The product's folders, free to be changed."""
    for name in ("ir_format", "stages", "orchestrator"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    """One place."""
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new))


def run(copy: Path, *command: str) -> str:
    """Run a command of the copy; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-P", *command],
        cwd=copy,
        env={"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_sm_is_one_entry_of_the_table(copy: Path) -> None:
    """sm_122, as similar to sm_120 as sm_121 is: its record; whatever the open ranges cover is there."""
    change(
        copy / "ir_format/target.py",
        "    _SM_121,\n)",
        '    _SM_121,\n    replace(_SM_120, name="sm_122", sm=122, min_ptx=(9, 0)),\n)',
    )
    (copy / "k.ptx").write_text(SAXPY.read_text().replace("sm_120", "sm_122"))
    run(copy, "-m", "orchestrator", "k.ptx", "-arch", "sm_122", "-o", "k.cubin")
    assert "0 findings" in run(copy, "-m", "stages.check", "k.cubin")
    assert ".target\tsm_122" in run(copy, "-m", "stages.disasm", "k.cubin")
    assert '"sm": 122' in run(copy, "-m", "stages.facts", "sm_122")


def test_an_instruction_is_described_in_one_place(copy: Path) -> None:
    """FNEW: an `op` line and a row suffice to encode, decode, print, schedule and count it as pure."""
    change(
        copy / "ir_format/isa/rows/floating.py",
        "op FADD       ",
        "op FNEW       pure class=fma\nFNEW        1fe AB d <- a- b-|                ; .FTZ@80                 ; "
        "imm=f32 comm=ab\nop FADD       ",
    )
    program = """
from ir_format import isa
from ir_format.hazards import hazards
from ir_format.model import Ctl, Inst, Reg
from stages.optimize.values import is_pure
from stages.lower.builder import _SPECULATABLE
t = isa.target(90)
i = Inst("FNEW", ("FTZ",), (Reg("R", 1),), (Reg("R", 2), Reg("R", 3)), ctl=Ctl(4, 0, 7, 7, 0))
back = t.decode(t.encode(i))
print(t.format(back), hazards(90).klass(back), is_pure(back), back.op in _SPECULATABLE)
"""
    assert run(copy, "-c", program).split() == ["FNEW.FTZ", "R1,", "R2,", "R3", "fma", "True", "True"]


def test_an_instruction_without_facts_does_not_load(copy: Path) -> None:
    change(
        copy / "ir_format/isa/rows/floating.py",
        "op FADD       ",
        "FNEW        1fe AB d <- a- b-|                ; ; imm=f32\nop FADD       ",
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", "from ir_format import isa; isa.target(90)"],
        cwd=copy,
        env={"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and "rows without an op line: FNEW" in done.stderr


XNOR = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 a, b, c;
    .reg .b64 p;
    ld.param.u64 p, [out];
    cvta.to.global.u64 p, p;
    mov.u32 a, %tid.x;
    mov.u32 b, 0x0ff0;
    xnor.b32 c, a, b;
    mad.wide.u32 p, a, 4, p;
    st.global.b32 [p], c;
    ret;
}
"""


def test_a_ptx_instruction_is_a_row_and_two_rules(copy: Path) -> None:
    """xnor: its descriptor row, its lowering rule, its meaning. The compiled code and the interpreter agree; a type
    that the row does not name is refused."""
    change(copy / "stages/parse/table/logic.py", '\nROWS = """\n', '\nROWS = """\nxnor | b32,b64 | | d, s, s |\n')
    change(copy / "stages/lower/rules/bits.py", '"xor": 0x3C}', '"xor": 0x3C, "xnor": 0xC3}')
    change(
        copy / "stages/interpret/alu.py",
        '@row("popc")\n',
        '@row("xnor")\ndef _xnor(inst: PtxInst) -> Fn:\n'
        "    return lambda a, b: unsigned(~(a ^ b), BITS[inst.types[0]])\n"
        '\n\n@row("popc")\n',
    )
    (copy / "k.ptx").write_text(XNOR)
    assert "equal" in run(copy, "-m", "stages.check", "--cosim", "k.ptx")
    (copy / "k.ptx").write_text(XNOR.replace("xnor.b32", "xnor.f32"))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "orchestrator", "k.ptx", "-arch", "sm_90", "-o", "k.cubin"],
        cwd=copy, env={"PYTHONPATH": str(copy)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode and "Unexpected instruction types specified for 'xnor'" in done.stderr


def test_a_pass_is_a_file_and_a_line(copy: Path) -> None:
    """A pass that counts instructions is listed, runs, and can be selected alone."""
    (copy / "stages/optimize/census.py").write_text(
        '"""Counts instructions. Pre, post: anything."""\n\n\ndef census(f, a):\n    """The pass."""\n'
        '    a.ctx.count("instructions seen", sum(len(b.insts) for b in f.blocks))\n'
    )
    path = copy / "stages/optimize/passes.py"
    text = path.read_text()
    path.write_text(
        text.replace(
            "from stages.plumbing.runner import Pass\n",
            "from stages.optimize.census import census\nfrom stages.plumbing.runner import Pass\n",
            1,
        ).replace("UnitPass, ...] = (\n", 'UnitPass, ...] = (\n    FunctionPass("census", census),\n', 1)
    )
    (copy / "k.ptx").write_text(SAXPY.read_text())
    run(copy, "-m", "orchestrator", "k.ptx", "-arch", "sm_120", "--save-temps", "T", "-o", "k.cubin")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "stages.optimize", "--only", "census", "--stats", "T/1.lower.ori", "-o", "x.ori"],
        cwd=copy, env={"PYTHONPATH": str(copy)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "instructions seen" in done.stderr + done.stdout, done.stderr
