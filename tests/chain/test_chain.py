"""The chain end to end: every kernel compiles, and the three ways to run the stages make the same cubin."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chain.corpus import FULL, PARTIAL, cubin, kernels, ptx_path

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("lower", "optimize", "regalloc", "schedule", "encode", "elf")
SUBSET = ("vadd", "saxpy", "reduction", "matmul", "histogram", "switch10")
ALL = [(k, a) for a in FULL for k in kernels()]


def env(path: str | None = None) -> dict[str, str]:
    """The environment of a stage process: our packages on the path, nothing else needed."""
    e = {"PYTHONPATH": str(ROOT), "PATH": path if path is not None else os.environ["PATH"], "HOME": "/tmp"}
    return e


def orias(*args: str, **kw: object) -> subprocess.CompletedProcess[str]:
    """Run the orchestrator."""
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *args], capture_output=True, text=True, env=env(), timeout=300, **kw
    )  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("opt", [0, 3])
@pytest.mark.parametrize(("kernel", "arch"), ALL)
def test_every_kernel_compiles(kernel: str, arch: str, opt: int) -> None:
    assert cubin(kernel, arch, opt)[:4] == b"\x7fELF"


@pytest.mark.parametrize("arch", PARTIAL)
def test_the_subset_compiles_elsewhere(arch: str) -> None:
    for kernel in kernels():
        if any(kernel.startswith(s) for s in SUBSET):
            assert cubin(kernel, arch)[:4] == b"\x7fELF"


@pytest.mark.parametrize("kernel", ["vadd", "matmul", "call_twice"])
def test_pipe_files_and_orchestrator_agree(kernel: str, tmp_path: Path) -> None:
    src = ptx_path(kernel, "sm_90")
    py = sys.executable
    parse = [py, "-m", "stages.parse", "--arch", "sm_90", str(src)]
    line = " | ".join([" ".join(parse), *(f"{py} -m stages.{s}" for s in STAGES)])
    piped = subprocess.run(["/bin/sh", "-c", line], capture_output=True, env=env(), check=True, timeout=300).stdout
    at = tmp_path / "0.ori"
    subprocess.run([*parse, "-o", str(at)], env=env(), check=True, timeout=100)
    for n, s in enumerate(STAGES, 1):
        to = tmp_path / f"{n}.ori"
        subprocess.run([py, "-m", f"stages.{s}", str(at), "-o", str(to)], env=env(), check=True, timeout=100)
        at = to
    assert at.read_bytes() == piped
    for mode in ([], ["--exec"]):
        out = tmp_path / "o.cubin"
        done = orias(str(src), "-arch", "sm_90", "-o", str(out), *mode)
        assert done.returncode == 0, done.stderr
        assert out.read_bytes() == piped


def test_jobs_and_hash_seed_do_not_matter(tmp_path: Path) -> None:
    src = ptx_path("all16", "sm_90")
    seen = set()
    for jobs, seed in (("1", "0"), ("2", "1"), ("4", "2")):
        out = tmp_path / f"{jobs}.cubin"
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator", str(src), "-arch=sm_90", "-j", jobs, "-o", str(out)],
            env={**env(), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        seen.add(out.read_bytes())
    assert len(seen) == 1


def test_save_temps_and_start_from(tmp_path: Path) -> None:
    src = str(ptx_path("saxpy", "sm_90"))
    plain, again = tmp_path / "a", tmp_path / "b"
    assert orias(src, "-arch=sm_90", "-o", str(plain), "--save-temps", str(tmp_path / "t")).returncode == 0
    kept = sorted((tmp_path / "t").iterdir())
    assert [p.name for p in kept] == [
        "0.parse.ori",
        "1.lower.ori",
        "2.optimize.ori",
        "3.regalloc.ori",
        "4.schedule.ori",
        "5.encode.ori",
    ]
    for p in kept:
        assert orias("--start-from", str(p), "-o", str(again)).returncode == 0
        assert again.read_bytes() == plain.read_bytes()
    stopped = tmp_path / "s.ori"
    assert orias(src, "-arch=sm_90", "--stop-after", "regalloc", "-o", str(stopped)).returncode == 0
    assert stopped.read_bytes() == kept[3].read_bytes()


# A stage written with only msgpack: it reverses the numbering of virtual registers and imports nothing of ours.
FOREIGN = r"""
import sys, zlib, msgpack
data = sys.stdin.buffer.read()
up = msgpack.Unpacker(raw=False); up.feed(data)
out = sys.stdout.buffer; crc = 0
def reg(x, n):
    if isinstance(x, list):
        if len(x) == 6 and x[0] in ("R", "UR", "P", "UP", "B") and isinstance(x[1], int):
            return [x[0], n - 1 - x[1] if x[1] >= 0 else -1, *x[2:]]
        return [reg(e, n) for e in x]
    return x
for tag, body in up:
    if tag == "end":
        out.write(msgpack.packb([tag, {"crc": crc, "units": body["units"]}])); break
    if tag == "unit":
        for f in body["functions"]:
            n = len(f[3]); f[3] = f[3][::-1]
            for b in f[8]:
                for i in b[2]:
                    for k in (1, 2, 3, 7, 8):
                        i[k] = reg(i[k], n)
    rec = msgpack.packb([tag, body]); crc = zlib.crc32(rec, crc); out.write(rec)
"""


def test_a_foreign_stage_swaps_in(tmp_path: Path) -> None:
    script = tmp_path / "renumber.py"
    script.write_text(FOREIGN)
    assert "import ir_format" not in FOREIGN and "import stages" not in FOREIGN
    src = str(ptx_path("matmul", "sm_90"))
    out = tmp_path / "o.cubin"
    done = orias(src, "-arch=sm_90", "-o", str(out), "--stage", f"optimize={sys.executable} {script}")
    assert done.returncode == 0, done.stderr
    py = sys.executable
    line = f"{py} -m stages.parse --arch sm_90 {src} | {py} -m stages.lower | {py} {script} | " + " | ".join(
        f"{py} -m stages.{s}" for s in STAGES[2:]
    )
    piped = subprocess.run(["/bin/sh", "-c", line], capture_output=True, env=env(), check=True, timeout=300).stdout
    assert piped == out.read_bytes()


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("kill -9 $$", "died (signal 9)"),
        ("head -c 100", "no valid stream"),
        ("echo rubbish", ""),
        ("exit 7", "exit code 7"),
        ("sleep 100", "no progress"),
    ],
)
def test_a_broken_stage_gives_one_error_and_no_file(command: str, text: str, tmp_path: Path) -> None:
    out = tmp_path / "o.cubin"
    done = orias(
        str(ptx_path("vadd", "sm_90")),
        "-arch=sm_90",
        "-o",
        str(out),
        "--stage",
        f"encode={command}",
        "--stage-timeout",
        "3",
    )
    assert done.returncode == 255
    assert text in done.stderr
    assert done.stderr.count("fatal") == 1 and "Traceback" not in done.stderr
    assert not out.exists() and list(tmp_path.iterdir()) == []


def test_several_files_and_standard_input(tmp_path: Path) -> None:
    """Two files make one cubin with both kernels; '-' reads standard input and gives the same code."""
    import io

    from elftools.elf.elffile import ELFFile

    two, one = tmp_path / "two", tmp_path / "one"
    vadd, saxpy = ptx_path("vadd", "sm_90"), ptx_path("saxpy", "sm_90")
    assert orias(str(vadd), str(saxpy), "-arch=sm_90", "-o", str(two)).returncode == 0
    names = {s.name for s in ELFFile(io.BytesIO(two.read_bytes())).iter_sections()}
    assert {".text.vadd", ".text.saxpy"} <= names
    assert orias("-", "-arch=sm_90", "-o", str(one), input=vadd.read_text()).returncode == 0
    assert text_section(one.read_bytes()) == text_section(cubin("vadd", "sm_90"))


def test_unsupported_instruction_is_refused_with_its_line(tmp_path: Path) -> None:
    src, out = tmp_path / "t.ptx", tmp_path / "o.cubin"
    src.write_text(
        ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n.reg .b64 "
        "%d;\n.reg .f32 %f<5>;\n"
        "tex.grad.3d.v4.f32.f32 {%f1,%f2,%f3,%f4}, [%d, {%f1,%f2,%f3,%f4}], {%f1,%f2,%f3,%f4}, {%f1,%f2,%f3,%f4};\n"
        "ret;\n}\n"
    )
    done = orias(str(src), "-arch=sm_75", "-o", str(out))
    assert done.returncode == 255 and not out.exists()
    assert f"ptxas {src}, line 8; error   : " in done.stderr and "tex.grad.3d" in done.stderr


def test_no_nvidia_tool_is_needed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    out = tmp_path / "o.cubin"
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", str(ptx_path("matmul", "sm_90")), "-arch=sm_90", "-o", str(out)],
        env=env(path=str(tmp_path / "empty")),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert text_section(out.read_bytes()) == text_section(cubin("matmul", "sm_90"))


def text_section(data: bytes) -> bytes:
    """The only .text section of a cubin."""
    import io

    from elftools.elf.elffile import ELFFile

    found = [s.data() for s in ELFFile(io.BytesIO(data)).iter_sections() if s.name.startswith(".text.")]
    assert len(found) == 1
    return bytes(found[0])


def test_kernel_names_do_not_matter() -> None:
    from orchestrator.api import compile_ptx

    rng = random.Random(3)
    for kernel in kernels():
        ptx = ptx_path(kernel, "sm_90").read_text()
        entries = re.findall(r"\.entry\s+(\w+)", ptx)
        if len(entries) != 1:
            continue
        renamed = re.sub(rf"\b{entries[0]}\b", "z" + "".join(rng.choice("abcxyz") for _ in range(12)), ptx)
        assert text_section(compile_ptx(renamed, "sm_90")) == text_section(cubin(kernel, "sm_90")), kernel
