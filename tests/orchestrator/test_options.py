"""The command line: ptxas's grammar and messages (measured on ptxas 13.0)."""

from __future__ import annotations

import pytest

from orchestrator.conflicts import UsageError
from orchestrator.options import read, stream_options


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
        (["-sanitize", "memcheck", "k.ptx"], "Option '--sanitize' is not supported by orias"),
        (["-sanitize=foo"], "Value 'foo' is not defined for option 'sanitize'"),
        (["-preserve-relocs", "-arch", "sm_80"], "Option '--preserve-relocs' is not supported by orias below sm_90"),
        (["-m32"], "Value '32' is not defined for option 'machine'"),
        (["-maxrregcount32"], "'axrregcount32': expected a number"),
        (["-oq"], "Unknown option 'oq'"),
        (["-g", "-O3"], "Optimized debugging not supported"),
        (["-Ofc", "x"], "Invalid value for --Ofast-compile/-Ofc (x), is not 'max', 'mid', 'min', or '0'"),
        (["-Ofc", "max", "-O2"], "Conflicting options -opt-level=<1,2,3> and --Ofast-compile=max specified"),
        (["-split-compile=-1"], "Invalid value '-1' for option '--split-compile'"),
        (["-func-maxrregcount", "x"], "Invalid value 'x' for option 'device-function-maxrregcount'"),
        (["-dlcm", "xx"], "Invalid default cache modifier on load specified: xx"),
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


@pytest.mark.parametrize(
    ("argv", "kept", "said"),
    [
        ("-m64 -O2", {"opt-level": 2}, []),
        ("-m 64 --opt-level 1", {"opt-level": 1}, []),
        ("-g -O", {"opt-level": 0, "device-debug": 1, "generate-line-info": 1}, []),
        ("-g -lineinfo", {"opt-level": 0, "device-debug": 1, "generate-line-info": 1},
         ["Conflicting options --device-debug and --generate-line-info specified, ignoring --generate-line-info option"]),
        ("-Ofc mid", {"opt-level": 1}, []),
        ("-dlcm ca -flcm cv", {"opt-level": 3, "force-load-cache": "cv"}, ["Conflicting options force-load-cache and def-load-cache specified, ignoring def-load-cache option"]),
        ("-func-maxrregcount 32", {"opt-level": 3},
         ["Command line option 'device-function-maxrregcount' not supported for 'whole program compilation', will be ignored"]),
        ("-c -func-maxrregcount 32", {"opt-level": 3, "compile-only": 1, "device-function-maxrregcount": 32}, []),
        ("-maxrregcount 40 -maxntid 64", {"opt-level": 3, "maxrregcount": 40}, ["Conflicting options -maxrregcount and -maxntid specified, ignoring -maxntid option"]),
        ("-c -ewp", {"opt-level": 3, "compile-only": 1},
         ["Conflicting options '--compile-only' and '--extensible-whole-program' specified, ignoring '--extensible-whole-program' option"]),
        ("-lineinfo -suppress-debug-info", {"opt-level": 3, "suppress-debug-info": 1}, []),
        ("-arch sm_90 -preserve-relocs", {"opt-level": 3}, []),
    ],
)  # fmt: skip
def test_what_travels_and_what_is_said(argv: str, kept: dict[str, object], said: list[str]) -> None:
    cl = read(argv.split())
    assert stream_options(cl, "sm_80") == kept
    assert [d.message for d in cl.messages] == said


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
