"""--fdevice-time-trace: events are appended to those in the file, in ptxas's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.__main__ import _run as orias

TEXT = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
OLD = {"args": {"name": ""}, "dur": 5, "name": "x y", "ph": "X", "pid": 77, "tid": 3, "ts": 1000}


def compile_with(folder: Path, trace: str | None, *options: str) -> tuple[int, Path]:
    (folder / "k.ptx").write_text(TEXT)
    path = folder / "t.json"
    if trace is not None:
        path.write_text(trace)
    words = ["-arch", "sm_80", str(folder / "k.ptx"), "-o", str(folder / "k.cubin"), "--fdevice-time-trace", str(path)]
    return orias([*words, *options]), path


def test_trace_events(tmp_path: Path) -> None:
    code, path = compile_with(tmp_path, json.dumps({"traceEvents": [OLD]}), "--use-trace-pid", "5")
    assert code == 0
    first, total, *rest = json.loads(path.read_text())["traceEvents"]
    parts = [e for e in rest if e["tid"] == total["tid"]]  # each kernel has a separate thread
    assert first == OLD
    assert total["name"] == "Total PTXAS Time" and total["args"] == {"name": "k.ptx"} and total["pid"] == 5
    assert [p["name"] for p in parts][0::2] == ["PTX parsing and setup time", "Post processing"]
    begin = 0
    for p in parts:
        assert begin <= p["ts"] and p["ts"] + p["dur"] <= total["dur"] + 1
        begin = p["ts"] + p["dur"] - 1


def test_events_are_added_after_a_named_one(tmp_path: Path) -> None:
    code, path = compile_with(tmp_path, json.dumps({"traceEvents": [OLD]}), "--ftrace-phase-after", "x y")
    total = json.loads(path.read_text())["traceEvents"][1]
    assert code == 0 and (total["ts"], total["pid"], total["tid"]) == (1005, 77, 3)


@pytest.mark.parametrize("trace", ["", "[]", '{"traceEvents":5}', '{"traceEvents":[5]}', "[" * 9999])
def test_no_trace(tmp_path: Path, trace: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, path = compile_with(tmp_path, trace, "--ftrace-phase-after", "x y")
    said = capfd.readouterr().err
    want = f"Input file '{path}' not in expected format"
    assert code == 255 and want in said and "Traceback" not in said


def test_a_trace_is_made_where_there_is_none(tmp_path: Path) -> None:
    code, path = compile_with(tmp_path, None)
    assert code == 0 and json.loads(path.read_text())["traceEvents"][0]["name"] == "Total PTXAS Time"


def test_a_trace_that_can_not_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.json").mkdir()
    code, path = compile_with(tmp_path, None)
    assert code == 255 and f"File '{path}' could not be opened" in capfd.readouterr().err
