"""Information about a compile: --time, --compiler-stats, --fdevice-time-trace, --stats-json, --remarks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.__main__ import _run as orias

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
#: The tests count lines: the first of a text is line 4.
TWO = HEAD + "".join(
    f""".visible .entry k{n}(.param .u64 p, .param .u32 n) {{
  .reg .u64 %a; .reg .u32 %x<4>; .reg .pred %p;
  ld.param.u64 %a, [p];
  ld.param.u32 %x1, [n];
  mad.lo.u32 %x2, %x1, %x1, {n};
  st.global.u32 [%a], %x2;
  ret;
}}
"""
    for n in (1, 2)
)


def run(folder: Path, text: str, *options: str) -> bytes:
    (folder / "k.ptx").write_text(text)
    assert orias(["-arch", "sm_90", str(folder / "k.ptx"), "-o", str(folder / "k.cubin"), *options]) == 0
    return (folder / "k.cubin").read_bytes()


def test_statistics_and_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every pass of every kernel is in the JSON and in the trace, and the cubin is the same as without the switches."""
    import orias as package

    plain = run(tmp_path, TWO)
    stats, trace = tmp_path / "s.json", tmp_path / "t.json"
    words = ["--stats-json", str(stats), "--fdevice-time-trace", str(trace), "--time", "--compiler-stats=detailed"]
    assert run(tmp_path, TWO, *words) == plain
    said = capsys.readouterr().err
    data = json.loads(stats.read_text())
    assert [u["name"] for u in data["units"]] == ["k1", "k2"] and data["output_bytes"] == len(plain)
    passes = package.passes()
    for unit in data["units"]:
        assert [s["name"] for s in unit["stages"]] == list(passes)
        for stage in unit["stages"]:
            known = [p.name for p in passes[stage["name"]]]
            assert [p["name"] for p in stage["passes"]] == known
            assert sum(p["seconds"] for p in stage["passes"]) <= stage["seconds"] + 1e-6
            for p in known:
                assert p in said
            at = stage["instructions_before"]
            for p in stage["passes"]:
                assert p["instructions_before"] == at or stage["name"] == "lower"
                at = p["instructions_after"]
            assert stage["peak_kib"] > 0 and stage["rewrites"] == sum(p["rewrites"] for p in stage["passes"])
    assert unit["stages"][1]["rewrites"] > 0
    assert re.search(r"^stage and pass +time +memory +rewrites  instructions$", said, re.M)
    assert re.search(r"^  combine +\d+\.\d{3} ms +\d+ KB +\d+  \d+ -> \d+$", said, re.M)
    assert re.search(r"^orias:   optimize +\d+\.\d ms\norias:     merge-blocks +\d+\.\d ms$", said, re.M)
    nested(json.loads(trace.read_text())["traceEvents"], {s: [p.name for p in ps] for s, ps in passes.items()})


def nested(events: list[dict[str, object]], passes: dict[str, list[str]]) -> None:
    """Kernels contain stages, stages passes, all within their times; each kernel has a separate thread."""
    total = next(e for e in events if e["name"] == "Total PTXAS Time")
    for name in ("k1", "k2"):
        kernel = next(e for e in events if e["name"] == name)
        inside = [e for e in events if e["tid"] == kernel["tid"] and e["ph"] == "X"]
        names = [s for stage, own in passes.items() for s in (stage, *[f"{stage}/{p}" for p in own])]
        assert sorted(str(e["name"]) for e in inside) == sorted([name, *names])
        assert within(kernel, total)
        for e in inside:
            stage, _, one = str(e["name"]).partition("/")
            outer = kernel if not one else next(o for o in inside if o["name"] == stage)
            assert within(e, outer), (e, outer)
        label = next(e for e in events if e["ph"] == "M" and e["tid"] == kernel["tid"])
        assert label["args"] == {"name": name}


def within(inner: dict[str, object], outer: dict[str, object]) -> bool:
    a, b, c, d = (e[k] for e in (inner, outer) for k in ("ts", "dur"))
    assert isinstance(a, int) and isinstance(b, int) and isinstance(c, int) and isinstance(d, int)
    return c <= a + 1 and a + b <= c + d + 1


def test_observation_modules_are_loaded_only_on_request(tmp_path: Path) -> None:
    """A compile without these switches imports nothing of them."""
    (tmp_path / "k.ptx").write_text(TWO)
    code = (
        "import sys, os; from orchestrator.__main__ import _run; os.environ.pop('ORIAS_SERVER', None);"
        f"assert _run([{str(tmp_path / 'k.ptx')!r}, '-o', {str(tmp_path / 'k.cubin')!r}, '-arch', 'sm_90']) == 0;"
        "print(*sorted(set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"stages.plumbing.observe", "orchestrator.seen", "orchestrator.report"} & set(done.stdout.split())


LOOPS = (
    HEAD
    + """.visible .entry k(.param .u64 p, .param .u32 n) {
  .reg .u64 %a; .reg .u32 %i, %n, %s, %t; .reg .pred %p, %q, %r;
  .shared .align 4 .b32 words[64];
  ld.param.u64 %a, [p];
  ld.param.u32 %n, [n];
  mov.u32 %t, %tid.x;
  mov.u32 %i, 0; mov.u32 %s, %t;
ONCE:
  .pragma "nounroll";
  mad.lo.u32 %s, %s, %s, %i;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, %n;
  @%p bra ONCE;
  mov.u32 %i, 0;
EIGHT:
  mad.lo.u32 %s, %s, %s, %t;
  add.u32 %i, %i, 1;
  setp.lt.u32 %p, %i, 8;
  @%p bra EIGHT;
CHASE:
  ld.global.u32 %s, [%a];
  setp.ne.u32 %q, %s, 0;
  @%q bra CHASE;
  setp.lt.u32 %r, %t, 7;
  @%r bra OVER;
  bar.sync 0;
OVER:
  st.global.u32 [%a], %s;
  ret;
}
"""
)


def test_remarks_on_control_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reason, the line of the branch and its register, taken from the text above."""
    run(tmp_path, LOOPS, "--remarks")
    said = capsys.readouterr().err
    place = f"{tmp_path / 'k.ptx'}:%d:3: remark: "
    for line, what in (
        (16, 'loop not unrolled because it is marked .pragma "nounroll" [-Rpass-missed=unroll]'),
        (22, "completely unrolled loop with 8 iterations of 1 instructions [value %i] [-Rpass=unroll]"),
        (26, "loop not unrolled because no register counts its iterations by a constant step up to one test"),
        (28, "branch not predicated because WARPSYNC of PTX line 29 has effects that need a branch [value %r]"),
    ):
        assert place % line + what in said, said
    assert re.search(r"k\.ptx: in k: remark: \d+ registers of at most 255, 0 bytes of stack, .*analysis=regalloc", said)


def pressure() -> str:
    """20 products live at once, under a limit of 24 registers; two neighbours in shared memory whose base is only
    known to be a multiple of four."""
    names = [f"%v{i}" for i in range(40)]
    rows = ["ld.param.u64 %a, [p];", "ld.param.u32 %o, [n];", "shl.b32 %o, %o, 2;", "mov.u32 %b, words;"]
    rows += ["add.u32 %b, %b, %o;", "ld.shared.u32 %x0, [%b];", "ld.shared.u32 %x1, [%b+4];"]
    rows += [f"ld.volatile.global.u32 {v}, [%a+{4 * i}];" for i, v in enumerate(names)]
    rows += ["bar.sync 0;"]
    rows += [f"st.volatile.global.u32 [%a+{4 * i}], {v};" for i, v in enumerate(reversed(names))]
    rows += ["st.global.u32 [%a+400], %x0;", "st.global.u32 [%a+500], %x1;", "ret;"]
    declared = ".reg .u64 %a; .reg .u32 %o, %b, %x0, %x1, %v<40>;\n.shared .align 4 .b32 words[64];"
    return HEAD + ".visible .entry k(.param .u64 p, .param .u32 n) {\n" + "\n".join([declared, *rows]) + "\n}\n"


def _viewed(path: Path, folder: Path, found: list[dict[str, Any]]) -> None:
    """LLVM's opt-viewer itself, if Debian's package has put it here: a row for each remark with a place."""
    viewer = next(iter(sorted(Path("/usr/lib").glob("llvm-*/share/opt-viewer/opt-viewer.py"))), None)
    if viewer is None:
        return
    words = [sys.executable, str(viewer), str(path), "-o", str(folder / "html"), "-n", "-j", "1"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (page,) = (folder / "html").glob("*k.ptx.html")
    shown = re.findall(r'column-entry-(?:red|green|white)">(.*?)</td>', page.read_text())
    assert sorted(shown) == sorted(r["Pass"] for r in found)


def test_remarks_as_llvm_writes_them(tmp_path: Path) -> None:
    """Read with a YAML parser as opt-viewer does: tags, required keys, existing places in the file."""
    yaml = pytest.importorskip("yaml")
    path = tmp_path / "r.opt.yaml"
    text = pressure()
    run(tmp_path, text, "--remarks=" + str(path), "-maxrregcount", "24")

    class Loader(yaml.SafeLoader):  # type: ignore[misc,name-defined]
        pass

    for tag in ("Passed", "Missed", "Analysis"):
        Loader.add_constructor(f"!{tag}", lambda load, node, tag=tag: (tag, load.construct_mapping(node, deep=True)))
    found = list(yaml.load_all(path.read_text(), Loader))
    lines = text.splitlines()
    for _, remark in found:
        assert {"Pass", "Name", "Function", "Args"} <= remark.keys() and remark["Function"] == "k"
        if "DebugLoc" in remark:
            where = remark["DebugLoc"]
            assert where["File"] == str(tmp_path / "k.ptx") and lines[where["Line"] - 1].strip()
    spilled = [r for tag, r in found if tag == "Missed" and r["Name"] == "Spilled"]
    assert len(spilled) >= 16  # 40 values and an address, 24 registers
    for r in spilled:
        value = r["Args"][1]["Value"]
        assert value in lines[r["DebugLoc"]["Line"] - 1], r
        assert re.match(
            r"value spilled to local memory: \d+ general registers are wanted at PTX", r["Args"][0]["String"]
        )
    split = [r for tag, r in found if tag == "Missed" and r["Pass"] == "load-vectorize"]
    assert [(r["Name"], r["Args"][1]["Value"]) for r in split] == [("Alignment", "%x0")]
    assert split[0]["Args"][0]["String"].endswith("its base is only known to be a multiple of 4")
    _viewed(path, tmp_path, [x for _, x in found if "DebugLoc" in x])
    (sums,) = [r for tag, r in found if tag == "Analysis"]
    assert re.match(r"2[0-4] registers of at most 24, \d\d+ bytes of stack, ", sums["Args"][0]["String"])


def test_remarks_on_uniform_registers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        HEAD
        + """.visible .entry k(.param .u64 p, .param .u32 n) {
  .reg .u64 %a; .reg .u32 %n, %m, %x;
  ld.param.u64 %a, [p];
  ld.param.u32 %n, [n];
  mov.u32 %x, %tid.x;
  atom.global.add.u32 %m, [%a], %n;
  st.global.u32 [%a+4], %m;
  ret;
}
"""
    )
    run(tmp_path, text, "--remarks")
    said = capsys.readouterr().err
    assert re.search(r"k\.ptx:\d+:3: remark: (uniform promotion blocked because|value moved).*\[value %\w+\]", said)


def test_a_file_for_remarks_that_can_not_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.ptx").write_text(TWO)
    words = ["-arch", "sm_90", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")]
    assert orias([*words, f"--remarks={tmp_path}/no/r.yaml"]) == 255
    assert "could not be opened" in capsys.readouterr().err
