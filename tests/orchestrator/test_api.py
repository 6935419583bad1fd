"""The package `orias` as a library in a program."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import orias
from tests import oracle
from tests.chain.corpus import cubin, ptx_path

BAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<4>;
  ad.s32 %r1, %r2, %r3;
  ret;
}
"""


def test_a_kernel_with_all_that_is_known_of_it() -> None:
    c = orias.compile(ptx_path("matmul", "sm_90"))
    assert c.image == cubin("matmul", "sm_90") == bytes(c)
    k = c.kernels["matmul"]
    assert (k.arch, k.stack, k.spill_stores, k.spill_loads, k.barriers) == ("sm_90", 0, 0, 0, 1)
    assert k.shared == 2 * 16 * 16 * 4
    assert k.parameters == 3 * 8 + 3 * 4
    assert f"Used {k.registers} registers, used 1 barriers, {k.shared} bytes smem" in c.report
    assert c.diagnostics == ()
    listing = orias.disassemble(c)
    assert listing.count("BAR.SYNC") == 2 and "/* 0x" in orias.disassemble(c, hex=True)
    assert orias.check(c)


def test_options_have_the_names_of_the_command_line() -> None:
    ptx = ptx_path("saxpy", "sm_80").read_text()
    assert orias.compile(ptx, "sm_80", opt_level=0) == orias.compile(ptx, "sm_80", O=0)
    assert orias.compile(ptx, "sm_80", fmad=False).image != orias.compile(ptx, "sm_80", lineinfo=True).image
    few = orias.compile(ptx_path("softmax", "sm_90"), maxrregcount=24).kernels["softmax"]
    assert few.registers <= 24 and few.spill_loads > 0 and few.stack > 0
    small = orias.compile(ptx, "sm_80", maxrregcount=16)
    assert [d.severity for d in small.diagnostics] == ["warning"] and "24" in small.diagnostics[0].message


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"maxregs": 3}, "there is no option 'maxregs'; there are .*maxrregcount"),
        ({"output_file": "x"}, "there is no option 'output_file'"),
        ({"fmad": "perhaps"}, "expected true or false"),
        ({"verbose": 3}, "on or off"),
        ({"opt_level": "x"}, "expected a number"),
        ({"opt_level": True}, "takes a value"),
        ({"arch": "sm_99"}, "'sm_99' is not defined"),
        ({"arch": "compute_90"}, "no target of a cubin"),
    ],
)
def test_unknown_options_are_errors(given: dict[str, object], text: str) -> None:
    with pytest.raises(orias.OptionError, match=text):
        orias.compile(BAD, **given)  # type: ignore[arg-type]


def test_diagnostics_have_places_and_hints() -> None:
    with pytest.raises(orias.CompileError) as e:
        orias.compile(BAD, name="bad.ptx")
    d = e.value.diagnostics[0]
    assert (d.severity, d.file, d.line, d.column) == ("error", "bad.ptx", 7, 3)
    assert d.hint.startswith("did you mean add")
    assert str(e.value).startswith("ptxas bad.ptx, line 7; error   : Not a name of any known instruction: 'ad'\n")


def test_threads_take_turns_and_no_process_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **more: object) -> None:
        raise AssertionError("a process is started")

    monkeypatch.setattr("os.fork", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    jobs = [(k, a) for k in ("vadd", "saxpy", "reduce_sum", "scan") for a in ("sm_75", "sm_90")]
    bad: list[str] = []

    def faulty() -> None:
        try:
            orias.compile(BAD)
        except orias.CompileError as e:
            bad.append(str(e))

    threads = [threading.Thread(target=faulty) for _ in range(3)]
    for t in threads:
        t.start()
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda j: orias.compile(ptx_path(*j)).image, jobs))
    for t in threads:
        t.join()
    assert got == [cubin(*j) for j in jobs]
    assert len(set(bad)) == 1 and len(bad) == 3


def test_a_run_in_the_simulator() -> None:
    c = orias.compile(ptx_path("vadd", "sm_90"))
    a, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    stats = orias.run(c.image, "vadd", grid=2, block=32, args=[a, a, out, np.int32(64)], strict=True)
    assert (out == 2 * a).all() and stats.blocks == 2 and not stats.hazards


def test_passes_are_those_of_the_stages() -> None:
    from stages.optimize.passes import PASSES

    found = orias.passes()
    assert list(found) == ["lower", "optimize", "regalloc", "schedule", "encode"]
    assert [p.name for p in found["optimize"]] == [p.name for p in PASSES]
    assert next(p for p in found["regalloc"] if p.name == "allocate").required


def test_a_file_is_saved_whole(tmp_path: Path) -> None:
    c = orias.compile(ptx_path("vadd", "sm_90"))
    c.save(tmp_path / "k.cubin")
    assert (tmp_path / "k.cubin").read_bytes() == c.image


def test_names_of_the_checkout_are_the_same_modules() -> None:
    import orias.ir_format.model as second
    from orias.stages.elf import link

    import ir_format.model
    import stages.elf.link

    assert link is stages.elf.link and second is ir_format.model
    assert link.__name__ == "stages.elf.link" and link.__spec__.name == "stages.elf.link"
    with pytest.raises(ModuleNotFoundError):
        import orias.stages.nowhere  # type: ignore[import-not-found]  # noqa: F401


def test_occupancy_is_that_of_the_toolkits_calculator(tmp_path: Path) -> None:
    header = oracle.cuda_header("cuda_occupancy.h")
    if header is None:
        pytest.skip("cuda_occupancy.h is not there")
    chips = {
        "sm_75": (64, 1024),
        "sm_80": (164, 2048),
        "sm_86": (100, 1536),
        "sm_90": (228, 2048),
        "sm_120": (100, 1536),
    }
    cases = [
        (arch, regs, shared, threads)
        for arch in chips
        for regs in (16, 40, 72, 128, 255)
        for shared in (0, 1000, 9000, 40000)
        for threads in (32, 96, 256, 512)
        if regs * threads <= 65536
    ]  # fmt: skip
    rows = [
        f"{{{int(a[3:]) // 10},{int(a[3:]) % 10},{chips[a][0] << 10},{chips[a][1]},{r},{s},{t}}}"
        for a, r, s, t in cases
    ]
    source = tmp_path / "o.cpp"
    source.write_text(
        f'#include <cstddef>\n#include <cstdio>\n#include "{header}"\nint rows[][7] = {{{",".join(rows)}}};\n'
        """int main() {
  for (auto &r : rows) {
    cudaOccDeviceProp p{};
    p.computeMajor = r[0]; p.computeMinor = r[1]; p.maxThreadsPerBlock = 1024; p.maxThreadsPerMultiprocessor = r[3];
    p.regsPerBlock = p.regsPerMultiprocessor = 65536; p.warpSize = 32; p.sharedMemPerBlock = 49152;
    p.sharedMemPerMultiprocessor = r[2]; p.numSms = 1; p.sharedMemPerBlockOptin = r[2] - 1024 * (r[0] > 7);
    p.reservedSharedMemPerBlock = 1024 * (r[0] > 7);
    cudaOccFuncAttributes a{};
    a.maxThreadsPerBlock = 1024; a.numRegs = r[4]; a.sharedSizeBytes = r[5];
    a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    a.maxDynamicSharedSizeBytes = r[2];
    cudaOccDeviceState s{};
    s.carveoutConfig = 100;
    cudaOccResult out{};
    int e = cudaOccMaxActiveBlocksPerMultiprocessor(&out, &p, &a, &s, r[6], 0);
    std::printf("%d\\n", e ? -e : out.activeBlocksPerMultiprocessor);
  }
}
"""
    )
    subprocess.run(["g++", "-O0", "-o", str(tmp_path / "o"), str(source)], check=True, timeout=120)
    wanted = [
        int(n) for n in subprocess.run([tmp_path / "o"], capture_output=True, text=True, check=True).stdout.split()
    ]
    got = [orias.Kernel("k", a, r, 0, 0, 0, s, 0, 0, 0, 0).occupancy(t).blocks for a, r, s, t in cases]
    assert {c: (g, w) for c, g, w in zip(cases, got, wanted, strict=True) if g != w} == {}


def test_importing_it_imports_little() -> None:
    code = (
        "import sys; import orias; own = {m for m in sys.modules if m.split('.')[0] in "
        "('orias', 'stages', 'orchestrator', 'ir_format', 'msgpack', 'typer', 'elftools', 'numpy')}; "
        "assert len(own) < 12, own"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def _said(tmp_path: Path, text: str, *words: str) -> str:
    """Standard error of a failing compile."""
    (tmp_path / "bad.ptx").write_text(text)
    command = [sys.executable, "-m", "orchestrator", "bad.ptx", "-arch=sm_90", "-o", "o.cubin", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 255 and not (tmp_path / "o.cubin").exists()
    return done.stderr


def test_messages_as_json_and_sarif(tmp_path: Path) -> None:
    rows = json.loads(_said(tmp_path, BAD, "--diagnostics-format", "json"))
    assert rows[0] == {
        "severity": "error",
        "message": "Not a name of any known instruction: 'ad'",
        "file": "bad.ptx",
        "line": 7,
        "column": 3,
        "source": "  ad.s32 %r1, %r2, %r3;",
        "hint": rows[0]["hint"],
    }
    log = json.loads(_said(tmp_path, BAD, "--diagnostics-format=sarif"))
    (one, *_) = log["runs"][0]["results"]
    place = one["locations"][0]["physicalLocation"]
    assert (one["level"], place["artifactLocation"]["uri"]) == ("error", "bad.ptx")
    assert place["region"] == {"startLine": 7, "startColumn": 3, "snippet": {"text": "  ad.s32 %r1, %r2, %r3;"}}


def test_explain_names_the_column(tmp_path: Path) -> None:
    assert "\n    --> bad.ptx:7:3\n" in _said(tmp_path, BAD, "--explain")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (BAD.replace("ad.s32 %r1, %r2, %r3;", "add.s32 %r1, %r2, %r3"), "line 7 does not end in ';'"),
        ("#include <a>\n__global__ void k(int *p) {}\n", "CUDA C++"),
        ("target triple = 'nvptx64'\n", "LLVM IR"),
        ("hello\n", "PTX begins with .version"),
    ],
)
def test_hints(text: str, hint: str) -> None:
    with pytest.raises(orias.CompileError) as e:
        orias.compile(text, "sm_90")
    assert any(hint in d.hint for d in e.value.diagnostics), e.value.diagnostics
