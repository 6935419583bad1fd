"""The command line: ptxas's grammar and messages (measured on ptxas 13.0)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ir_format.target import targets
from orchestrator.api import ChainError, compile_ptx
from orchestrator.conflicts import UsageError
from orchestrator.driver import Run, run
from orchestrator.help import usage
from orchestrator.options import GROUPS, OPTIONS, CommandLine, Option, _read, read, stream_options
from stages.plumbing.chain import OPTIONS as CHAIN_OPTIONS
from stages.plumbing.runner import Flags
from tests import oracle


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
        (["-sanitize=foo"], "Value 'foo' is not defined for option 'sanitize'"),
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
        (["-j", "²"], "'²': expected a number"),
        (["-O²"], "'²': expected a number"),
        (["-maxrregcount", "²"], "Invalid value '²' for option 'maxrregcount'"),
        (["-split-compile", "2147483648"], "32-bit integer value (2147483648) out of range"),
        (["-minnctapersm=-2147483649"], "32-bit integer value (-2147483649) out of range"),
        (["--stage-timeout", "99999999999999999999"], "32-bit integer value (99999999999999999999) out of range"),
        (["-O08"], "'08': expected a number"),
        (["--abi-compile=no"], "Invalid value 'no' for option -abi."),
        (["--cuda-api-version=12.0"], "Invalid value '12.0' for option '--cuda-api-version'"),
        (["--limit-fold-fp", "k.ptx"], "'k.ptx': expected true or false"),
        (["--sw4915215=true", "-arch", "sm_90"], "Option 'sw4915215' not supported for gpu architecture 'sm_90'"),
        (["--apply-controls=/dev/full"], "Option '--apply-controls' is not supported by orias"),
        (["--apply-controls=/dev/null"], "Input file '/dev/null' not in expected format"),
        (["--apply-controls=/nonexistent"], "File '/nonexistent' could not be opened"),
        (["--enable-func-clone-sc", "--release=13.0"], "Unknown option '-enable-func-clone-sc'"),
        (["-v2", "--release", "13.0"], "Unknown option 'v2'"),
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
         [("Conflicting options --device-debug and --generate-line-info specified, "
"ignoring --generate-line-info option")]),
        ("-Ofc mid", {"opt-level": 1}, []),
        ("-dlcm ca -flcm cv", {"opt-level": 3, "force-load-cache": "cv"}, [
            "Conflicting options force-load-cache and def-load-cache specified, ignoring def-load-cache option"]),
        ("-func-maxrregcount 32", {"opt-level": 3},
         [("Command line option 'device-function-maxrregcount' not supported for 'whole program "
"compilation', will be ignored")]),
        ("-c -func-maxrregcount 32", {"opt-level": 3, "compile-only": 1, "device-function-maxrregcount": 32}, []),
        ("-maxrregcount 40 -maxntid 64", {"opt-level": 3, "maxrregcount": 40}, [
            "Conflicting options -maxrregcount and -maxntid specified, ignoring -maxntid option"]),
        ("-c -ewp", {"opt-level": 3, "compile-only": 1},
         [("Conflicting options '--compile-only' and '--extensible-whole-program' specified, "
"ignoring '--extensible-whole-program' option")]),
        ("-lineinfo -suppress-debug-info", {"opt-level": 3, "suppress-debug-info": 1}, []),
        ("-arch sm_90 -preserve-relocs", {"opt-level": 3}, [
            "'--preserve-relocs' option is not fully implemented for 'sm_90' and may not work as expected"]),
        ("-blocks-are-clusters true -arch sm_80", {"opt-level": 3}, [
            "Command line option '--blocks-are-clusters' not supported for 'sm_80', will be ignored"]),
        ("-blocks-are-clusters true -arch sm_90", {"opt-level": 3, "blocks-are-clusters": 1}, []),
        ("-sw1729687=true -arch sm_100a", {"opt-level": 3}, [
            "Conflicting options -arch=sm_100a and --sw1729687 specified, ignoring --sw1729687 option"]),
        ("-sw200387803=false", {"opt-level": 3}, [(
            "'--sw200387803' is a deprecated option, It will be removed in future release and is not "
"recommended")]),
        ("--key=1 --ptx-length=5", {"opt-level": 3}, ["option 'key' has been deprecated",
            "'--ptx-length' option is ignored unless '--okey' option is specified"]),
        ("-regUsageLevel=0x10", {"opt-level": 3}, [
            "Value of RegUsageLevel (16) is out of valid range {0..10}, option will be ignored"]),
    ],
)  # fmt: skip
def test_options_of_the_stream_and_their_messages(argv: str, kept: dict[str, object], said: list[str]) -> None:
    cl = read(argv.split())
    assert stream_options(cl, "sm_80") == kept
    assert [d.message for d in cl.messages] == said


def test_level_must_be_joined() -> None:
    cl = read(["-O", "3"])
    assert cl.inputs == ["3"] and cl.values["opt-level"] == "3"


@pytest.mark.parametrize(("given", "kept"), [("16", 24), ("24", 24), ("255", 255), ("archmin", 32), ("archmax", 255),
("256", None), ("-1", None),
                                             ("0x30", 48), (" +010", 24), ("4294967296", 24), ("99999999999999999999",
                                             None)])  # fmt: skip
def test_register_limit(given: str, kept: int | None) -> None:
    cl = read([f"-maxrregcount={given}"])
    assert stream_options(cl, "sm_90").get("maxrregcount") == kept
    if given == "16":
        assert (
            cl.messages[0].message == "For profile sm_90 adjusting per thread register count of 16 to lower bound of 24"
        )


def test_options_file(tmp_path: object) -> None:
    path = f"{tmp_path}/o"
    with open(path, "w") as f:
        f.write('-arch sm_86 "-o" "a b"')
    cl = read(["-optf", path])
    assert cl.values == {"gpu-name": "sm_86", "output-file": "a b"}


def test_options_without_effect_are_named_once_and_are_no_errors() -> None:
    cl = read(
        [
            "-Werror",
            "--regAllocOptLevel=2",
            "--limit-fold-fp=true",
            "-pic",
            "false",
            "-opt-fp-atomics",
            "--cloning",
            "yes",
        ]
    )
    assert cl.notes == ["without effect in orias: '--optimize-float-atomics', '--limit-fold-fp'"]
    cl = read(["-sanitize", "memcheck", "-preserve-relocs", "-arch", "sm_80", "k.ptx"])
    assert cl.notes == ["without effect in orias: '--sanitize', '--preserve-relocs'"]
    assert (
        read(["--regAllocOptLevel=2", "-no-bb-merge", "-ret-end", "-disable-optimizer-consts", "--fmad=false"]).notes
        == []
    )


def test_a_stage_command_needs_the_command_line(tmp_path: object) -> None:
    path = f"{tmp_path}/o"
    with open(path, "w") as f:
        f.write("--stage lower=cat")
    with pytest.raises(UsageError, match="needs a '--stage' on the command line"):
        read(["-optf", path])
    assert read(["-optf", path, "--stage", "encode=cat"]).lists["stage"] == ["encode=cat", "lower=cat"]


def test_help_lists_targets_as_tools_look_for_them_and_every_option_once() -> None:
    text = usage()
    assert re.findall(r"'(sm_\w+)'", text.split("Allowed values", 1)[1]) == sorted(targets())
    rows = re.findall(r"^  --([^\s[]+)", text, re.M)
    assert sorted(rows) == sorted(o.long for o in OPTIONS) and len(set(rows)) == len(rows)
    inert = text.split("Taken, without effect in orias", 1)[1].split("\n\n")[0]
    assert set(re.findall(r"^  --(\S+)", inert, re.M)) == {o.long for o in OPTIONS if o.effect == "none"}


@pytest.mark.oracle
@pytest.mark.parametrize(
    "option",
    [o for o in OPTIONS if o.effect in ("use", "ok", "none") and o.kind != "str" and o not in GROUPS[-1][1]],
    ids=lambda o: o.long,
)
def test_ptxas_takes_what_we_take(option: Option, tmp_path: Path) -> None:
    """Names, short names and kinds are ptxas's: ptxas knows each form, and rejects a value of the wrong kind in the
    same way."""
    tool = oracle.NEWER if option.since else "ptxas"
    oracle.require(tool)
    for word in [f"--{option.long}"] + ([f"-{option.short}"] if option.short else []):
        mine = ""
        if option.kind in ("flag", "bool", "int", "level"):
            with pytest.raises(UsageError) as e:
                read([f"{word}=zz"])
            mine = str(e.value)
        got = oracle.run_tool(tool, f"{word}=zz", str(tmp_path / "none.ptx"))
        said = got.stderr if isinstance(got, oracle.ToolError) else got
        assert "Unknown option" not in said and mine in said, said


def test_what_travels_is_known_to_the_api() -> None:
    every = []
    for option in OPTIONS:
        value = option.values[0] if option.values else {"bool": "true", "int": "1", "level": "1"}.get(option.kind, "")
        every += [f"--{option.long}"] if option.kind == "flag" else [f"--{option.long}={value}"] if value else []
    cl = CommandLine()
    for word in [
        *every,
        "--maxntid=32",
        "-e=k",
        "-dlcm=ca",
        "-dscm=wb",
        "-flcm=ca",
        "-fscm=wb",
        "-maxrregcount=32",
        "-func-maxrregcount=32",
    ]:
        one = CommandLine()
        _read([word], one, 0)
        cl.values.update(one.values)
        cl.lists.update(one.lists)
    assert set(stream_options(cl, "sm_90")) <= CHAIN_OPTIONS
    with pytest.raises(ChainError, match=r"there is no option 'maxregcount'; there are .*maxrregcount"):
        compile_ptx("", options={"maxregcount": 32})


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ({"optimise": Flags()}, "there is no stage 'optimise'; there are encode, lower, optimize"),
        ({"optimize": Flags(skip=("fold!",))}, r"stage optimize has no pass 'fold!'; it has \w+"),
        (
            {"schedule": Flags(extra={"sched": "naive"})},
            "stage schedule has no option 'sched'; it has scheduler=list|inorder|naive, why=1|0",
        ),
        (
            {"regalloc": Flags(extra={"allocator": "x"})},
            "option 'allocator' of stage regalloc takes greedy, naive, not 'x'",
        ),
    ],
)
def test_names_that_do_not_exist_list_the_known_ones(flags: dict[str, Flags], text: str) -> None:
    ptx = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"
    with pytest.raises(ChainError, match=re.escape(text) if "w+" not in text else text):
        compile_ptx(ptx, "sm_75", flags=flags)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("optimize:skip=fold!", "stage optimize has no pass 'fold!'; it has "),
        (
            "optimize:onyl=fold",
            (
                "stage optimize has no option 'onyl'; it has only, skip, limit, stop-after, start-after, upto, "
                "dump-after, verify, stats"
            ),
        ),
        ("schedule:scheduler=x", "option 'scheduler' of stage schedule takes list, inorder, naive, not 'x'"),
        ("regalloc:limit=²", "'²': expected a number"),
        ("parse:only=x", "expected NAME:KEY=VALUE with NAME one of lower, optimize"),
    ],
)
def test_stage_options_that_do_not_exist(option: str, text: str) -> None:
    with pytest.raises(UsageError) as e:
        Run(read(["k.ptx", "--stage-option", option]))
    assert text in str(e.value)


def test_statistics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--compiler-stats in ptxas's format, to standard error or to a file: one line of time and of memory, with the
    stages on request."""
    source = tmp_path / "k.ptx"
    source.write_text(".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n")
    plain = [str(source), "-o", str(tmp_path / "k.cubin"), "--compiler-stats"]
    assert run(read([*plain, "t,m"])) == 0
    said = capsys.readouterr().err
    assert re.fullmatch(
        r"ptxas info    : STAT: CompileTime = \d+\.\d{6} ms\nptxas info    : STAT: PeakMemoryUsage = \d+\.\d{3} KB\n",
        said,
    )
    assert run(read([*plain, "time,phase-wise", "--compiler-stats-file", str(tmp_path / "stats")])) == 0
    assert capsys.readouterr().err == ""
    text = (tmp_path / "stats").read_text()
    assert text.startswith(f"{source} >>\n\nCompileTime = ") and "(100%)\n" in text
    assert len(re.findall(r"^\S+-time +: \d+\.\d{3} ms \(\d+\.\d\d%\)$", text, re.M)) == 7
    with pytest.raises(UsageError, match="Value 'x' is not defined for option 'compiler-stats'"):
        read([*plain, "x"])
