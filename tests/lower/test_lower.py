"""Lowering as a whole: the result is legal for the SM, nothing is dropped, refusals name instruction and line, names do
not matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.model import PSEUDO
from ir_format.verify import verify_unit
from tests.lower.helpers import insts, kernel, lower_text, names
from tests.parse.generate import Case, accepted
from tests.parse.generate import kernel as one_kernel

PTX = Path(__file__).parent.parent / "kernels" / "ptx"
SOURCE = {75: 75, 80: 80, 86: 80, 87: 80, 88: 80, 89: 80, 90: 90, 100: 100, 103: 100, 110: 100, 120: 120, 121: 120}
KERNELS = sorted(p.stem for p in (PTX / "sm_80").glob("*.ptx") if p.stem != "all16")


@pytest.mark.parametrize("sm", SOURCE)
def test_kernels_are_legal(sm: int) -> None:
    """Every kernel on every SM: each instruction has an encoding, and the verifier reports nothing."""
    machine = isa.target(sm)
    for name in KERNELS:
        text = (PTX / f"sm_{SOURCE[sm]}" / f"{name}.ptx").read_text()
        for unit in lower_text(text, f"sm_{sm}"):
            for inst in insts(unit):
                assert inst.op in PSEUDO or machine.row_of(inst) is not None, (name, inst)
            verify_unit(unit, "ori", f"sm_{sm}")


# Instructions that correctly become nothing: a hint, or a state that the SM does not have.
EMPTY = re.compile(r"mbarrier\.inval")


def some_cases(target: str, per_row: int) -> Iterator[Case]:
    """A few cases of every descriptor row."""
    seen: dict[str, int] = {}
    for case in accepted(target, 4):
        seen[case.row] = seen.get(case.row, 0) + 1
        if seen[case.row] <= per_row:
            yield case


@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_120a"])
def test_every_ptx_instruction_is_lowered_or_refused_by_name(target: str) -> None:
    """One case of every row of the PTX descriptor table: it produces an instruction, or is refused with its name and
    line."""
    from stages.parse import parse_text

    lowered = 0
    for case in some_cases(target, 1):
        text, before = one_kernel([case.text], case.version, case.target)
        module, _, _ = parse_text(text, "t.ptx", target)
        if module is None:
            continue  # the parser refuses it
        line = before + 1
        try:
            (unit,) = lower_text(text, target)
        except CompileError as e:
            assert "not supported" in e.message, (case.text, e.message)
            assert e.line == line, (case.text, e.message)
            continue
        lowered += 1
        said = case.text.startswith("setmaxnreg") and any(
            "setmaxnreg" in message for _, message, _ in unit.diags
        )  # no launch bounds: left out with a note
        assert said or EMPTY.match(case.text) or any(i.line == line for i in insts(unit)), f"{case.text} left nothing"
    assert lowered > 150


def test_refusal_names_instruction_and_line() -> None:
    vector = "{%f1,%f2,%f3,%f4}"
    gradient = f"tex.grad.3d.v4.f32.f32 {vector}, [%rd1, {vector}], {vector}, {vector};"
    text = kernel(f"mov.u32 %r1, 1;\n{gradient}\nret;", "sm_75")
    with pytest.raises(CompileError) as e:
        lower_text(text, "sm_75")
    assert text.split("\n")[e.value.line - 1].startswith("tex.grad")
    assert "'tex.grad.3d.v4.f32.f32' not supported" in e.value.message


def test_names_do_not_matter() -> None:
    """The same code with other names of kernel, registers, labels and parameters gives the same instructions."""
    for name in ("reduce_sum", "mandelbrot", "call_twice"):
        text = (PTX / "sm_90" / f"{name}.ptx").read_text()
        swap = {}
        for word in sorted(set(re.findall(r"[%$\w]+", text))):
            if re.match(rf"%(r|rd|f|fd|p|rs)\d+$|\$L__|{name}|_ZN", word):
                swap[word] = f"{word[0] if word[0] in '%$' else 'x'}q{len(swap)}_{word[-1]}"
        other = re.sub(r"[%$\w]+", lambda m: swap.get(m[0], m[0]), text)  # noqa: B023 - used at once
        other = re.sub(r"\.reg \.(\w+)\s+%(\w+)<(\d+)>;", lambda m: _declare(m, swap), other)  # noqa: B023
        (a,), (b,) = lower_text(text, "sm_90"), lower_text(other, "sm_90")
        assert names(a) == names(b)
        assert [len(i.srcs) for i in insts(a)] == [len(i.srcs) for i in insts(b)]


def _declare(m: re.Match[str], swap: dict[str, str]) -> str:
    return f".reg .{m[1]} " + ", ".join(swap.get(f"%{m[2]}{i}", f"%{m[2]}{i}") for i in range(int(m[3]))) + ";"


def test_guard_covers_effects_and_results_only() -> None:
    """Under a guard, stores and writes of PTX registers are guarded; arithmetic on temporaries is not; loops become
    branches."""
    (u,) = lower_text(
        kernel(
            "setp.eq.u32 %p1, %r1, 0;\n@%p1 bfi.b64 %rd1, %rd2, %rd3, %r2, %r3;\n@%p1 st.global.u64 [%rd4], %rd1;\nret;"
        ),
        "sm_90",
    )
    guarded = [i for i in insts(u) if i.guard is not None]
    assert [i.op for i in guarded] == ["LOP3", "LOP3", "STG"]
    (u,) = lower_text(kernel("setp.eq.u32 %p1, %r1, 0;\n@!%p1 atom.shared.add.u64 %rd1, [%r2], %rd3;\nret;"), "sm_90")
    assert "BSSY" in names(u)
    assert all(i.op == "BRA" for i in insts(u) if i.guard is not None)


def test_loads_of_narrow_types_extend_to_the_register() -> None:
    (u,) = lower_text(kernel("ld.global.s8 %rd1, [%rd2];\nst.global.u64 [%rd3], %rd1;\nret;"), "sm_80")
    assert "LDG.E.S8" in names(u)
    assert "SHF.R.S32.HI" in names(u)


def test_descriptor_is_loaded_once_without_calls() -> None:
    (u,) = lower_text((PTX / "sm_90" / "matmul.ptx").read_text(), "sm_90")
    assert names(u).count("ULDC.64") == 1


def test_descriptor_is_loaded_again_after_calls() -> None:
    (u,) = lower_text((PTX / "sm_90" / "call_twice.ptx").read_text(), "sm_90")
    seen = False
    for i in (i for b in u.functions[0].blocks for i in b.insts):
        if i.op == "CALL":
            seen = False
        elif i.op == "ULDC":
            seen = True
        elif i.op in ("LDG", "STG"):
            assert seen
    assert names(u).count("CALL.REL.NOINC") == 2


@pytest.mark.parametrize(("sm", "base"), [(80, False), (90, True), (120, True)])
def test_shared_base(sm: int, base: bool) -> None:
    """From sm_90 on a shared address contains the CTA's rank in the cluster and starts at 0x400."""
    text = kernel(
        ".shared .align 4 .b32 a[4]; .shared .align 8 .b8 b[8];\nst.shared.u32 [b+4], %r1;\nmov.u32 %r2, b;\n"
        "st.shared.u32 [%r2], %r2;\nret;",
        f"sm_{sm}",
    )
    (u,) = lower_text(text, f"sm_{sm}")
    assert u.attrs["shared"] == 24
    assert ("LEA" in names(u)) == base
    store = next(i for i in insts(u) if i.op == "STS")
    assert store.srcs[0].offset == 20  # type: ignore[union-attr]


def test_too_much_shared_memory() -> None:
    with pytest.raises(CompileError, match="too much shared data"):
        lower_text(kernel(".shared .align 4 .b8 a[49153];\nst.shared.u32 [a], %r1;\nret;"), "sm_80")
