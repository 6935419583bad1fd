"""What a whole program must define, and what is allowed only in its sections and addresses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stages.parse.sources import parse_sources, parse_text
from tests import oracle

HEAD = ".version 7.4\n.target sm_80\n.address_size 64\n"
ENTRY = ".visible .entry k() { ret; }\n"
FOO = ".extern .func foo(.param .b32 x);\n"
CALL = "{ .param .b32 x; st.param.b32 [x], 1;\n call foo, (x); ret; }\n"

#: Declared as the module's own and never defined: refused in objects too (measured).
UNDEFINED = {
    "unused": ".func foo();\n" + ENTRY,
    "visible": ".visible .func foo();\n" + ENTRY,
    "weak": ".weak .func foo();\n.visible .func bar() { call foo; ret; }\n" + ENTRY,
    "entry": ".entry foo();\n" + ENTRY,
}

#: name -> (text after the head, line, severity, message); the line counts from 1 at the head.
CASES = {
    "visible_function": (FOO + ".visible .func bar() " + CALL + ENTRY, 6, "fatal", "Unresolved extern function 'foo'"),
    "weak_function": (FOO + ".weak .func bar() " + CALL + ENTRY, 6, "fatal", "Unresolved extern function 'foo'"),
    "function_that_nobody_calls": (FOO + ".func bar() " + CALL + ENTRY, 6, "fatal", "Unresolved extern function 'foo'"),
    "function_alone": (
        ".func foo(.param .b32 x);\n.visible .func bar() " + CALL,
        6,
        "fatal",
        "Unresolved extern function 'foo'",
    ),
    "address": (
        FOO + ".visible .func bar() { .reg .b64 %l;\n mov.u64 %l, foo; ret; }\n" + ENTRY,
        6,
        "fatal",
        "Cannot take address of function 'foo'",
    ),
    "address_in_data": (FOO + ".global .u64 p = foo;\n" + ENTRY, 5, "fatal", "Cannot take address of function 'foo'"),
    "variable": (
        ".extern .global .u32 g;\n" + ENTRY,
        4,
        "warning",
        "Unresolved extern variable 'g' in whole program compilation, ignoring extern qualifier",
    ),
    "open_variable": (".extern .const .u32 g[];\n" + ENTRY, 4, "fatal", "Unresolved extern variable 'g'"),
    "label_difference": (
        ENTRY + ".section .debug_abbrev {\nX:\n.b8 1\nY:\n.b32 Y-X\n}\n",
        9,
        "error",
        "Feature 'labels1 - labels2 expression in .section' requires PTX ISA .version 7.5 or later",
    ),
    "element_in_brackets": (
        ".global .u32 g[4];\n.visible .entry k() { .reg .b32 %r;\n ld.global.u32 %r, [g[1]]; ret; }\n",
        6,
        "fatal",
        "Parsing error near '[': syntax error",
    ),
}
TAKEN = {
    "driver": (
        ".extern .func (.param .b32 r) vprintf(.param .b64 x, .param .b64 y);\n.visible .func bar() { .param "
        ".b64 x; .param .b32 r; st.param.b64 [x], 1; call (r), vprintf, (x, x); ret; }\n"
    )
    + ENTRY,
    "declared": FOO + ENTRY,
    "alias": ".func foo(.param .b32 x);\n.func real(.param .b32 x) { ret; }\n.alias foo, real;\n.func bar() "
    + CALL
    + ENTRY,
    "dynamic_shared": ".extern .shared .u32 g[];\n" + ENTRY,
    "element": ".global .u32 g[4];\n.visible .entry k() { .reg .b32 %r; ld.global.u32 %r, g[1]; ret; }\n",
}


@pytest.mark.parametrize("name", CASES)
def test_message_and_line(name: str) -> None:
    text, line, severity, message = CASES[name]
    for options in ({}, {"explain": 1}):  # ptxas gives no line if it means the whole program; an explanation does
        module, _, found = parse_sources([("k.ptx", (HEAD + text).encode())], "sm_80", options)
        bare = not options and "function 'foo'" in message or "extern variable" in message and not options
        assert [(d.line, d.severity, d.message.split("\n")[0].strip()) for d in found] == [
            (0 if bare else line, severity, message)
        ]
        assert (module is not None) == (severity == "warning")


_POINTER = ".extern .func e();\n.extern .global .u32 g;\n.visible .global .u64 p = e;\n"
_CALLING = _POINTER + ".visible .entry k() { call.uni e; ret; }\n"
#: Options, text, and all that is said: what functions use comes before variables.
ORDERED = {
    "call": ({}, _CALLING, ["Unresolved extern function 'e'"]),
    "pointer": ({}, _POINTER + ENTRY, ["Unresolved extern variable 'g' in whole program compilation, ignoring extern "
        "qualifier", "Cannot take address of function 'e'"]),
    "object": ({"compile-only": 1}, _CALLING, []),
    "extensible": ({"compile-only": 1, "extensible-whole-program": 1}, _CALLING,
        ["Cannot take address of function 'e' in extensible whole program compilation."]),
    "extensible_code": ({"compile-only": 1, "extensible-whole-program": 1},
        ".extern .func e();\n.visible .entry k() { .reg .b64 %l; mov.u64 %l, e; ret; }\n",
        ["Cannot take address of function 'e' in extensible whole program compilation."]),
    "extensible_call": ({"compile-only": 1, "extensible-whole-program": 1},
        ".extern .func e();\n.extern .global .u32 g;\n.visible .entry k() { call.uni e; ret; }\n", []),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_order_of_what_is_undefined(name: str) -> None:
    options, text, said = ORDERED[name]
    found = parse_sources([("k.ptx", (HEAD + text).encode())], "sm_80", dict(options)).diagnostics
    assert [d.message.strip() for d in found] == said


@pytest.mark.oracle
@pytest.mark.parametrize("name", ORDERED)
def test_ptxas_has_that_order(name: str, tmp_path: Path) -> None:
    oracle.require("ptxas")
    options, text, said = ORDERED[name]
    flags = {0: [], 1: ["-c"], 2: ["-ewp"]}[len(options)]
    path = tmp_path / "k.ptx"
    path.write_text(HEAD + text)
    command = [str(oracle.find("ptxas")), "-arch", "sm_80", *flags, "-o", str(tmp_path / "k.o"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line.partition(": ")[2].strip() for line in done.stderr.splitlines()] == said


@pytest.mark.parametrize("name", TAKEN)
def test_accepted_programs(name: str) -> None:
    module, _, found = parse_text(HEAD + TAKEN[name], "k.ptx", "sm_80")
    assert module is not None
    assert found == []


@pytest.mark.parametrize("name", ["visible_function", "variable", "open_variable", "address"])
def test_objects_leave_it_to_the_linker(name: str) -> None:
    assert parse_text(HEAD + CASES[name][0], "k.ptx", "sm_80", separate=True)[2] == []


@pytest.mark.parametrize("name", UNDEFINED)
@pytest.mark.parametrize("separate", [False, True])
def test_own_functions_are_defined(name: str, separate: bool) -> None:
    module, _, found = parse_text(HEAD + UNDEFINED[name], "k.ptx", "sm_80", separate=separate)
    assert module is None
    assert [(d.line, d.severity, d.message) for d in found] == [(0, "fatal", "Unresolved extern function 'foo'")]


@pytest.mark.oracle
@pytest.mark.parametrize("name", UNDEFINED)
def test_ptxas_wants_them_defined(name: str) -> None:
    oracle.require("ptxas")
    for options in ((), ("-c",)):
        made = oracle.compile_ptx(HEAD + UNDEFINED[name], "80", *options)
        assert isinstance(made, oracle.ToolError)
        assert "Unresolved extern function 'foo'" in str(made)


def test_another_source_defines_it() -> None:
    sources = [
        ("a.ptx", (HEAD + FOO + ".visible .func bar() " + CALL + ENTRY).encode()),
        ("b.ptx", (HEAD + ".visible .func foo(.param .b32 x) { ret; }\n").encode()),
    ]
    assert parse_sources(sources, "sm_80", {}).diagnostics == []


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*CASES, *TAKEN])
def test_ptxas_says_the_same(name: str) -> None:
    """Its messages; it gives no line if it means the whole program."""
    oracle.require("ptxas")
    text = CASES[name][0] if name in CASES else TAKEN[name]
    made = oracle.compile_ptx(HEAD + text, "80")
    if name in CASES and CASES[name][2] != "warning":
        assert isinstance(made, oracle.ToolError)
        assert CASES[name][3] in str(made)
    else:
        assert not isinstance(made, oracle.ToolError)
