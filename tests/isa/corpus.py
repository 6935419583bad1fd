"""A corpus of one-operation PTX kernels that make ptxas emit as much of the instruction set as PTX reaches.

    python -m tests.isa.corpus OUT --sm 90 [--opt 3] [--family int,mem]

A line of :data:`tests.isa.corpus_ops.OPS` is ``PTX-opcode  operands``; braces in the opcode expand to all choices. An
operand letter is a register: h 16 bits, r 32, d 64, f f32, g f64, p predicate, q 128 bits (destinations come first;
``:`` ends them); other text is literal. Every operation becomes a few kernels: sources from global memory, the last one
immediate, the last one a parameter, all parameters. An operation with an address also becomes a kernel in which the
address depends on the thread.
"""

from __future__ import annotations

import argparse
import itertools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests import oracle
from tests.isa.corpus_ops import MODULES, OPS, RAW

TYPES = {"h": "b16", "r": "b32", "d": "b64", "f": "f32", "g": "f64", "p": "pred", "q": "b128"}
SIZES = {"h": 2, "r": 4, "d": 8, "f": 4, "g": 8, "p": 4, "q": 16}
IMMS = {"h": "5", "r": "77", "d": "99", "f": "0f3FC00000", "g": "0d3FF8000000000000", "p": "", "q": ""}
MODES = ("reg", "imm", "param", "uni")
#: Mode "tid": makes every address different in each thread, so that no uniform register can hold it.
THREAD = (
    ".reg .b32 tx; .reg .b64 tw; mov.u32 tx, %tid.x; shl.b32 tx, tx, 7; cvt.u64.u32 tw, tx;"
    " add.u64 a, a, tw; add.u64 sa, sa, tw; add.u32 s32a, s32a, tx;"
)


_ADDRESS = re.compile(r"\[(?:s32|s)?a\b")


def expand(text: str) -> Iterator[str]:
    """All choices of ``a{b,c}d``."""
    parts = re.split(r"\{([^{}]*)\}", text)
    choices = [p.split(",") if i % 2 else [p] for i, p in enumerate(parts)]
    for combo in itertools.product(*choices):
        yield "".join(combo)


def _load(letter: str, name: str, index: int, space: str) -> list[str]:
    if letter == "p":
        return [
            f"ld.{space}.u32 {name}t, [{'p0' if space == 'param' else 'a'}+{16 * index}];",
            f"setp.ne.s32 {name}, {name}t, 0;",
        ]
    kind = TYPES[letter]
    if letter == "q":
        return [
            f"ld.{space}.v2.b64 {{{name}l, {name}h}}, [{'p0' if space == 'param' else 'a'}+{16 * index}];",
            f"mov.b128 {name}, {{{name}l, {name}h}};",
        ]
    return [f"ld.{space}.{kind} {name}, [{'p0' if space == 'param' else 'a'}+{16 * index}];"]


def _store(letter: str, name: str, index: int) -> list[str]:
    if letter == "p":
        return [f"selp.u32 {name}t, 1, 0, {name};", f"st.global.u32 [o+{16 * index}], {name}t;"]
    if letter == "q":
        return [f"mov.b128 {{{name}l, {name}h}}, {name};", f"st.global.v2.b64 [o+{16 * index}], {{{name}l, {name}h}};"]
    return [f"st.global.{TYPES[letter]} [o+{16 * index}], {name};"]


def _declare(letter: str, name: str) -> str:
    extra = f" .reg .b32 {name}t;" if letter == "p" else f" .reg .b64 {name}l, {name}h;" if letter == "q" else ""
    return f".reg .{TYPES[letter]} {name};{extra}"


def kernel(name: str, opcode: str, operands: str, mode: str) -> str | None:
    """One kernel, or None if the mode does not apply."""
    tokens = operands.split()
    split = tokens.index(":") if ":" in tokens else 1
    dsts, srcs = tokens[:split], [t for t in tokens[split:] if t != ":"]
    lines: list[str] = []
    letters = [i for i, t in enumerate(srcs) if set(t) <= set("hrdfgpq")]
    last = letters[-1] if letters else -1
    if mode in ("imm", "param") and (last < 0 or (mode == "imm" and srcs[last][0] in "pq")):
        return None
    if mode == "uni" and not letters:
        return None
    text_ops: list[str] = []
    stores: list[str] = []
    for k, t in enumerate(dsts):
        names = []
        if t == "_":
            text_ops.append("_")
            continue
        for j, letter in enumerate(t.replace("|", "")):
            if letter == "_":
                names.append("_")
                continue
            reg = f"d{k}{j}"
            lines.append(_declare(letter, reg))
            stores += _store(letter, reg, 4 * k + j)
            names.append(reg)
        braced = opcode.startswith(("ldmatrix", "wmma.load"))
        text_ops.append(
            names[0] if len(t) == 1 and not braced else "|".join(names) if "|" in t else "{" + ", ".join(names) + "}"
        )
    for k, t in enumerate(srcs):
        if not set(t) <= set("hrdfgpq"):
            text_ops.append(t)
            continue
        names = []
        if mode == "imm" and k == last and len(t) == 1:
            text_ops.append(IMMS[t])
            continue
        for j, letter in enumerate(t):
            reg = f"s{k}{j}"
            lines.append(_declare(letter, reg))
            lines += _load(
                letter, reg, 4 * k + j, "param" if mode == "uni" or (mode == "param" and k == last) else "global"
            )
            names.append(reg)
        brace = len(t) > 1 or (opcode.startswith(("mma", "wmma.mma", "ldmatrix", "stmatrix")) and k < 3)
        text_ops.append("{" + ", ".join(names) + "}" if brace else names[0])
    text = ", ".join(text_ops)
    if mode == "tid":
        lines.insert(0, THREAD)
    body = "\n  ".join([*lines, f"{opcode} {text};", *stores])
    return (
        f".visible .entry {name}(.param .align 16 .b8 p0[1024], .param .u64 pa, .param .u64 po) {{\n"
        "  .reg .b64 a, o, sa; .reg .b32 s32a;\n  ld.param.u64 a, [pa]; ld.param.u64 o, [po];\n"
        "  cvta.to.global.u64 a, a; cvta.to.global.u64 o, o; mov.u64 sa, smem; cvt.u32.u64 s32a, sa;\n  "
        + body
        + "\n  ret;\n}\n"
    )


def kernels(families: set[str] | None = None) -> Iterator[tuple[str, str]]:
    """(family, kernel text) of the whole corpus, in order."""
    count = 0
    for family, table in OPS.items():
        if families and family not in families:
            continue
        for line in table.strip().splitlines():
            line = line.split("#")[0].strip()
            if not line:
                continue
            head, _, operands = line.partition(" ")
            flags = [f for group in re.findall(r"@([\w,]+)", operands) for f in group.split(",")]
            operands = re.sub(r"@[\w,]+", "", operands)
            for opcode in expand(head):
                for variant in expand(operands):
                    modes = (*(flags or MODES), *(("tid",) if _ADDRESS.search(variant) else ()))
                    for mode in modes:
                        text = kernel(f"k{count}_{mode}", opcode, variant, mode)
                        if text is not None:
                            count += 1
                            yield family, text
    for family, bodies in RAW.items():
        if families and family not in families:
            continue
        for body in bodies:
            for variant in expand_at(body):
                count += 1
                yield family, variant.replace("NAME", f"k{count}_raw")


def expand_at(text: str) -> Iterator[str]:
    """All choices of ``<<a,b>>``."""
    parts = re.split(r"<<(.*?)>>", text)
    choices = [p.split(",") if i % 2 else [p] for i, p in enumerate(parts)]
    for combo in itertools.product(*choices):
        yield "".join(combo)


HEAD = (
    ".version {version}\n.target sm_{sm}\n.address_size 64\n.extern .shared .align 16 .b8 smem[];\n.global .align 16 "
    ".b8 gmem[256];\n"
    ".const .align 16 .b8 cmem[256];\n.global .texref tex0;\n.global .surfref surf0;\n"
)


def ptx_version(sm: str) -> str:
    """The PTX version of the corpus: one that knows the target."""
    return "9.5" if sm.startswith("107") else "9.0"


def compile_all(
    out: Path, sm: str, opt: str = "3", families: set[str] | None = None, bundle: int = 60
) -> tuple[int, int]:
    """Compile the corpus for one target into ``out``; (kernels accepted, kernels refused by ptxas)."""
    out.mkdir(parents=True, exist_ok=True)
    ptxas = str(oracle.find(oracle.tool_for(sm)))
    good = bad = 0
    todo: list[tuple[tuple[str, str], list[str]]] = []
    for module, group in itertools.groupby(kernels(families), lambda k: MODULES.get(k[0], ("", ""))):
        texts = [t for _, t in group]
        todo += [(module, texts[i : i + bundle]) for i in range(0, len(texts), bundle)]
    todo.reverse()
    path = out / "in.ptx"
    while todo:
        module, part = todo.pop()
        head = HEAD.format(version=ptx_version(sm), sm=sm + module[0]) + module[1]
        lines: list[int] = []
        at = head.count("\n") + 1
        for text in part:
            lines.append(at)
            at += text.count("\n")
        path.write_text(head + "".join(part))
        cubin = out / f"c{good + bad:05d}.cubin"
        done = subprocess.run(
            [ptxas, f"-arch=sm_{sm}", f"-O{opt}", str(path), "-o", str(cubin)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            good += len(part)
            continue
        wrong = {int(x) for x in re.findall(r"in\.ptx, line (\d+); (?!info|warning)", done.stderr)}
        hit = {max((i for i, first in enumerate(lines) if first <= w), default=0) for w in wrong}
        named = set(re.findall(r"k\d+_\w+", done.stderr))
        hit |= {i for i, t in enumerate(part) if any(n + "(" in t for n in named)}
        if not hit and len(part) > 1:  # an error without a line: halve
            todo += [(module, part[len(part) // 2 :]), (module, part[: len(part) // 2])]
            continue
        bad += len(hit) or 1
        rest = [t for i, t in enumerate(part) if i not in hit] if hit else []
        if rest:
            todo.append((module, rest))
    return good, bad


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--sm", default="90")
    parser.add_argument("--opt", default="3")
    parser.add_argument("--family", default="")
    args = parser.parse_args()
    families = set(args.family.split(",")) if args.family else None
    print(args.sm, compile_all(args.out, args.sm, args.opt, families))


if __name__ == "__main__":
    main()
