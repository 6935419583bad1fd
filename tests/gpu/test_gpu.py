"""The GPU kit: on this machine's device if there is one, and everywhere its own parts with a fake driver."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests import oracle
from tests.gpu import driver, export, kit, trim
from tests.kernels import host_run
from tests.kernels.model import Expected, compare

HERE = Path(__file__).resolve().parent


def small_elf(kernel: str) -> bytes:
    """An ELF file with the sections that trimming cares about."""
    info = bytes.fromhex("042f0800") + struct.pack("<II", 7, 12) + bytes.fromhex("04110800") + struct.pack("<II", 7, 0)
    bodies = {
        ".shstrtab": b"",
        f".text.{kernel}": bytes(32),
        ".nv.info": info,
        f".nv.info.{kernel}": bytes.fromhex("031bff00") + bytes.fromhex("04370400") + struct.pack("<I", 0x82),
        ".debug_frame": bytes(8),
    }
    names = b"\0" + b"".join(name.encode() + b"\0" for name in bodies)
    bodies[".shstrtab"] = names
    headers, blob = [bytes(64)], b""
    for name, body in bodies.items():
        kind = 3 if name == ".shstrtab" else 1
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<IIQQQQIIQQ", at, kind, 0, 0, 64 + len(blob), len(body), 0, 0, 1, 0))
        blob += body
    head = (
        b"\x7fELF\x02\x01\x01"
        + bytes(9)
        + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(blob), 0, 64, 0, 0, 64, len(headers), 1)
    )
    return head + blob + b"".join(headers)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(the stand-in driver library, the folder with host-built kernels)."""
    reason = host_run.absent()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("fake")
    library = folder / "libfakecuda.so"
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", str(HERE / "fake_cuda.cpp"), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    for name in ("saxpy", "const_global", "struct_param"):
        host_run.build(export.ALL[name], folder)
    return library, folder


@pytest.fixture
def folder(stand_in: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An exported folder of three kernels."""
    monkeypatch.setenv("FAKE_CUDA_KERNELS", str(stand_in[1]))
    cubins = tmp_path / "cubins"
    cubins.mkdir()
    names = ["saxpy", "const_global", "struct_param"]
    for name in names:
        (cubins / f"{name}.cubin").write_bytes(small_elf(name))
    assert export.export(tmp_path / "out", 90, {"orias": cubins}, [*names, "vadd"]) == names
    return tmp_path / "out"


def run_kit(folder: Path, library: Path, *options: str) -> int:
    return kit.main([str(folder), "--libcuda", str(library), *options])


def test_right_results_exit_with_0(
    folder: Path, stand_in: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    found = folder / "found.json"
    assert run_kit(folder, stand_in[0], "--time", "2", "--json", str(found)) == 0
    text = capsys.readouterr().out
    assert "0 of 3 cubins wrong" in text and "registers=4" in text and "us=250.0" in text
    assert {row["kernel"] for row in json.loads(found.read_text())["rows"]} == {"saxpy", "const_global", "struct_param"}


def test_wrong_results_are_found(folder: Path, stand_in: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    case = next(case for case in manifest["cases"] if case["kernel"] == "const_global")
    for rule in (case["launches"][3]["args"][1]["expect"], case["launches"][2]["expect_globals"][0]):
        path = folder / rule["file"]
        data = path.read_bytes()
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
        assert run_kit(folder, stand_in[0], "--kernel", "const_global") == 1
        assert "WRONG const_global" in capsys.readouterr().out
        path.write_bytes(data)
    assert run_kit(folder, stand_in[0], "--kernel", "const_global") == 0


def test_faults_are_one_line(folder: Path, stand_in: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "orias" / "saxpy.cubin").write_bytes(b"rubbish")
    assert run_kit(folder, stand_in[0]) == 1
    text = capsys.readouterr().out
    assert "cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE" in text and "1 of 3 cubins wrong" in text


def test_trim(folder: Path, stand_in: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_kit(folder, stand_in[0], "--kernel", "saxpy", "--trim") == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if "without" in line]
    verdicts = dict(line.removeprefix("without ").split(": ", 1) for line in lines)
    assert verdicts["section .debug_frame"] == "not needed"
    assert verdicts["section .nv.info"].startswith("cuModuleLoadData")
    assert verdicts["record 0x2f of .nv.info"].startswith("cuModuleLoadData")
    assert verdicts["record 0x11 of .nv.info"] == "not needed"
    assert verdicts["record 0x37 of .nv.info.saxpy"] == "not needed"
    assert "all of .nv.info.saxpy, .debug_frame" in verdicts


def test_other_device_is_skipped(folder: Path, stand_in: tuple[Path, Path]) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"sm": 90', '"sm": 120'))
    assert run_kit(folder, stand_in[0]) == kit.SKIPPED


def test_no_driver_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export.export(tmp_path, 90, {}, ["vadd"])
    assert run_kit(tmp_path, tmp_path / "absent.so") == kit.SKIPPED
    assert "skipped: no NVIDIA driver" in capsys.readouterr().out


def test_bad_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        kit.main([str(tmp_path)])
    assert stop.value.code == 2
    assert kit.main([]) == 2
    assert "error:" in capsys.readouterr().err


def test_the_kit_stands_alone(tmp_path: Path) -> None:
    """The exported copy runs without the repository on its path."""
    export.export(tmp_path, 90, {}, ["vadd"])
    command = ["python3", "-I", str(tmp_path / "kit.py"), str(tmp_path), "--libcuda", "absent.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    if "No module named 'numpy'" in done.stderr:
        pytest.skip("the plain python3 has no numpy")
    assert done.returncode == kit.SKIPPED, done.stderr


def test_comparison_agrees_with_the_references() -> None:
    """The kit's comparison and the one of tests/kernels give the same verdict on the same arrays."""
    generator = np.random.default_rng(3)
    pool = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 1 + 2**-23, 1 + 2**-22], np.float32)
    rules = (
        {"ulp": 0, "rel": 0.0, "abs": 0.0},
        {"ulp": 1, "rel": 0.0, "abs": 0.0},
        {"ulp": 0, "rel": 1e-6, "abs": 1e-44},
    )
    verdicts = []
    for _ in range(600):
        want, got = generator.choice(pool, 2), generator.choice(pool, 2)
        mask = generator.random(2) < 0.8
        rule = rules[int(generator.integers(3))]
        ours = compare("x", Expected(want, rule["ulp"], rule["rel"], rule["abs"], mask), got)  # type: ignore[arg-type]
        verdicts.append(not ours)
        assert (kit.differences("x", want, got, rule, mask) == []) == (not ours), (want, got, rule)
    assert 50 < sum(verdicts) < 550


def test_trim_of_records() -> None:
    image = small_elf("k")
    info = next(s for s in trim.sections(image) if s.name == ".nv.info")
    assert [code for code, _, _ in trim.records(image, info)] == [0x2F, 0x11]
    shorter = trim.without_record(image, info, *trim.records(image, info)[0][1:])
    kept = next(s for s in trim.sections(shorter) if s.name == ".nv.info")
    assert [code for code, _, _ in trim.records(shorter, kept)] == [0x11] and len(shorter) == len(image)
    for bad in (b"", b"\x7fELF", image[:100], image[:-10]):
        with pytest.raises(trim.BadCubin):
            trim.sections(bad)


def test_on_this_machines_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ptxas's cubins of every kernel on the real device."""
    try:
        capability = driver.Driver().capability()
    except driver.NoDriver as error:
        pytest.skip(str(error))
    oracle.require("ptxas")
    cubins = tmp_path / "cubins"
    cubins.mkdir()
    for name, spec in export.ALL.items():
        if capability < spec.min_sm:
            continue
        built = oracle.run_ptxas(spec.ptx(75), capability)
        assert isinstance(built, Path), str(built)
        (cubins / f"{name}.cubin").write_bytes(built.read_bytes())
    export.export(tmp_path / "out", capability, {"ptxas": cubins}, list(export.ALL))
    assert kit.main([str(tmp_path / "out")]) == 0, capsys.readouterr().out
