"""The rows against nvdisasm and ptxas: small samples; `tests.isa.coverage` and `tests.isa.generate` run the large
ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ir_format import isa
from stages.disasm.assemble import assemble
from stages.disasm.cubin import CubinError, patch_cubin, read_cubin
from stages.disasm.lift import lift, relowered
from stages.disasm.listing import json_cubin, print_cubin
from stages.disasm.work import View, run
from tests import oracle
from tests.isa.corpus import compile_all
from tests.isa.coverage import check, distinct_words, fault, spaces
from tests.isa.generate import random_words
from tests.isa.listings import cubins, difference
from tests.isa.probe import BATCH, texts
from tests.isa.randomwords import flipped_words

pytestmark = pytest.mark.oracle
KERNELS = Path(__file__).parents[1] / "kernels" / "ptx"


@pytest.mark.parametrize("sm", ["75", "80", "90", "120"])
def test_corpus_kernels_decode_and_encode(sm: str, tmp_path: Path) -> None:
    """A family of one-operation kernels: text and bits of every word."""
    oracle.require("ptxas", "nvdisasm")
    compile_all(tmp_path, sm, "3", {"setp"})
    report = check(distinct_words([tmp_path]), sm)
    assert report.words > 300
    assert report.wrong == 0, dict(report.examples)
    assert report.refused == report.undefined, dict(report.examples)


@pytest.mark.parametrize("sm", ["75", "80", "90a", "100a", "120a"])
def test_random_instructions_print_as_nvdisasm(sm: str) -> None:
    """Random instructions of every form, and damaged words that the decoder accepts, print as nvdisasm prints them."""
    oracle.require("nvdisasm")
    target = isa.target(sm)
    words = [w for _, w in random_words(target, 4, 7, None, 2)]
    words += list(flipped_words(target, 3, 7, set()))
    # nvdisasm has no name for a guessed row
    words = [w for w in words if (found := target.decode_plan(w)) and target.provenance(found[1].form.row) != "guess"]
    assert len(words) > 2000
    wrong = [
        why
        for k, (word, text) in enumerate(zip(words, texts(words, sm)))
        if (why := fault(target, word, 16 * (k % BATCH), text))
    ]
    assert wrong == []


SHAPES = Path(__file__).parents[1] / "elf" / "shapes"
#: Calls, local and weak functions, indirect branches, system calls, texture symbols, several kernels.
LISTED = [SHAPES / f"{n}.ptx" for n in ("calls", "shared", "print_malloc", "texture", "full")]


@pytest.mark.parametrize("sm", [75, 90, 120])
def test_listing_equals_nvdisasm(sm: int) -> None:
    """The listing equals nvdisasm's except for blanks; so does the listing with words."""
    oracle.require("ptxas", "nvdisasm")
    found = cubins([*LISTED, KERNELS / f"sm_{sm}" / "switch10.ptx"], str(sm), ("3",))
    assert len(found) >= 4
    for name, cubin in found:
        assert difference(cubin, name.startswith("elf")) == [], name


RELOCATABLE = """.version 9.0
.target sm_90
.address_size 64
.global .align 4 .u32 gv[8];
.const .align 4 .u32 cv[8];
.extern .func (.param .b32 r) other(.param .b32 a);
.extern .shared .align 8 .b8 dyn[];
.visible .entry k(.param .u64 p) {
  .reg .b32 a<9>; .reg .b64 b<9>; ld.param.u64 b1, [p]; ld.global.u32 a1, [gv+4]; ld.const.u32 a2, [cv+12];
  mov.u32 a6, dyn; st.global.u32 [b1+36], a6;
  { .param .b32 q; .param .b32 w; st.param.b32 [q], a2; call (w), other, (q); ld.param.b32 a3, [w]; }
  add.s32 a3, a3, a1; st.global.u32 [b1], a3; ret;
}
"""


@pytest.mark.parametrize("sm", [75, 80, 90, 100, 120])
def test_relocatable(sm: int) -> None:
    """Relocated operands print as symbols, and an edited line next to them keeps them."""
    oracle.require("ptxas", "nvdisasm")
    path = oracle.compile_ptx(RELOCATABLE.replace("sm_90", f"sm_{sm}"), sm, "-c")
    assert isinstance(path, Path)
    assert difference(path) == []
    cubin = read_cubin(path.read_bytes())
    text = "".join(print_cubin(cubin))
    assert "32@lo(gv)" in text and "`(other)" in text and "cv + 0xc" in text
    assert patch_cubin(cubin, assemble(text, cubin)) == cubin.data
    line = next(x for x in text.splitlines() if "32@lo(gv)" in x)
    edited = text.replace(line, line.replace("MOV", "@PT MOV").replace("U@PT MOV", "@!UPT UMOV"))
    patched = patch_cubin(cubin, assemble(edited, cubin))
    assert sum(a != b for a, b in zip(patched, cubin.data)) <= 1 and len(patched) == len(cubin.data)


@pytest.mark.parametrize("sm", [75, 80, 90, 100, 120])
def test_disasm_round_trip(sm: int) -> None:
    """A cubin's plain listing, its listing with notes and its lifted form all reproduce its bytes."""
    oracle.require("ptxas")
    for source in (KERNELS / f"sm_{sm}" / "scan.ptx", *LISTED[:3]):
        for _, path in cubins([source], str(sm), ("3",)):
            cubin = read_cubin(path.read_bytes())
            assert cubin.sm == sm
            for exact in (False, True):
                assert patch_cubin(cubin, assemble("".join(print_cubin(cubin, True, exact)), cubin)) == cubin.data
            header, _, units = lift(cubin)
            assert patch_cubin(cubin, relowered(units, header)) == cubin.data
            assert all("text" in row for part in json.loads(json_cubin(cubin)) for row in part["instructions"])


@pytest.mark.parametrize("sm", [75, 90, 120])
def test_edit_in_place(sm: int, tmp_path: Path) -> None:
    """Text edited and written back through the command line: the edited instructions change, every other byte of the
    file stays."""
    oracle.require("ptxas", "nvdisasm")
    path = oracle.run_ptxas(KERNELS / f"sm_{sm}" / "saxpy.ptx", sm)
    assert isinstance(path, Path)
    text = run(path, View(), False, False, None).decode()
    line = next(x for x in text.splitlines() if " FFMA " in x)
    head, _, last = line.rpartition(", ")
    new = line.replace("FFMA", "FADD") if line.count(",") == 2 else f"{head.replace('FFMA', 'FMUL')} ;"
    listing = tmp_path / "edited.sass"
    listing.write_text(text.replace(line, new))
    patched = run(path, View(), False, False, listing)
    cubin = read_cubin(path.read_bytes())
    place = next(s for s in cubin.sections if s.symbols).offset + int(line.split("/*")[1][:4], 16)
    changed = [i for i, (a, b) in enumerate(zip(patched, cubin.data)) if a != b]
    assert changed and place <= changed[0] and changed[-1] < place + 16 and len(patched) == len(cubin.data)
    out = tmp_path / "patched.cubin"
    out.write_bytes(patched)
    theirs = oracle.nvdisasm(out, "-c")
    assert spaces(new).strip() in {spaces(x).strip() for x in theirs.splitlines()}
    # the lifted form, edited: the same change from an Ori stream
    header, _, units = lift(cubin)
    assert (
        patch_cubin(cubin, {**relowered(units, header), **{s.name: s.data for s in read_cubin(patched).sections}})
        == patched
    )


@pytest.mark.parametrize("sm", [80, 120])
def test_edit_control(sm: int) -> None:
    """A stall count edited in the notes of a listing: only that field of that word changes."""
    oracle.require("ptxas")
    path = oracle.run_ptxas(KERNELS / f"sm_{sm}" / "saxpy.ptx", sm)
    assert isinstance(path, Path)
    cubin = read_cubin(path.read_bytes())
    text = "".join(print_cubin(cubin, exact=True))
    line = next(x for x in text.splitlines() if " FFMA " in x)
    new = re.sub(r"&stall=\d+", "&stall=9", line)
    patched = patch_cubin(cubin, assemble(text.replace(line, new), cubin))
    place = next(s for s in cubin.sections if s.symbols).offset + int(line.split("/*")[1][:4], 16)
    words = [int.from_bytes(data[place : place + 16], "little") for data in (cubin.data, patched)]
    assert words[0] != words[1] and (words[0] ^ words[1]) & ~(15 << 105) == 0 and words[1] >> 105 & 15 == 9
    assert patched[:place] == cubin.data[:place] and patched[place + 16 :] == cubin.data[place + 16 :]


def test_damaged_cubins() -> None:
    """Cut and changed files give a diagnostic."""
    oracle.require("ptxas")
    path = oracle.run_ptxas(KERNELS / "sm_90" / "vadd.ptx", 90)
    assert isinstance(path, Path)
    data = path.read_bytes()
    for size in (0, 3, 16, 64, 200, len(data) // 2, len(data) - 1):
        try:
            read_cubin(data[:size])
        except CubinError:
            continue
    for at in range(0, 64):
        broken = bytearray(data)
        broken[at] ^= 0xFF
        try:
            read_cubin(bytes(broken))
        except CubinError:
            continue
