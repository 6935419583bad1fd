"""The convergence checker is silent on ptxas's cubins and ours, and names the fault in altered ones; the race detector
and the orders find missing barriers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from orchestrator.api import ChainError, compile_ptx
from stages.check.command import check_compiled
from stages.check.convergence_checker import check_bytes, check_cubin
from stages.disasm.cubin import WORD, read_cubin
from stages.simulate import Device, SimError
from stages.simulate.orders import ORDERS
from tests import oracle
from tests.check.convergence.cases import CASES, HERE, Case
from tests.check.convergence_changes import changes
from tests.check.test_schedule import sources
from tests.oracle import NOP_WORD

KINDS = {
    "BSSY dropped": {"unset"}, "BSYNC dropped": {"target"}, "BSSY target": {"target", "elsewhere"},
    "BSSY register": {"target"}, "BSYNC register": {"target"},
    "BREAK register": {"unset"}, "BREAK dropped": {"nesting", "left", "overwritten", "warpsync"},
}  # fmt: skip


@cache
def theirs(feature: int, sm: str) -> bytes:
    oracle.require("ptxas")
    got = oracle.run_ptxas(HERE / f"kernels{feature}.ptx", sm)
    assert isinstance(got, Path), got
    return got.read_bytes()


@cache
def ours(feature: int, sm: str) -> bytes:
    return compile_ptx((HERE / f"kernels{feature}.ptx").read_text(), f"sm_{sm}", {})


def found(data: bytes, own: bool = False) -> list[str]:
    """Findings; for our code notes as well."""
    report = check_bytes(data)
    assert report.unjudged == []
    return [str(f) for f in (*report.findings, *(report.notes if own else ()))]


@pytest.mark.oracle
@pytest.mark.parametrize("sm", ["75", "90", "120"])
def test_silent_on_ptxas(sm: str) -> None:
    assert found(theirs(75, sm)) == []
    for path in sources(int(sm))[::23]:
        cubin = oracle.run_ptxas(path, "90a" if sm == "90" else sm)
        if isinstance(cubin, Path):
            assert found(cubin.read_bytes()) == [], path


@pytest.mark.parametrize("sm", ["120"])
def test_silent_on_ours(sm: str) -> None:
    assert found(ours(75, sm), own=True) == []
    for path in sources(int(sm))[3::40]:
        try:
            data = compile_ptx(path.read_text(), f"sm_{sm}", {})
        except ChainError:
            continue
        assert found(data, own=True) == [], path


@pytest.mark.oracle
@pytest.mark.parametrize("sm", ["75", "120"])
def test_every_broken_convergence_barrier_is_found(sm: str) -> None:
    cubin = read_cubin(theirs(75, sm))
    made = 0
    for change in list(changes(cubin, frozenset(("exits", "called", "early_exit", "grid_barrier", "loop_barrier"))))[
        ::2
    ]:
        kinds = KINDS.get(change.kind)
        if kinds is not None:
            broken = read_cubin(change.bytes(cubin))
            report = check_cubin(broken._replace(sections=broken.sections[change.section : change.section + 1]), {})
            assert {f.kind for f in (*report.findings, *report.notes)} & kinds, change
            made += 1
    assert made >= 30


@pytest.mark.oracle
def test_a_block_barrier_on_the_path_of_some_threads_before_reconvergence() -> None:
    """A barrier on the path of only some threads: the BAR.SYNC before a BSSY replaces an instruction between the branch
    and BSYNC."""
    cubin = read_cubin(theirs(75, "90"))
    section = next(s for s in cubin.sections if s.name.endswith("bitonic"))
    words = section.words
    bar = next(n for n, w in enumerate(words) if w & 0xFFF == 0xB1D)
    branch = next(n for n, w in enumerate(words) if n > bar and w & 0xFFF == 0x947)
    assert words[branch + 1] & 0xFFF != 0x941
    data = bytearray(cubin.data)
    at = section.offset + (branch + 1) * WORD
    data[at : at + WORD] = words[bar].to_bytes(WORD, "little")
    assert {f.kind for f in check_bytes(bytes(data)).findings} == {"barrier"}


def without(data: bytes, kernel: str, opcode: int, only: int = -1) -> bytes:
    """The cubin without the instructions of an opcode (or the n-th of them)."""
    cubin = read_cubin(data)
    section = next(s for s in cubin.sections if s.name == kernel or s.name.endswith(f".{kernel}"))
    out = bytearray(data)
    places = [n for n, w in enumerate(section.words) if w & 0xFFF == opcode]
    for n in places if only < 0 else places[only : only + 1]:
        at = section.offset + n * WORD
        out[at : at + WORD] = NOP_WORD.to_bytes(WORD, "little")
    return bytes(out)


def launch(data: bytes, case: Case, **how: object) -> tuple[str, list[str]]:
    args = case.args()
    stats = Device(data).launch(case.name, case.grid, case.block, args, limit=400_000, **how)  # type: ignore[arg-type]
    return case.check(args), [r.kind for r in stats.races]


def case_of(name: str) -> Case:
    return next(c for c in CASES if c.name == name)


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.name not in ("spin_lock", "flag_wait", "grid_barrier", "ticket_lock")],
    ids=lambda c: c.name,
)
def test_our_synchronizing_kernels(case: Case) -> None:
    """Right values, no races, in the machine's order and a random one."""
    data = ours(case.sm, "80")
    assert launch(data, case, races=True) == ("", [])
    assert launch(data, case, order="random", seed=5) == ("", [])


@pytest.mark.parametrize("name", ["spin_lock", "flag_wait", "ticket_lock", "grid_barrier"])
def test_locks_and_flags(name: str) -> None:
    data = ours(75, "90")
    assert launch(data, case_of(name), races=True) == ("", [])
    assert launch(data, case_of(name), order="far") == ("", [])


@pytest.mark.parametrize("name", ["bitonic", "scan_steps", "scan_tree", "reduce_shared", "transpose", "loop_barrier"])
def test_without_barriers_it_races_and_orders_show_it(name: str) -> None:
    case = case_of(name)
    data = without(ours(75, "90"), name, 0xB1D)
    assert "race" in launch(data, case, races=True)[1]
    assert [order for order in ORDERS if launch(data, case, order=order, seed=1)[0]]


@pytest.mark.parametrize(
    ("name", "opcode"), [("flag_wait", 0x992), ("last_block", 0x992), ("message_acq", 0x992), ("ticket_lock", 0x992)]
)
def test_without_fences_it_races(name: str, opcode: int) -> None:
    case = case_of(name)
    assert "race" in launch(without(ours(case.sm, "90"), name, opcode), case, races=True)[1]


def test_a_deadlock_names_its_warps() -> None:
    case = case_of("halves")
    data = without(ours(75, "90"), "halves", 0xB1D, 0)
    with pytest.raises(SimError, match=r"deadlock|thread count"):
        launch(_count(data), case)


def _count(data: bytes) -> bytes:
    """The remaining barrier waits for 96 threads instead of 64."""
    cubin = read_cubin(data)
    for change in changes(cubin, frozenset(("halves",))):
        if change.kind == "BAR count":
            return change.bytes(cubin)
    raise AssertionError("no barrier with a count")


def test_command_line_reports_convergence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cubin = read_cubin(ours(75, "90"))
    change = next(c for c in changes(cubin, frozenset(("exits",))) if c.kind == "BSSY dropped")
    path = tmp_path / "k.cubin"
    path.write_bytes(change.bytes(cubin))
    assert check_compiled(path) == 1
    assert "convergence, unset: " in capsys.readouterr().out


def test_a_diverged_warp_at_a_block_barrier() -> None:
    """Without WARPSYNC before BAR.SYNC, the thread that waited for the flag arrives alone."""
    case = case_of("flag_wait")
    cubin = read_cubin(ours(75, "90"))
    broken = [c.bytes(cubin) for c in changes(cubin, frozenset(("flag_wait",))) if c.kind == "WARPSYNC dropped"]
    assert broken
    assert any("parted" in launch(data, case, races=True)[1] for data in broken)


@pytest.mark.oracle
def test_a_cubin_without_abi_is_read(tmp_path: Path) -> None:
    """A variable in local memory outside functions: ptxas makes a cubin of another version, whose flags have the SM
    elsewhere than new ones."""
    path = tmp_path / "k.ptx"
    path.write_text(
        ".version 2.3\n.target sm_20\n.address_size 64\n.local .b32 scratch;\n.entry k (.param .u64 o) { "
        ".reg .u64 %d; .reg .u32 %r;\n"
        "ld.param.u64 %d, [o]; mov.u32 %r, 7; st.local.u32 [scratch], %r; ld.local.u32 %r, [scratch]; "
        "st.global.u32 [%d], %r; exit; }\n"
    )
    oracle.require("ptxas")
    got = oracle.run_ptxas(path, "75")
    assert isinstance(got, Path), got
    data = got.read_bytes()
    assert data[8] == 2
    assert read_cubin(data).sm == 75
    assert found(data) == []
