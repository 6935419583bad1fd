"""A stage that is a foreign command: its output is checked before our stages see it, and errors name the command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.orchestrator.test_surroundings import ORIAS, ROOT, run

OURS = f"PYTHONPATH={ROOT} {sys.executable} -P -m stages"
#: Reads our stage's stream and changes one thing in it, with a correct trailer.
CHANGE = """
import io, sys
from ir_format import wire
frames = list(wire.frames(sys.stdin.buffer))
w = wire.Writer(sys.stdout.buffer.write)
for tag, data in frames:
    body = wire.unpack(data, raw_lists=True)
    {change}
    w.record(tag, body)
w.end()
"""


def change(name: str, code: str, folder: Path) -> str:
    (folder / "change.py").write_text(CHANGE.format(change=code))
    return f"{OURS}.{name} | PYTHONPATH={ROOT} {sys.executable} change.py"


@pytest.mark.parametrize("name", ["lower", "optimize", "regalloc", "schedule", "encode"])
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", "wrote no valid stream (not an ori stream: it is empty)"),
        ("cat > /dev/null", "wrote no valid stream (not an ori stream: it is empty)"),
        ("echo garbage", "wrote no valid stream ("),
        ("{ours} | head -c 100", "wrote no valid stream (not an ori stream: truncated)"),
        ("cat", "wrote level '"),
        ("exit 3", "exit code 3"),
        ("exit 1", "exit code 1 and no stream"),
        ("kill -9 $$", "died (signal 9)"),
        ("nosuchprogram", "exit code 127"),
    ],
)
def test_a_stage_that_writes_no_stream_is_blamed(tmp_path: Path, name: str, command: str, said: str) -> None:
    if command == "cat" and name == "optimize":
        pytest.skip("the input of optimize is a stream that optimize may write")
    if name not in ("lower", "schedule") and "ours" not in command and command != "true":
        pytest.skip("two places of the chain stand for all")
    command = command.replace("{ours}", f"{OURS}.{name}")
    got = run([*ORIAS, "k.ptx", "--stage", f"{name}={command}", "-o", "out"], tmp_path)
    text = got.stderr.decode().splitlines()[-1]
    assert got.returncode == 255 and text.startswith(f"ptxas fatal   : stage {name} ('{command}') {said}"), got.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("if tag == 'unit': continue", "it holds the units (none), not k"),
        ("if tag == 'unit': body['name'] = 'j'", "it holds the units j, not k"),
        ("if tag == 'unit': w.record(tag, body)", "it holds the units k, k, not k"),
        ("if tag == 'module': continue", "no module record"),
        ("if tag == 'orias': body['target'] = 'sm_90'", "it is for target 'sm_90', not 'sm_75'"),
        (
            "if tag == 'unit': body['functions'][0][8][0][2][-1][0][0] = 'NOSUCH'",
            "unit k: invalid IR: function k, block .L",
        ),
        ("if tag == 'unit': body['functions'][0][8][0][2][-1][5] = None", "unit k: function k, block .L"),
    ],
)
def test_a_forged_stream_names_the_stage_the_unit_and_the_record(tmp_path: Path, code: str, said: str) -> None:
    command = change("optimize", code, tmp_path)
    got = run([*ORIAS, "k.ptx", "--stage", f"optimize={command}", "-o", "out"], tmp_path)
    text = got.stderr.decode()
    assert (
        got.returncode == 255
        and text.startswith("ptxas fatal   : stage optimize ('")
        and f"wrote no valid stream ({'ori stream: ' if 'no module' in said else ''}{said}" in text
    ), text
    assert len(text.splitlines()) == 1 and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", "wrote nothing"),
        ("echo x", "wrote no ELF file"),
        ("exit 1", "exit code 1 and no stream"),
        ("exit 2", "exit code 2"),
    ],
)
def test_an_elf_stage(tmp_path: Path, command: str, said: str) -> None:
    got = run([*ORIAS, "k.ptx", "--stage", f"elf={command}", "-o", "out"], tmp_path)
    assert (
        got.returncode == 255
        and f"stage elf ('{command}') {said}" in got.stderr.decode()
        and not (tmp_path / "out").exists()
    )


def test_a_foreign_stage_that_works(tmp_path: Path) -> None:
    assert run([*ORIAS, "k.ptx", "-o", "one"], tmp_path).returncode == 0
    words = [w for name in ("lower", "optimize", "schedule", "elf") for w in ("--stage", f"{name}={OURS}.{name}")]
    assert run([*ORIAS, "k.ptx", *words, "-o", "two"], tmp_path).returncode == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_exec_steps_get_the_default_action_of_a_broken_pipe(tmp_path: Path) -> None:
    got = run(
        [*ORIAS, "k.ptx", "--stage", f"optimize={OURS}.optimize | cat; yes | head -n 1 > /dev/null", "-o", "out"],
        tmp_path,
    )
    assert got.returncode == 0 and got.stderr == b""
