"""Programs of other people that run ptxas, with orias instead: each really runs if it is installed, and is skipped by
name if it is not.

Triton, Warp, Numba, TileLang and nvcc 13.5 are searched for in this Python and in those that ORIAS_PYTHONS lists
(separated by `:`; a private environment for each works).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stages.simulate import Device
from tests.orchestrator.test_drop_in import CUDA, OTHER, ROOT, _toolkit

PROGRAMS = Path(__file__).parent / "programs"
LIMIT = 600


def python_with(module: str) -> str:
    """A Python that has this module; skips without one."""
    installed = os.environ.get("ORIAS_BIN")  # of tests/installed.py
    others = filter(None, os.environ.get("ORIAS_PYTHONS", "").split(":"))
    for python in [f"{installed}/python"] if installed else [sys.executable, *others]:
        done = subprocess.run(
            [python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"],
            check=False,
        )
        if done.returncode == 0:
            return python
    pytest.skip(f"{module} is not installed here (ORIAS_PYTHONS)")


def script(folder: Path) -> Path:
    """An executable `ptxas` that is orias and keeps its command lines in `calls`."""
    path = folder / "ptxas"
    path.write_text(
        f'#!/bin/sh\necho "$@" >> {folder}/calls\nPYTHONPATH={ROOT} exec {sys.executable} -P -m orchestrator "$@"\n'
    )
    path.chmod(0o755)
    return path


def run(words: list[str], folder: Path, **env: str) -> str:
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def need(*programs: str) -> None:
    for name in programs:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed here")


def test_triton(tmp_path: Path) -> None:
    """Ahead of time on both sides of sm_90, from which on Triton reads the second variable; it passes an option that
    ptxas's help does not list."""
    python = python_with("triton")
    ptxas = str(script(tmp_path))
    said = run([python, str(PROGRAMS / "triton_aot.py"), "80", "90", "100", "120"], tmp_path,
               TRITON_PTXAS_PATH=ptxas, TRITON_PTXAS_BLACKWELL_PATH=ptxas,
                   TRITON_CACHE_DIR=str(tmp_path / "cache"))  # fmt: skip
    assert said.count("True") == 12
    calls = (tmp_path / "calls").read_text()
    assert (
        all(f"--gpu-name=sm_{sm}" in calls for sm in ("80", "90", "100a", "120a")) or calls.count("--gpu-name=") == 12
    )


def test_tilelang(tmp_path: Path) -> None:
    python = python_with("tilelang")
    (tmp_path / "cuda").mkdir()
    _toolkit(tmp_path / "cuda")
    path = f"{tmp_path}/cuda/bin:{os.environ['PATH']}"
    said = run(
        [python, str(PROGRAMS / "tilelang_gemm.py"), str(tmp_path), "sm_80", "sm_90a"],
        tmp_path,
        CUDA_HOME=str(tmp_path / "cuda"),
        PATH=path,
    )
    assert said.count("True") == 2


def test_warp(tmp_path: Path) -> None:
    """Warp gives its PTX to the driver, with a NUL at the end, in the version of its own toolkit; ptxas would get the
    same."""
    python = python_with("warp")
    run([python, str(PROGRAMS / "warp_ptx.py"), str(tmp_path / "out"), "80", "90", "120"], tmp_path)
    files = sorted((tmp_path / "out").rglob("*.ptx"))
    assert len(files) == 3
    ptxas = script(tmp_path)
    for path in files:
        text = path.read_bytes().rstrip(b"\0")
        assert b".version 9." in text
        path.write_bytes(text)
        run(
            [
                str(ptxas),
                str(path),
                "-arch",
                path.stem.rpartition(".sm")[2].join(["sm_", ""]),
                "-o",
                str(tmp_path / "k.cubin"),
            ],
            tmp_path,
        )
        assert (tmp_path / "k.cubin").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize("which", ["numba_cuda", "plain"])
def test_numba(tmp_path: Path, which: str) -> None:
    """numba-cuda writes the PTX of its NVVM (9.5 with 13.5), Numba's own target an older one: both unchanged, with
    values from the simulator."""
    python = python_with("numba_cuda")
    env = {} if which == "numba_cuda" else {"CUDA_HOME": str(_nvvm(python, tmp_path / "home"))}
    words = [python, str(PROGRAMS / "numba_ptx.py"), str(tmp_path / "out"), *(["plain"] if env else []), "80", "90"]
    run([*words, *([] if env else ["120"])], tmp_path, **env)
    ptxas = script(tmp_path)
    files = sorted((tmp_path / "out").glob("*.ptx"))
    assert len(files) == (4 if env else 6)
    for path in files:
        text = path.read_text()
        assert env or ".version 9." in text
        cubin = path.with_suffix(".cubin")
        run([str(ptxas), str(path), "-arch", path.stem.replace(".sm", " sm_").split()[1], "-o", str(cubin)], tmp_path)
        name = re.search(r"\.visible \.entry (\w+)", text)
        assert name is not None
        x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
        arrays = [[0, 0, a.size, 4, a, a.size, 4] for a in (x, y)]
        sums = path.name.startswith("block_sum")
        Device(cubin.read_bytes()).launch(name[1], 2, 128, [*arrays[0], *arrays[1], *([] if sums else [200])])
        i = np.arange(256)
        expected = np.where(i == 0, x.sum(), 0) if sums else np.where(i < 200, x * 2.5 + i % 7, 0)
        assert (y == expected.astype(np.float32)).all()


def _nvvm(python: str, home: Path) -> Path:
    """The folders of a toolkit where Numba's own target looks for them, from the wheels of that Python."""
    said = run([python, "-c", "import nvidia; print(list(nvidia.__path__)[0])"], home.parent)
    top = Path(said.split()[-1]) / "cu13"
    for name, pattern in (
        ("nvvm/lib64/libnvvm.so", "lib/libnvvm.so*"),
        ("nvvm/libdevice/libdevice.10.bc", "nvvm/libdevice/*.bc"),
        ("lib64/libcudart.so", "lib/libcudart.so*"),
    ):
        real = next(top.glob(pattern), None)
        if real is None:
            pytest.skip(f"the wheels have no {pattern}")
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).symlink_to(real)
    return home


def test_nvcc_of_13_5(tmp_path: Path) -> None:
    """nvcc 13.5 writes PTX 9.5; its own chain runs with orias as its ptxas, and the file is compiled unchanged."""
    python = python_with("numba_cuda")
    said = run([python, "-c", "import nvidia; print(list(nvidia.__path__)[0])"], tmp_path)
    nvcc = Path(said.split()[-1]) / "cu13" / "bin" / "nvcc"
    if not nvcc.exists() or "release 13.5" not in run([str(nvcc), "--version"], tmp_path):
        pytest.skip("no nvcc 13.5 (ORIAS_PYTHONS)")
    (tmp_path / "cuda").mkdir()
    mine = _toolkit(tmp_path / "cuda", nvcc)
    (tmp_path / "other.cu").write_text(OTHER)
    for words in (["-ptx"], ["-cubin"], ["-rdc=true", "-c"]):
        run([str(mine), "-arch=sm_90", *words, "other.cu", "-o", f"out{words[0]}"], tmp_path)
    assert ".version 9.5" in (tmp_path / "out-ptx").read_text()
    (tmp_path / "other.ptx").write_bytes((tmp_path / "out-ptx").read_bytes())
    run([str(script(tmp_path)), "-arch", "sm_90", "other.ptx", "-o", "k.cubin"], tmp_path)
    assert (tmp_path / "k.cubin").read_bytes()[:4] == (tmp_path / "out-cubin").read_bytes()[:4] == b"\x7fELF"


CLANG = """__attribute__((device)) float twice(float x) { return x * 2; }
__attribute__((global)) void scale(float* p, int n) { int i = __nvvm_read_ptx_sreg_tid_x(); \
if (i < n) p[i] = twice(p[i]); }
"""


@pytest.mark.parametrize("words", ["-O2", "-O0", "-O2 -g", "-O2 -fgpu-rdc", "-O2 -gline-tables-only"])
def test_clang(tmp_path: Path, words: str) -> None:
    need("clang")
    (tmp_path / "cuda").mkdir()
    _toolkit(tmp_path / "cuda")
    (tmp_path / "k.cu").write_text(CLANG)
    ptxas = script(tmp_path)
    run(["clang", "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", "--cuda-gpu-arch=sm_80",
        f"--cuda-path={tmp_path}/cuda", f"--ptxas-path={ptxas}",
         *words.split(), "-Wno-unknown-cuda-version", "-c", "k.cu", "-o", "k.o"], tmp_path)  # fmt: skip
    assert b"an open ptxas" in (tmp_path / "k.o").read_bytes() and (tmp_path / "calls").exists()


OPENMP = """int main(void) { int a[64], s = 0;
#pragma omp target teams distribute parallel for map(from: a)
  for (int i = 0; i < 64; i++) a[i] = i * i;
  for (int i = 0; i < 64; i++) s += a[i];
  return s & 1; }
"""


def test_nvptx_as_of_gcc(tmp_path: Path) -> None:
    """GCC's assembler runs the ptxas in PATH on each file, with `-c -o /dev/null`."""
    need("gcc-12", "nvptx-none-as")
    if not Path("/usr/lib/gcc/x86_64-linux-gnu/12/accel/nvptx-none/lto1").exists() and not list(
        Path("/usr/libexec").glob("gcc/*/12/accel/nvptx-none/lto1")
    ):
        pytest.skip("GCC's compiler for nvptx is not installed here")
    script(tmp_path)
    (tmp_path / "omp.c").write_text(OPENMP)
    words = [
        "-fopenmp",
        "-foffload=nvptx-none",
        "-foffload-options=nvptx-none=-march=sm_80 -Wa,--verify",
        "-O2",
        "omp.c",
        "-o",
        "omp",
    ]
    run(["gcc-12", *words], tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert "-c -o /dev/null" in (tmp_path / "calls").read_text() and Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    "words",
    [
        "-cubin -lineinfo",
        "-cubin -G",
        "-rdc=true -c -Xptxas -v",
        "-rdc=true -c -G",
        "-c -Xptxas -v,-warn-spills -lineinfo",
    ],
)
def test_nvcc(tmp_path: Path, words: str) -> None:
    (tmp_path / "cuda").mkdir()
    nvcc = _toolkit(tmp_path / "cuda")
    (tmp_path / "cuda" / "bin" / "ptxas").unlink()
    (tmp_path / "cuda" / "bin" / "ptxas").symlink_to(script(tmp_path))
    for name, text in (("main.cu", CUDA), ("other.cu", OTHER)):
        if name == "main.cu" and "-rdc" not in words:
            continue  # it calls a function of the other file
        (tmp_path / name).write_text(text)
        run([str(nvcc), "-arch=sm_80", *words.split(), name, "-o", "out.o"], tmp_path)
        assert (tmp_path / "out.o").read_bytes()[:4] == b"\x7fELF"
    assert "-arch" in (tmp_path / "calls").read_text()


CMAKE = """cmake_minimum_required(VERSION 3.20)
project(sep LANGUAGES CXX CUDA)
add_executable(sep main.cu other.cu)
set_target_properties(sep PROPERTIES CUDA_SEPARABLE_COMPILATION ON CUDA_ARCHITECTURES "80;90")
target_compile_options(sep PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v -lineinfo>)
"""


@pytest.mark.slow
def test_cmake_with_separable_compilation(tmp_path: Path) -> None:
    need("cmake", "make")
    (tmp_path / "cuda").mkdir()
    nvcc = _toolkit(tmp_path / "cuda")
    for name, text in (("main.cu", CUDA), ("other.cu", OTHER), ("CMakeLists.txt", CMAKE)):
        (tmp_path / name).write_text(text)
    run(["cmake", "-S", ".", "-B", "b", f"-DCMAKE_CUDA_COMPILER={nvcc}"], tmp_path)
    said = run(["cmake", "--build", "b"], tmp_path)
    assert "Compiling entry function '_Z6kernelPf' for 'sm_90'" in said and (tmp_path / "b" / "sep").exists()
