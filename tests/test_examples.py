"""The programs and files under docs/examples, run as a reader would: with third-party packages if these are installed
(ORIAS_PYTHONS: further Pythons to search), in the simulator if there is no GPU."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.orchestrator.test_programs import python_with

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
VADD = ROOT / "tests" / "kernels" / "ptx" / "sm_90" / "vadd.ptx"
SAXPY = ROOT / "tests" / "kernels" / "ptx" / "sm_90" / "saxpy.ptx"
INSTALLED = os.environ.get("ORIAS_BIN", "")  # of tests/installed.py: the programs of an environment of its own
BIN = Path(INSTALLED or Path(sys.executable).parent)
PYTHON = str(BIN / "python") if INSTALLED else sys.executable


def run(
    *words: str, cwd: Path = ROOT, python: str = PYTHON, ok: tuple[int, ...] = (0,)
) -> subprocess.CompletedProcess[str]:
    """A program with `orias`, `python` and this checkout (or what is installed) in reach."""
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"} | ({} if INSTALLED else {"PYTHONPATH": str(ROOT)})
    words = tuple(python if w == "python" else w for w in words)
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode in ok, done.stdout + done.stderr
    return done


def need_programs() -> None:
    if not (BIN / "orias").exists():
        pytest.skip("orias is not installed beside this Python")


def test_triton_kernel() -> None:
    need_programs()
    python = python_with("triton")
    said = run("python", str(EXAMPLES / "triton_kernel.py"), "90", python=python).stdout
    assert re.search(r"Triton's cubin has \d{4,} bytes; by hand \d{4,} bytes,\n\d+ registers, \d+% occupancy", said)


def test_numba_kernel() -> None:
    said = run("python", str(EXAMPLES / "numba_kernel.py"), python=python_with("numba.cuda")).stdout
    assert "1,000 values are right" in said


def test_cupy_kernel() -> None:
    said = run("python", str(EXAMPLES / "cupy_kernel.py"), str(VADD), python=python_with("cupy")).stdout
    assert "1000 sums are right" in said


def test_a_scheduler_in_thirty_lines(tmp_path: Path) -> None:
    """It replaces our scheduler, and the cubin is right: the judge of schedules finds nothing."""
    need_programs()
    code = (EXAMPLES / "order.py").read_text().splitlines()
    assert len(code) <= 30
    made = tmp_path / "k.cubin"
    stage = f"schedule={PYTHON} {EXAMPLES / 'order.py'}"
    run("orias", "--stage", stage, str(SAXPY), "-arch", "sm_90", "-o", str(made))
    run("orias-check", str(made))


QUAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .u64 %a; .reg .b32 %x<4>; .shared .align 16 .b32 words[4];
  ld.param.u64 %a, [p];
  bar.sync 0;
  ld.shared.b32 %x0, [words]; ld.shared.b32 %x1, [words+4];
  ld.shared.b32 %x2, [words+8]; ld.shared.b32 %x3, [words+12];
  st.global.b32 [%a], %x0; st.global.b32 [%a+4], %x1; st.global.b32 [%a+8], %x2; st.global.b32 [%a+12], %x3;
  ret;
}
"""


def test_a_regression_hunt(tmp_path: Path) -> None:
    """load-vectorize makes one load of four: it removes three instructions."""
    (tmp_path / "k.ptx").write_text(QUAD)
    said = run("python", str(EXAMPLES / "regression_hunt.py"), str(tmp_path / "k.ptx"), "sm_90").stdout
    assert re.search(r"^load-vectorize +adds -3 instructions", said, re.M), said


def test_a_pass_of_ones_own(tmp_path: Path) -> None:
    need_programs()
    words = ["orias", "--pass", "optimize:after=combine:docs.examples.count_loads:count_loads", str(SAXPY), "--remarks"]
    said = run(*words, "-arch", "sm_90", "-o", str(tmp_path / "k.cubin")).stderr
    lines = [int(n) for n in re.findall(r":(\d+):\d+: remark: LDG stays \[-Rpass-analysis=count-loads\]", said)]
    text = SAXPY.read_text().splitlines()
    assert len(lines) == 2 and all("ld.global" in text[n - 1] for n in lines)


def test_the_explained_program_of_the_docs() -> None:
    """docs/compile.md shows the output of `--explain` word by word; README shows the beginning."""
    need_programs()
    page = (ROOT / "docs" / "compile.md").read_text()
    (shown,) = re.findall(r"```\n\$ (orias .*?)\n(.*?)```", page, re.S)
    said = run(*shlex.split(shown[0]), ok=(255,)).stderr
    assert said == shown[1]
    readme = (ROOT / "README.md").read_text()
    (start,) = re.findall(r"```\nptxas docs/examples/typo.ptx(.*?)```", readme, re.S)
    assert said.startswith("ptxas docs/examples/typo.ptx" + start)


def test_the_hook_of_pre_commit(tmp_path: Path) -> None:
    """The entry with file names after it, as pre-commit calls it."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    entry = shlex.split(re.search(r"entry: (.*)", text)[1])  # type: ignore[index]
    pattern = re.compile(re.search(r"files: (.*)", text)[1])  # type: ignore[index]
    assert pattern.search("a/b.ptx") and not pattern.search("b.cu")
    assert run(*entry, str(VADD), str(SAXPY)).stderr == ""
    said = run(*entry, str(VADD), str(EXAMPLES / "typo.ptx"), ok=(1,)).stderr
    assert "is not declared: did you mean %f2?" in said


def test_the_action_of_github(tmp_path: Path) -> None:
    """Its step `compile`, in a folder with one good and one bad file."""
    need_programs()
    yaml = pytest.importorskip("yaml")
    steps = yaml.safe_load((EXAMPLES / "github-action.yml").read_text())["jobs"]["compile"]["steps"]
    (script,) = [s["run"] for s in steps if s.get("name") == "compile"]
    shutil.copy(VADD, tmp_path)
    run("bash", "-e", "-c", script, cwd=tmp_path)
    shutil.copy(EXAMPLES / "typo.ptx", tmp_path)
    run("bash", "-e", "-c", script, cwd=tmp_path, ok=(1,))
    logs = {p.name: json.loads(p.read_text()) for p in (tmp_path / "sarif").iterdir()}
    assert {len(log["runs"][0]["results"]) > 0 for name, log in logs.items() if "typo" in name} == {True}
    assert {len(log["runs"][0]["results"]) for name, log in logs.items() if "vadd" in name} == {0}


def test_the_configuration_of_compiler_explorer(tmp_path: Path) -> None:
    """Its programs answer the queries of Compiler Explorer: a version, a compile with the options, a listing with lines
    and words."""
    need_programs()
    parser = configparser.ConfigParser()
    parser.read_string("[ce]\n" + (EXAMPLES / "compiler-explorer.properties").read_text())
    given = parser["ce"]
    name = given["group.orias.compilers"]
    exe, disassembler = (Path(given[f"compiler.{name}.{key}"]).name for key in ("exe", "nvdisasm"))
    assert run(exe, given["group.orias.versionFlag"]).stdout.startswith("orias")
    made = tmp_path / "out.cubin"
    options = shlex.split(given[f"compiler.{name}.options"])
    run(exe, *options, "-o", str(made), str(VADD))
    assert re.search(r"/\* 0x[0-9a-f]{16} \*/", run(disassembler, "-c", "-g", "-hex", str(made)).stdout)


def test_the_image_has_nothing_of_nvidias() -> None:
    """The Dockerfile installs only the package and its dependencies; the image is built if Docker runs."""
    import tomllib

    text = (EXAMPLES / "Dockerfile").read_text()
    code = "\n".join([line for line in text.splitlines() if not line.startswith("#")])
    assert re.findall(r"^(\w+)", code, re.M) == ["FROM", "COPY", "RUN", "WORKDIR", "ENTRYPOINT"]
    assert not re.search(r"nvidia|cuda", code, re.I)
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert not [n for n in needs if re.search(r"nvidia|cuda", n, re.I)]
    if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode:
        pytest.skip("Docker does not run here: the image was not built")
    run("docker", "build", "-q", "-f", str(EXAMPLES / "Dockerfile"), "-t", "orias-test", str(ROOT))
    assert "Version" in run("docker", "run", "--rm", "orias-test", "--version").stdout
