"""orias-check on saved streams."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ir_format import wire
from ir_format.model import Reg, Unit
from orchestrator.__main__ import _run
from orchestrator.api import compile_ptx
from stages.check.cli import app
from stages.check.coding import image
from stages.check.streams import Stream
from stages.disasm.cubin import read_cubin
from stages.plumbing.runner import Flags

ROOT = Path(__file__).parents[2]
NAMES = ("parse", "lower", "optimize", "regalloc", "schedule", "encode")


def streams(arch: str, text: str) -> dict[str, bytes]:
    out: dict[str, bytes] = {}
    compile_ptx(text, arch, streams=out)
    return out


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    for name, data in streams("sm_90", (ROOT / "tests/kernels/ptx/sm_90/softmax.ptx").read_text()).items():
        (folder / f"{name}.ori").write_bytes(data)
    return folder


def check(*args: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(a) for a in args])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize("name", NAMES)
def test_every_level_is_judged(saved: Path, name: str) -> None:
    code, said = check(saved / f"{name}.ori")
    assert (code, said.split(",")[0]) == (0, "0 findings")
    assert ("instructions" in said) == (name in ("schedule", "encode"))


def test_an_allocation_is_judged_against_what_was_allocated(saved: Path) -> None:
    assert check(saved / "regalloc.ori", "--before", saved / "optimize.ori")[0] == 0


def changed(data: bytes, level: str, change: object) -> bytes:
    """A stream with `change` applied to its units."""
    out = io.BytesIO()
    writer = wire.Writer(out.write)
    for tag, body in wire.records(io.BytesIO(data)):
        if tag == "unit":
            unit = wire.unit_from_wire(body, level)
            change(unit)  # type: ignore[operator]
            body = wire.unit_to_wire(unit)
        if tag != "end":
            writer.record(tag, body)
    writer.end()
    return out.getvalue()


def test_a_foreign_allocation_that_mixes_registers_up_is_found(saved: Path, tmp_path: Path) -> None:
    def wrong(unit: Unit) -> None:
        i = next(
            i
            for f in unit.functions
            for b in f.blocks
            for i in b.insts
            if i.op == "FFMA" and type(i.srcs[0]) is Reg and i.srcs[0].num < 90
        )
        r = i.srcs[0]
        assert isinstance(r, Reg)
        i.srcs = (r._replace(num=r.num + 1), *i.srcs[1:])

    file = tmp_path / "x.ori"
    file.write_bytes(changed((saved / "regalloc.ori").read_bytes(), "allocated", wrong))
    assert check(file)[0] == 0  # no rule of the level is broken
    code, said = check(file, "--before", saved / "optimize.ori")
    assert code == 1 and "FFMA" in said


def test_an_instruction_without_its_slots_breaks_a_rule(saved: Path, tmp_path: Path) -> None:
    def wrong(unit: Unit) -> None:
        i = next(i for f in unit.functions for b in f.blocks for i in b.insts if i.op == "IADD3")
        i.dsts = i.dsts[:1]
        i.srcs = i.srcs[:2]

    file = tmp_path / "x.ori"
    file.write_bytes(changed((saved / "optimize.ori").read_bytes(), "ori", wrong))
    code, said = check(file)
    assert code == 1 and "no encoding" in said


def test_a_short_stall_is_found_in_a_scheduled_stream(saved: Path, tmp_path: Path) -> None:
    def wrong(unit: Unit) -> None:
        for i in (i for f in unit.functions for b in f.blocks for i in b.insts):
            if i.ctl is not None and i.ctl.stall > 3:
                i.ctl = i.ctl._replace(stall=1)

    file = tmp_path / "x.ori"
    file.write_bytes(changed((saved / "schedule.ori").read_bytes(), "scheduled", wrong))
    code, said = check(file)
    assert code == 1 and "need" in said


def test_bad_input_is_a_diagnostic(saved: Path, tmp_path: Path) -> None:
    whole = (saved / "regalloc.ori").read_bytes()
    (tmp_path / "cut.ori").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "cubin").write_bytes(b"\x7fELF")
    for args in (
        (tmp_path / "cut.ori",),
        (saved / "regalloc.ori", "--before", saved / "parse.ori"),
        (saved / "regalloc.ori", "--before", tmp_path / "cut.ori"),
        (saved / "schedule.ori", "--before", saved / "optimize.ori"),
        (saved / "regalloc.ori", "--before", tmp_path / "absent.ori"),
        (tmp_path / "cubin", "--before", saved / "optimize.ori"),
        (tmp_path / "absent.ori",),
    ):
        code, said = check(*args)
        assert code == 2 and said.startswith("orias-check: "), said


@pytest.mark.parametrize(("arch", "level"), [("sm_75", 3), ("sm_80", 3), ("sm_90", 2), ("sm_120", 3), ("sm_90", 0)])
def test_all_stages_keep_to_the_rules_of_their_level(arch: str, level: int) -> None:
    """With the verifier and the allocation checker after every stage, the sixteen kernels pass."""
    flags = {name: Flags(quiet=True, verify=True) for name in NAMES[1:]}
    compile_ptx((ROOT / f"tests/kernels/ptx/{arch}/all16.ptx").read_text(), arch, {"opt-level": level}, flags=flags)


def test_a_cut_width_breaks_a_rule(saved: Path, tmp_path: Path) -> None:
    """Half of a pair where an instruction reads the pair: the other half would be whatever follows it."""

    def wrong(unit: Unit) -> None:
        insts = [i for f in unit.functions for b in f.blocks for i in b.insts if "WIDE" in i.mods]
        i = next(i for i in insts if type(i.srcs[2]) is Reg and i.srcs[2].num >= 0)
        assert isinstance(i.srcs[2], Reg) and i.srcs[2].width == 2
        i.srcs = (*i.srcs[:2], i.srcs[2]._replace(width=1), *i.srcs[3:])

    for name, level in (("optimize", "ori"), ("regalloc", "allocated")):
        file = tmp_path / f"{name}.ori"
        file.write_bytes(changed((saved / f"{name}.ori").read_bytes(), level, wrong))
        code, said = check(file)
        assert code == 1 and "another width" in said


def test_a_lost_definition_is_found_and_refused(saved: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def wrong(unit: Unit) -> None:
        for block in unit.functions[0].blocks:
            block.insts = [i for i in block.insts if "WIDE" not in i.mods]

    file, out = tmp_path / "x.ori", tmp_path / "x.cubin"
    file.write_bytes(changed((saved / "optimize.ori").read_bytes(), "ori", wrong))
    code, said = check(file)
    assert code == 1 and "which nothing defines" in said
    assert (
        _run(["--start-from", str(file), "-o", str(out)]) == 255 and "which nothing defines" in capfd.readouterr().err
    )
    assert _run(["--start-from", str(file), "--allow-undefined", "-o", str(out)]) == 0


def test_a_word_of_a_helper_is_held_against_the_stream() -> None:
    """Symbols of functions inside a kernel's section have a prefix."""
    made: dict[str, bytes] = {}
    cubin = compile_ptx((ROOT / "tests/kernels/ptx/sm_90/divrem64.ptx").read_text(), "sm_90", streams=made)
    stream = Stream(made["encode"])
    module, units = wire.module_from_wire(wire.unpack(stream.module)), list(stream.units())
    assert list(image(module, units, cubin)) == []
    (section,) = [s for s in read_cubin(cubin).sections if s.name.startswith(".text.")]
    at = section.offset + next(offset for offset, _, name, _ in section.symbols if "div" in name and "$" in name)
    damaged = cubin[: at + 4] + bytes([cubin[at + 4] ^ 1]) + cubin[at + 5 :]
    assert [x for x in image(module, units, damaged) if "the word differs" in x]
