"""The command line: ptxas's grammar and messages (measured on ptxas 13.0)."""

from __future__ import annotations

import pytest

from orchestrator.options import UsageError, read, stream_options


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["--badopt"], "Unknown option '-badopt'"),
        (["-badopt"], "Unknown option 'badopt'"),
        (["-o"], "argument expected after '-o'"),
        (["-v=1"], "no argument expected after '-v'"),
        (["-fmad", "x"], "'x': expected true or false"),
        (["-O=x"], "'x': expected a number"),
        (["-arch", "sm_99"], "Value 'sm_99' is not defined for option 'gpu-name'"),
        (["-arch=sm_70"], "Value 'sm_70' is not defined for option 'gpu-name'"),
        (["-maxrregcount", "foo"], "Invalid value 'foo' for option 'maxrregcount'"),
        (["-optf", "/nonexistent"], "Could not open options file '/nonexistent'"),
        (["-ewp", "k.ptx"], "Option '-ewp' is not supported by orias"),
        (["-gpu", "sm_80"], "Unknown option 'gpu'"),
    ],
)
def test_refused_command_lines(argv: list[str], text: str) -> None:
    with pytest.raises(UsageError) as e:
        read(argv)
    assert str(e.value) == text


def test_values_follow_or_are_joined() -> None:
    cl = read(["-arch", "sm_90", "--opt-level=1", "-o=x", "a.ptx", "-", "-O2"])
    assert cl.values["gpu-name"] == "sm_90" and cl.values["opt-level"] == "2" and cl.values["output-file"] == "x"
    assert cl.inputs == ["a.ptx", "-"]
    assert any("incompatible redefinition for option 'opt-level'" in d.message for d in cl.messages)


def test_level_must_be_joined() -> None:
    cl = read(["-O", "3"])
    assert cl.inputs == ["3"] and cl.values["opt-level"] == "3"


@pytest.mark.parametrize(("given", "kept"), [("16", 24), ("24", 24), ("255", 255), ("archmin", 32), ("archmax", 255), ("256", None), ("-1", None)])
def test_register_limit(given: str, kept: int | None) -> None:
    cl = read([f"-maxrregcount={given}"])
    assert stream_options(cl, "sm_90").get("maxrregcount") == kept
    if given == "16":
        assert cl.messages[0].message == "For profile sm_90 adjusting per thread register count of 16 to lower bound of 24"


def test_options_file(tmp_path: object) -> None:
    path = f"{tmp_path}/o"
    with open(path, "w") as f:
        f.write('-arch sm_86 "-o" "a b"')
    cl = read(["-optf", path])
    assert cl.values == {"gpu-name": "sm_86", "output-file": "a b"}
