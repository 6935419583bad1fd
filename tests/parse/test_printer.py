"""Printed PTX: the same IR when parsed again, the same code from ptxas."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.parse import parse_text
from stages.parse.printer import print_module
from tests import oracle
from tests.parse.corpus_check import check
from tests.parse.gates import architecture
from tests.parse.helpers import corpus, parse_ok, without_lines
from tests.parse.manual_cases import MODULES, text_of
from tests.parse.module_cases import CASES


def _arch(path: Path) -> str:
    name = path.parent.name
    return name if name.startswith("sm_") else "sm_90a"


@pytest.mark.parametrize("path", corpus(), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_parses_back_to_the_same_ir(path: Path) -> None:
    module, units = parse_ok(path.read_text(), _arch(path))
    again, units_again = parse_ok(print_module(module, units), _arch(path))
    assert without_lines(again) == without_lines(module)
    assert without_lines(units_again) == without_lines(units)


def test_good_modules_parse_back() -> None:
    done = 0
    for text in CASES.values():
        module, units, _ = parse_text(text, "t.ptx", "compute_90")
        if module is not None:
            again, units_again = parse_ok(print_module(module, units), "compute_90")
            assert without_lines(again) == without_lines(module), text
            assert without_lines(units_again) == without_lines(units), text
            done += 1
    assert done > 80


@pytest.mark.parametrize("name", list(MODULES))
def test_manual_modules_parse_back(name: str) -> None:
    arch = architecture(MODULES[name][1].split(",")[0])
    module, units = parse_ok(text_of(name), arch)
    again, units_again = parse_ok(print_module(module, units), arch)
    assert without_lines(again) == without_lines(module)
    assert without_lines(units_again) == without_lines(units)


@pytest.mark.oracle
def test_manual_modules_have_the_same_code(tmp_path: Path) -> None:
    oracle.require("ptxas")
    for name in list(MODULES)[::3]:
        path = tmp_path / "k.ptx"
        path.write_text(text_of(name))
        said, _ = check(path, True, tmp_path)
        assert not said, (name, said)


@pytest.mark.oracle
@pytest.mark.parametrize("path", corpus()[::7], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_same_code(path: Path) -> None:
    from elftools.elf.elffile import ELFFile

    oracle.require("ptxas")
    arch = _arch(path)
    module, units = parse_ok(path.read_text(), arch)
    texts = []
    for source in (path.read_text(), print_module(module, units)):
        cubin = oracle.compile_ptx(source, arch.removeprefix("sm_"))
        assert isinstance(cubin, Path), cubin
        with cubin.open("rb") as f:
            texts.append(
                {
                    s.name: s.data()
                    for s in ELFFile(f).iter_sections()
                    if s.name.startswith((".text", ".nv.constant", ".nv.global"))
                }
            )
    assert texts[0] == texts[1]
