"""orias in ptxas's place: the command lines of Triton, XLA, clang and nvcc, and a CUDA toolkit whose ptxas is orias."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import oracle

ROOT = Path(__file__).parents[2]
PTX = """.version 7.8
.target sm_75
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b64 %rd<3>; .reg .f32 %f<3>;
    ld.param.u64 %rd1, [p];
    ld.global.f32 %f1, [%rd1];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd1], %f2;
    ret;
}
"""
SECOND = PTX.replace("entry k(", "entry k2(")
#: f64 in one of two kernels, and one that keeps 40 values.
LOUD = (
    PTX
    + """.visible .entry wide(.param .u64 p) {
    .reg .b64 %rd<3>; .reg .f32 %f<60>; .reg .f64 %d<3>;
    ld.param.u64 %rd1, [p];
    ld.global.f64 %d1, [%rd1+1024];
    add.f64 %d2, %d1, %d1;
    st.global.f64 [%rd1+1024], %d2;
"""
    + "".join([f"    ld.volatile.global.f32 %f{i}, [%rd1+{4 * i}];\n" for i in range(40)])
    + "    bar.sync 0;\n"
    + "".join([f"    st.volatile.global.f32 [%rd1+{4 * i}], %f{39 - i};\n" for i in range(40)])
    + "    ret;\n}\n"
)


def orias(
    folder: Path, words: str, files: dict[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command line of ptxas in ``folder``, with these files in it."""
    for name, text in (files or {"k.ptx": PTX}).items():
        (folder / name).write_text(text)
    command = [sys.executable, "-P", "-m", "orchestrator", *words.split()]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "output"),
    [
        ("-lineinfo -v --gpu-name=sm_90a k.ptx -o k.cubin", "k.cubin"),  # Triton
        ("-lineinfo -v --fmad=false --opt-level 0 --gpu-name=sm_80 k.ptx -o k.cubin", "k.cubin"),  # Triton, debugging
        ("k.ptx -o k.cubin -arch=sm_90 --warn-on-spills", "k.cubin"),  # XLA
        ("-m64 -O3 -v --gpu-name sm_80 --output-file x.o k.ptx -c", "x.o"),  # clang
        (
            "-m64 -g --dont-merge-basicblocks --return-at-end --gpu-name sm_80 --output-file x.o k.ptx",
            "x.o",
        ),  # clang -g
        ("-arch=sm_80 -m64 k.ptx -o k.cubin", "k.cubin"),  # nvcc
        (
            (
                "-w -split-compile=2 -arch=sm_80 -m64 --compile-only -maxrregcount=32 --generate-line-info "
                "-split-compile=2 k.ptx -o k.cubin"
            ),
            "k.cubin",
        ),
        (
            "-arch=sm_80 -m64 -ewp --device-stack-protector=true --allow-expensive-optimizations=true k.ptx -o k.cubin",
            "k.cubin",
        ),
        ("-arch sm_86 k.ptx k2.ptx", "elf.o"),
        ("-arch sm_86 -o out.cubin -", "out.cubin"),
        ("-arch sm_86 k.ptx -o -", "-"),
        ("-sp-bounds-check -annotate -arch sm_90 -preserve-relocs k.ptx", "elf.o"),
        ("-e k2 k.ptx k2.ptx", "elf.o"),
    ],
)
def test_command_lines_of_other_programs(tmp_path: Path, words: str, output: str) -> None:
    got = orias(tmp_path, words, {"k.ptx": PTX, "k2.ptx": SECOND}, stdin=PTX)
    assert got.returncode == 0, got.stderr
    data = (tmp_path / output).read_bytes()
    assert data[:4] == b"\x7fELF"
    assert (b".text.k2\0" in data) == ("k2" in words) and (b".text.k\0" in data) == ("-e k2" not in words)
    if " -v" in words:
        assert re.search(r"^ptxas info    : Compiling entry function 'k' for 'sm_\d+a?'$", got.stderr, re.M)
        assert re.search(r"^    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads$", got.stderr, re.M)
        assert re.search(r"^ptxas info    : Used \d+ registers, used 0 barriers", got.stderr, re.M)


def test_programs_that_ask_for_the_version_get_the_release(tmp_path: Path) -> None:
    text = orias(tmp_path, "--version").stdout
    assert re.search(r".*release (\d+\.\d+).*", text) and re.search(r"\bV\d+\.\d+\.\d+\b", text)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            "-warn-spills -maxrregcount 24",
            0,
            (
                r"ptxas warning : Registers are spilled to local memory in function 'wide', "
                r"\d+ bytes spill stores, \d+ bytes spill loads\n"
            ),
        ),
        (
            "-warn-spills -maxrregcount 24 -Werror",
            255,
            (
                r"ptxas error   : Registers are spilled to local memory in function 'wide', "
                r"\d+ bytes spill stores, \d+ bytes spill loads\n"
            ),
        ),
        ("-warn-spills -maxrregcount 24 -w", 0, ""),
        ("-warn-spills", 0, ""),
        (
            "-warn-lmem-usage -maxrregcount 24",
            0,
            r"ptxas warning : Local memory used for function 'wide', size of stack frame: \d+ bytes\n",
        ),
        (
            "-warn-double-usage",
            0,
            r"(ptxas t.ptx, line \d+; warning : Program is doing double precision computations.\n){3}",
        ),
        (
            "-warn-double-usage -Werror",
            255,
            (
                r"(ptxas t.ptx, line \d+; error   : Program is doing double precision computations.\n){3}ptxas "
                r"fatal   : Ptx assembly aborted due to errors\n"
            ),
        ),
        ("-warn-double-usage -w -Werror", 0, ""),
        ("-e nosuch", 255, "ptxas fatal   : Unknown function nosuch\n"),
        (
            "-legacy-bar-warp-wide-behavior",
            0,
            r"ptxas warning : '--legacy-bar.*\nptxas warning : Command line option.*'.target sm_70', will be ignored\n",
        ),
        (
            "-g-tmem-access-check",
            0,
            r"ptxas info    : Command line option .* not supported for '.target sm_75', will be ignored\n",
        ),
        (
            "-g -Werror",
            255,
            (
                "ptxas error   :  .debug_abbrev section not found\nptxas error   : "
                " .debug_info section not found\nptxas fatal   : Ptx assembly aborted due to errors\n"
            ),
        ),
    ],
)
def test_warnings(tmp_path: Path, words: str, code: int, said: str) -> None:
    got = orias(tmp_path, f"{words} -arch sm_80 t.ptx", {"t.ptx": LOUD})
    assert got.returncode == code and re.fullmatch(said, got.stderr), got.stderr
    assert (tmp_path / "elf.o").exists() == (code == 0)


CUDA = """#include <cstdio>
extern __device__ float other(float); extern __constant__ float table[4]; extern __device__ int count;
__global__ void kernel(float* p) { __shared__ float s[64]; s[threadIdx.x] = p[threadIdx.x]; __syncthreads();
  p[threadIdx.x] = other(s[63 - threadIdx.x]) / table[2]; if (atomicAdd(&count, 1) == 5) printf("five %d\\n", count); }
int main() { kernel<<<1, 64>>>(nullptr); return 0; }
"""
OTHER = """__constant__ float table[4] = {1, 2, 3, 4}; __device__ int count = 3;
__device__ float other(float x) { float a[9]; for (int i = 0; i < 9; i++) a[i * 7 % 9] = x * i; \
return sinf(a[(int)x % 9]); }
"""


def _toolkit(folder: Path, nvcc: Path | None = None) -> Path:
    """A tree of links to the toolkit (of ``nvcc``) whose ptxas is orias; nvcc of it. Skips without a whole toolkit."""
    if nvcc is None:
        oracle.require("nvcc", "nvlink", "cuobjdump")
        nvcc = oracle.find("nvcc")
    done = subprocess.run([str(nvcc), "--dryrun", "-cubin", "x.cu"], capture_output=True, text=True, check=False)
    top = re.search(r"^#\$ TOP=(.*)$", done.stderr + done.stdout, re.M)
    if top is None or shutil.which("g++") is None:
        pytest.skip("no whole CUDA toolkit, or no host compiler")
    real = Path(top[1]).resolve()
    for path in real.iterdir():
        if path.name != "bin":
            (folder / path.name).symlink_to(path)
    (folder / "bin").mkdir()
    for path in (real / "bin").iterdir():
        if path.name != "ptxas":
            (folder / "bin" / path.name).symlink_to(path)
    script = folder / "bin" / "ptxas"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m orchestrator "$@"\n')
    script.chmod(0o755)
    return folder / "bin" / "nvcc"


@pytest.mark.oracle
def test_nvcc_with_orias_as_its_ptxas(tmp_path: Path) -> None:
    """nvcc's own steps around ptxas take what orias writes: fatbinary, nvlink, the host linker."""
    (tmp_path / "cuda").mkdir()
    nvcc = _toolkit(tmp_path / "cuda")
    (tmp_path / "main.cu").write_text(CUDA)
    (tmp_path / "other.cu").write_text(OTHER)

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(nvcc), *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    said = run("-arch=sm_80", "-cubin", "-Xptxas", "-v,-warn-spills", "-lineinfo", "other.cu")
    assert "bytes gmem" in said
    assert b"an open ptxas" in (tmp_path / "other.cubin").read_bytes()
    run(
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_90,code=sm_90",
        "-rdc=true",
        "main.cu",
        "other.cu",
        "-o",
        "program",
    )
    listed = oracle.cuobjdump(tmp_path / "program", "-sass")
    assert listed.count("Function : _Z6kernelPf") == 2 and "EXIT" in listed
