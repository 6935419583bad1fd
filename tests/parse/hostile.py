"""Inputs that are nested or long in one dimension, and the cost of the front end for them.

    python -m tests.parse.hostile [--megabytes N] [NAME...]

Each input has about the requested size (10 MB by default) and is read in a separate process, whose time and peak memory
are printed with the outcome: the number of units, or the first error. A process may take 3 GiB and 300 seconds; times
over five seconds are marked with `!`.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
_REGS = ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .b16 %h<8>;"


def body(text: str, before: str = "", params: str = ".param .u64 p") -> str:
    """A module with one kernel."""
    return f"{HEAD}{before}\n.visible .entry k({params})\n{{\n{_REGS}\n{text}\nret;\n}}\n"


def _fill(size: int, make: Callable[[int], str], join: str = "\n") -> str:
    """Pieces numbered from 0, joined, of about `size` characters in all."""
    per = len(make(10_000)) + len(join)
    return join.join([make(k) for k in range(max(1, size // per))])


def _nested(size: int, opening: str, inner: str, closing: str) -> str:
    n = max(1, size // (len(opening) + len(closing)))
    return opening * n + inner + closing * n


def _deep_names(size: int) -> str:
    """A thousand scopes around uses of many different names."""
    return (
        body("{ .reg .b32 %a<2>; " * 60 + _fill(size, lambda k: f"mov.u32 %q{k}, 1;") + "}" * 60, ".reg .b32 %x;")
        if size < 0
        else body(
            ".reg .b32 %q<9999999>;" + "{ .reg .b32 x; " * 100 + _fill(size, lambda k: f"mov.u32 %q{k}, 1;") + "}" * 100
        )
    )


def _chain(size: int) -> str:
    """Functions that each call the next one."""
    n = max(2, size // 60)
    functions = [f".func f{n}() {{ ret; }}"]
    functions += [f".func f{k}() {{ call.uni f{k + 1}; ret; }}" for k in range(n - 1, 0, -1)]
    return HEAD + "\n".join(functions) + "\n.visible .entry k() { call.uni f1; ret; }\n"


def _shared_functions(size: int) -> str:
    """Many kernels that each reach the same many functions."""
    n = max(2, size // 130)
    functions = [f".func f{n}() {{ ret; }}"]
    functions += [f".func f{k}() {{ call.uni f{k + 1}; ret; }}" for k in range(n - 1, 0, -1)]
    return (
        HEAD
        + "\n".join(functions)
        + "\n"
        + "\n".join([f".visible .entry k{k}() {{ call.uni f1; ret; }}" for k in range(n)])
        + "\n"
    )


def _shared_data(size: int) -> str:
    """Many kernels that each reach the same table of many addresses."""
    n = max(2, size // 130)
    data = "".join([f".global .b8 v{k};\n" for k in range(n)])
    table = f".global .b64 t[{n}] = {{ {', '.join([f'v{k}' for k in range(n)])} }};\n"
    kernels = "\n".join([f".visible .entry k{k}() {{ .reg .b64 a; mov.u64 a, t; ret; }}" for k in range(n)])
    return HEAD + data + table + kernels + "\n"


def _hoisted(size: int) -> str:
    """Branches in the innermost of many scopes to labels of the outermost."""
    names = [f"L{k}" for k in range(max(1, size // 28))]
    return body(
        "{" * 100 + "\n".join([f"bra {n};" for n in names]) + "}" * 100 + "\n" + "\n".join([f"{n}:" for n in names])
    )


def _call(size: int) -> str:
    n = max(1, size // 22)
    params = ", ".join([f".param .b32 a{k}" for k in range(n)])
    return HEAD + (
        f".extern .func f({params});\n.visible .entry k() {{ .reg .b32 %r<2>; call f, "
        f"({', '.join(['%r1'] * n)}); ret; }}\n"
    )


INPUTS: dict[str, Callable[[int], str]] = {
    "scopes, open": lambda n: body("{" * n),
    "scopes, nested": lambda n: body(_nested(n, "{", "", "}")),
    "scopes, one after another": lambda n: body(_fill(n, lambda k: "{ .reg .b32 x; mov.u32 x, 1; }")),
    "names under nested scopes": _deep_names,
    "labels from inner scopes": _hoisted,
    "parentheses, open": lambda n: body("mov.u32 %r1, " + "(" * n),
    "parentheses, nested": lambda n: body("mov.u32 %r1, " + _nested(n, "(", "1", ")") + ";"),
    "minus signs": lambda n: body("mov.u32 %r1, " + "-" * n + "1;"),
    "sum": lambda n: body("mov.u32 %r1, " + "1+" * (n // 2) + "1;"),
    "conditional expressions": lambda n: body("mov.u32 %r1, " + "1?2:" * (n // 4) + "1;"),
    "casts": lambda n: body("mov.u32 %r1, " + "(.s64)" * (n // 6) + "1;"),
    "decimal digits": lambda n: body("mov.u32 %r1, " + "9" * n + ";"),
    "hexadecimal digits": lambda n: body("mov.u32 %r1, 0x" + "f" * n + ";"),
    "octal digits": lambda n: body("mov.u32 %r1, 0" + "7" * n + ";"),
    "binary digits": lambda n: body("mov.u32 %r1, 0b" + "1" * n + ";"),
    "digits of a fraction": lambda n: body("mov.f32 %f1, 1." + "3" * n + ";"),
    "digits of an exponent": lambda n: body("mov.f32 %f1, 1.0e" + "9" * n + ";"),
    "digits of a register": lambda n: body("mov.u32 %r1, %r" + "0" * n + "1;"),
    "digits of .version": lambda n: ".version " + "9" * n + ".0\n",
    "digits of .target": lambda n: ".version 9.0\n.target sm_" + "9" * n + "\n",
    "digits of a count": lambda n: body(".reg .b32 %z<" + "9" * n + ">;"),
    "name of an opcode": lambda n: body("a" * n + " %r1;"),
    "name of a label": lambda n: body("a" * n + ":"),
    "name of a register": lambda n: body(".reg .b32 " + "a" * n + ";"),
    "modifiers": lambda n: body("add" + ".u32" * (n // 4) + " %r1, %r2, %r3;"),
    "different modifiers": lambda n: body("add" + _fill(n, lambda k: f".x{k}", "") + " %r1, %r2, %r3;"),
    "operands": lambda n: body("add.u32 " + "%r1, " * (n // 5) + "%r1;"),
    "elements of a vector": lambda n: body("mov.b64 %rd1, {" + "%r1, " * (n // 5) + "%r1};"),
    "constants in a vector": lambda n: body("st.v4.u32 [%rd1], {" + _fill(n, lambda k: f"{k}", ",") + "};"),
    "vectors, nested": lambda n: body("mov.b64 %rd1, " + "{" * n),
    "brackets, nested": lambda n: body("ld.u32 %r1, " + "[" * n),
    "sum of an address": lambda n: body("ld.u32 %r1, [%rd1+" + "1+" * (n // 2) + "1];"),
    "instructions": lambda n: body(_fill(n, lambda k: "add.s32 %r1, %r2, %r3;")),
    "instructions on one line": lambda n: body(_fill(n, lambda k: "add.s32 %r1, %r2, %r3;", " ")),
    "instructions, immediates": lambda n: body(_fill(n, lambda k: f"add.s32 %r1, %r2, {k};")),
    "instructions, addresses": lambda n: body(_fill(n, lambda k: f"ld.global.u32 %r1, [%rd1+{k}];")),
    "instructions, registers": lambda n: body(".reg .b32 %q<9999999>;" + _fill(n, lambda k: f"mov.b32 %q{k}, %r1;")),
    "opcodes, unknown": lambda n: body(_fill(n, lambda k: f"x{k} %r1;")),
    "modifiers, unknown": lambda n: body(_fill(n, lambda k: f"add.x{k} %r1, %r2, %r3;")),
    "operands that do not fit": lambda n: body(_fill(n, lambda k: "add.s32 %r1, %rd2, %r3;")),
    "symbols, unknown": lambda n: body(_fill(n, lambda k: f"mov.u32 %r1, u{k};")),
    "labels": lambda n: body(_fill(n, lambda k: f"L{k}: bra L{k};")),
    "labels, backwards": lambda n: body(_fill(n // 2, lambda k: f"bra L{k};") + "\n" + _fill(n // 2,
    lambda k: f"L{9_999_999 - k}:")),
    "label, repeated": lambda n: body(_fill(n, lambda k: "L:")),
    "label of each scope": lambda n: body(_fill(n, lambda k: "{ L: bra L; }")),
    "branch table": lambda n: body("L: T: .branchtargets " + "L, " * (n // 3) + "L;\nbrx.idx %r1, T;"),
    "branch tables": lambda n: body("L:" + _fill(n, lambda k: f"T{k}: .branchtargets L;\nbrx.idx %r1, T{k};")),
    "branches by one table": lambda n: body(
        "L: T: .branchtargets " + "L, " * (n // 6) + "L;\n" + "brx.idx %r1, T;\n" * (n // 32)),
    "call targets": lambda n: HEAD + ".func f() { ret; }\n" +
        f".entry k() {{ .reg .b64 a; T: .calltargets {'f, ' * (n // 3)}f; call a, T; ret; }}",
    "prototypes": lambda n: body(_fill(n, lambda k: f"P{k}: .callprototype _ (.param .b32 _);")),
    "parameters of a prototype": lambda n: body(
        "P: .callprototype _ (" + ".param .b32 _, " * (n // 15) + ".param .b32 _);"),
    "arguments of a call": _call,
    "calls": lambda n: HEAD + f".func f() {{ ret; }}\n.entry k() {{ {'call.uni f;' * (n // 11)} ret; }}",
    "functions that call each other": _chain,
    "functions of many kernels": _shared_functions,
    "data of many kernels": _shared_data,
    "kernels": lambda n: HEAD + _fill(n, lambda k: f".entry k{k}() {{ ret; }}"),
    "kernel, repeated": lambda n: HEAD + _fill(n, lambda k: ".entry k() { ret; }"),
    "functions, declared": lambda n: HEAD + _fill(n, lambda k: f".extern .func f{k}();"),
    "function, declared again": lambda n: HEAD + _fill(n, lambda k: ".extern .func f();"),
    "kernel parameters": lambda n: HEAD + ".entry k(" + _fill(n, lambda k: f".param .u32 a{k}", ",") + ") { ret; }",
    "kernel parameters, open": lambda n: HEAD + ".entry k(" + ".param .u32 a," * (n // 14),
    "registers": lambda n: body(_fill(n, lambda k: f".reg .b32 a{k};")),
    "registers of one declaration": lambda n: body(".reg .b32 " + _fill(n, lambda k: f"a{k}", ",") + ";"),
    "register, repeated": lambda n: body(_fill(n, lambda k: ".reg .b32 a;")),
    "register families": lambda n: body(_fill(n, lambda k: f".reg .b32 a{k}_<9>;")),
    "registers of a family": lambda n: body(".reg .b32 %big<2147483647>; " + _fill(n,
    lambda k: f"mov.u32 %big{k}, 1;")),
    "variables": lambda n: HEAD + _fill(n, lambda k: f".global .b32 a{k};") + "\n.entry k() { ret; }",
    "variables, extern and not": lambda n: HEAD + _fill(n // 2, lambda k: f".extern .global .b32 a{k};") + _fill(n // 2,
    lambda k: f".visible .global .b32 a{k};"),
    "variable, repeated": lambda n: HEAD + _fill(n, lambda k: ".global .b32 a;"),
    "variables of a function": lambda n: body(_fill(n, lambda k: f".local .b32 a{k};")),
    "variables of each scope": lambda n: body(_fill(n, lambda k: "{ .local .b32 a; }")),
    "dimensions": lambda n: HEAD + ".global .b8 a" + "[1]" * (n // 3) + ";",
    "initialiser": lambda n: HEAD + ".global .b8 a[] = {" + "1," * (n // 2) + "1};\n.entry k() { ret; }",
    "initialiser of addresses": lambda n: HEAD +
        ".global .b8 v; .global .b64 a[] = {" + "v," * (n // 2) + "v};\n.entry k() { ret; }",
    "initialiser, nested": lambda n: HEAD + ".global .b8 a[2] = " + "{" * n,
    "initialiser, flat for two dimensions": lambda n: HEAD + ".global .b8 a[2][2] = {" + "1," * (n // 2) + "1};",
    "initialised size": lambda n: HEAD + ".global .b8 a[4000000000] = {1};\n.entry k() { ret; }" + "\n" * n,
    "attributes": lambda n: HEAD + ".global .attribute(" + ".managed," * (n // 9) + ".managed) .b32 a;",
    "aliases": lambda n: HEAD + ".func f() { ret; }\n" + _fill(n, lambda k: f".func g{k}();\n.alias g{k}, f;"),
    "string": lambda n: HEAD + '.file 1 "' + "a" * n + '"\n',
    "string, open": lambda n: HEAD + '.file 1 "' + "a" * n,
    "strings": lambda n: HEAD + '.pragma ' + '"nounroll", ' * (n // 12) + '"nounroll";',
    "quotes": lambda n: HEAD + '"' * n,
    "pragmas": lambda n: body('.pragma "nounroll";\n' * (n // 20)),
    "files": lambda n: HEAD + _fill(n, lambda k: f'.file {k + 1} "a.cu"'),
    "locations": lambda n: body(_fill(n, lambda k: f".loc 1 {k} 1\nret;"), '.file 1 "a.cu"\n'),
    "locations, inlined": lambda n: body(".loc 1 1 1\n" + _fill(n,
    lambda k: f".loc 1 {k} 1, function_name $L, inlined_at 1 1 1\nret;"), '.file 1 "a.cu"\n'),
    "sections": lambda n: HEAD + _fill(n, lambda k: f".section .debug_x{k} {{ .b8 1 }}"),
    "section data": lambda n: HEAD + ".section .debug_str {" + ".b8 1\n" * (n // 6) + "}",
    "section data of one line": lambda n: HEAD + ".section .debug_str { .b8 " + "1," * (n // 2) + "1\n}",
    "section labels": lambda n: HEAD + ".section .debug_str {" + _fill(n, lambda k: f"L{k}:\n.b8 1") + "}",
    "line markers": lambda n: HEAD + _fill(n, lambda k: f'# {k} "a.cu"') + "\n.entry k() { ret; }",
    "line markers and errors": lambda n: body(_fill(n, lambda k: f'# {k} "a.cu"\nadd.u32 %rd1, %r1, %r1;')),
    "hashes": lambda n: HEAD + "#" * n,
    "newlines": lambda n: HEAD + "\n" * n,
    "carriage returns": lambda n: HEAD + "\r\n" * (n // 2),
    "blanks": lambda n: HEAD + " " * n,
    "blanks between tokens": lambda n: body("add.u32 " + " " * n + " %r1, %r2, %r3;"),
    "blanks after each token": lambda n: body(_fill(n, lambda k: "add.u32  \t %r1  \t , \t %r2 , %r3\t;")),
    "comments": lambda n: HEAD + "// a\n" * (n // 5),
    "comments, short": lambda n: HEAD + "/**/" * (n // 4),
    "comment": lambda n: HEAD + "//" * (n // 2),
    "comment, open": lambda n: HEAD + "/*" * (n // 2),
    "comments in instructions": lambda n: body(_fill(n, lambda k: "add.u32 /**/ %r1 /**/, %r2, /**/ %r3;")),
    "NUL": lambda n: HEAD + "\0" * n,
    "bytes that are no ASCII": lambda n: HEAD + "\xff" * n,
    "one such byte at the end": lambda n: HEAD + "a" * n + "\xff",
    "at signs": lambda n: body("@" * n),
    "exclamation marks": lambda n: body("@" + "!" * n + "%p1 ret;"),
    "semicolons": lambda n: body(";" * n),
    "commas": lambda n: body("add.u32 " + "," * n),
    "dots": lambda n: body("." * n),
    "bars": lambda n: body("setp.eq.u32 %p1" + "|%p1" * (n // 4) + ", %r1, %r2;"),
    "guards": lambda n: body("@%p1 " * (n // 5) + "ret;"),
    "directives of a kernel": lambda n: HEAD + ".entry k() " + ".maxntid 1 " * (n // 11) + "{ ret; }",
    "targets": lambda n: ".version 9.0\n.target sm_90" + ", debug" * (n // 7) + "\n",
    "address sizes": lambda n: HEAD + ".address_size 64\n" * (n // 17),
    "nothing but letters": lambda n: "a" * n,
    "nothing but one line of digits": lambda n: "1" * n,
}  # fmt: skip


def measured(name: str, size: int) -> tuple[float, int, str]:
    """Seconds, peak memory in MiB (without the text itself) and outcome, from a separate process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
        os.write(write, _attempt(name, size).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as f:
        said = f.read()
    os.waitpid(child, 0)
    seconds, memory, outcome = (said or "300 0 killed").split(" ", 2)
    return float(seconds), int(memory), outcome


def _attempt(name: str, size: int) -> str:
    from stages.parse import parse_text

    text = INPUTS[name](size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        module, units, diagnostics = parse_text(text, "t.ptx", "sm_90")
    except BaseException as e:
        outcome = f"FAILURE {type(e).__name__}: {e}"
    else:
        errors = [d for d in diagnostics if d.severity in ("error", "fatal")]
        outcome = (
            f"{len(units)} units"
            if module is not None
            else f"{len(errors)} errors: {errors[0].message[:60]}"
            if errors
            else "FAILURE: nothing"
        )
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    return f"{time.process_time() - start:.2f} {memory} {outcome}"


def run(names: list[str], size: int) -> Iterator[tuple[str, float, int, str]]:
    """Measures the inputs named."""
    for name in names:
        yield name, *measured(name, size)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--megabytes", type=float, default=10)
    args = parser.parse_args()
    bad = slow = count = 0
    worst = 0
    for name, seconds, memory, outcome in run(args.names or list(INPUTS), int(args.megabytes * 1e6)):
        count += 1
        slow += seconds > 5
        bad += outcome.startswith(("FAILURE", "killed"))
        worst = max(worst, memory)
        print(f"{'!' if seconds > 5 else ' '} {name:36} {seconds:7.2f} s {memory:6} MiB  {outcome}", flush=True)
    print(f"{count} inputs, {bad} failures, {slow} over five seconds, at most {worst} MiB")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
