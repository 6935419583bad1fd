"""Facts as data: the JSON has the facts that the stages use, and annotated streams compile to the same code."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ir_format import wire
from ir_format.diag import OriasError
from ir_format.isa import facts, rowlang
from orchestrator.api import compile_ptx, finish
from stages.facts.annotate import annotated
from stages.facts.cli import app
from stages.facts.collect import collect
from stages.plumbing.chain import MIDDLE

PTX = (Path(__file__).parents[1] / "kernels/ptx/sm_90/reduce_sum.ptx").read_text()


@pytest.mark.parametrize("name", ["sm_75", "sm_86", "sm_90a", "sm_120"])
def test_the_facts_of_a_target_hang_together(name: str) -> None:
    data = json.loads(json.dumps(collect(name)))
    assert data["target"]["name"] == name
    for op, entry in data["instructions"].items():
        assert entry["rows"] and entry["classes"], op
        assert entry["tags"] or entry["read"] or entry["write"] or entry["effect"] or entry["ctl"], op
        for choice in entry["classes"]:
            assert choice["class"] in data["classes"], (op, choice)
        assert op == "WARPGROUP" or not entry["classes"][-1]["mods"], f"{op}: no class for the plain form"
    assert data["distances"]["raw"]["R"]["alu"]["alu"] == [4, "documented"]


def test_every_mnemonic_of_the_rows_has_facts() -> None:
    assert rowlang.source().rows.keys() <= facts.table().keys()


@pytest.mark.parametrize(
    "line", ["op X pure fast", "op X pure cost=3", "op X read=moon", "op X effect=magic", "op X varies"]
)
def test_an_op_line_with_unknown_or_too_few_facts_does_not_load(line: str) -> None:
    _, name, *words = line.split()
    with pytest.raises(ValueError, match="op X"):
        facts._parse(name, words)


def test_annotated_streams_schedule_to_the_same_code() -> None:
    streams: dict[str, bytes] = {}
    cubin = compile_ptx(PTX, "sm_90", streams=streams)
    allocated = streams["regalloc"]
    more = annotated(io.BytesIO(allocated))
    assert finish(more, MIDDLE[3:]) == cubin
    units = [wire.unit_from_wire(body, "allocated") for tag, body in wire.records(io.BytesIO(more)) if tag == "unit"]
    loads = [i for u in units for f in u.functions for b in f.blocks for i in b.insts if i.op == "LDG"]
    assert loads and all(i.attrs and i.attrs["hz.class"] == "ldg" and i.attrs["hz.boards"] == "WR" for i in loads)
    assert annotated(io.BytesIO(more), strip=True) == allocated


def test_the_command_line(tmp_path: Path) -> None:
    run = CliRunner().invoke
    assert json.loads(run(app, ["sm_80"]).stdout)["target"]["sm"] == 80
    assert run(app, ["sm_81"]).exit_code == 2
    assert run(app, []).exit_code == 2
    bad = tmp_path / "x.ori"
    bad.write_bytes(b"no stream")
    assert run(app, ["--annotate", str(bad)]).exit_code == 2


def test_level_ptx_has_nothing_to_annotate() -> None:
    streams: dict[str, bytes] = {}
    compile_ptx(PTX, "sm_90", streams=streams)
    with pytest.raises(OriasError, match="level ptx"):
        annotated(io.BytesIO(streams["parse"]))
