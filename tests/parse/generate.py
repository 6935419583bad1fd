"""Makes PTX instructions from the descriptor table: every row with its types and modifiers, and one-step mutations.

A case is one instruction; cases that share version and target are put into one kernel, one per line, so that one run
of a front end judges thousands.  Registers of every type, variables of every space and a label are declared.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from stages.parse import compat, table
from stages.parse.match import type_name
from stages.parse.rules import TYPES, VECTORS
from stages.parse.table import OperandSpec, Row
from stages.parse.targets import parse_name

TARGETS = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")
REGISTERS = {
    "pred": "%p", "b8": "%bb", "u8": "%ub", "s8": "%sb", "b16": "%h", "u16": "%uh", "s16": "%sh", "b32": "%r",
    "u32": "%u", "s32": "%s",
    "b64": "%rd", "u64": "%ud", "s64": "%sd", "f32": "%f", "f64": "%fd", "f16": "%hf", "b128": "%q",
}  # fmt: skip
# Types for which old versions have no register declarations: type -> (version, target).
_REGISTER_GATES = {"f16": (42, 53), "b128": (83, 70)}
_SYMBOL = {"global": "gm", "shared": "sm", "local": "lm", "const": "cm", "param": "p0"}


@dataclass(frozen=True)
class Case:
    """One instruction; `row` is the key of its row, `kind` how it was made (accept, or the mutation)."""

    text: str
    version: str
    target: str
    row: str
    kind: str


def kernel(lines: list[str], version: str, target: str) -> tuple[str, int]:
    """A module with one kernel of these lines; returns it with the number of lines before the first."""
    v = int(version.replace(".", ""))
    sm = parse_name(target)
    assert sm is not None
    declared = [
        f".reg .{t} {name}<300>;"
        for t, name in REGISTERS.items()
        if (v, sm.number) >= _REGISTER_GATES.get(t, (0, 0)) and sm.number >= _REGISTER_GATES.get(t, (0, 0))[1]
    ]
    head = f".version {version}\n.target {target}\n" + (".address_size 64\n" if v >= 23 else "\n")
    head += ".global .align 16 .b8 gm[4096]; .const .align 16 .b8 cm[64];"
    if v >= 15:
        head += " .global .texref tx; .global .surfref sf;"
    head += "\n.entry k(.param .u64 p0)\n{ "
    head += " ".join(declared) + " .shared .align 16 .b8 sm[4096]; .local .align 16 .b8 lm[64]; LL:\n"
    return head + "\n".join(lines) + "\nret;\n}\n", head.count("\n")


# --------------------------------------------------------------------------- operands as text


def register(type_: str, number: int) -> str:
    """A register that agrees with an instruction type."""
    if type_ in REGISTERS and type_ != "f16":
        return f"{REGISTERS[type_]}{number}"
    for name in ("b32", "b16", "b64", "u32", "f32", "f64", "b8"):
        if name in compat.STRICT.get(type_, ()):
            return f"{REGISTERS[name]}{number}"
    return f"%r{number}"


def _vector(type_: str, n: int, number: int) -> str:
    return "{" + ", ".join([register(type_, number + k) for k in range(n)]) + "}"


def _space(row: Row, mods: list[str], nth: int) -> str:
    spaces = [m.split("::")[0] for m in mods if m.split("::")[0] in _SYMBOL and m.split("::")[-1] != "complete_tx"]
    if nth >= len(spaces) > 1:
        return "shared"
    return spaces[min(nth, len(spaces) - 1)] if spaces else ""


def _any_length(row: Row, mods: list[str]) -> int:
    if "tcgen05" in row.name:
        return 4
    if any(m.startswith("im2col::w") for m in mods):
        return 2
    return {"4d": 2, "5d": 3}.get(next((m for m in mods if m in ("4d", "5d")), ""), 1)


#: Two halves in braces, by the type of the whole.
_PACKS = {"b64": "{%r1, %r2}", "b32": "{%h1, %h2}", "b128": "{%rd1, %rd2}"}


def operand_text(spec: OperandSpec, row: Row, types: tuple[str, ...], mods: list[str], index: int, memory: int) -> str:
    """Text of an operand that should be right."""
    type_ = type_name(spec, types)
    role = spec.role
    n = index * 8 + 1
    vector = next((int(m[1:]) for m in mods if m in VECTORS), 0)
    if role in ("d", "d_", "s", "x", "dtex", "dmask", "sel", "nsel", "msel"):
        if spec.pair and role != "dtex":
            return f"{register(type_, n)}|%p1"
        if role == "dtex":
            return _vector(type_, vector, n) if vector else register(type_, n)
        if spec.vector == -1 and vector:
            return _vector(type_, vector, n)
        if spec.vector > 0:
            return _vector(type_, spec.vector, 1)
        if spec.vector == -2:
            return _vector(type_, _any_length(row, mods), n)
        return register("b32" if role in ("dmask", "sel", "nsel", "msel") else type_, n)
    if role == "i" and row.checks == ("wgmmasp",) and row.operands.index(spec) == index:
        return "0"  # the sparsity selector
    if role == "ta":
        return f"[%r{n}]"
    if role == "m":
        space = _space(row, mods, memory)
        return f"[{_SYMBOL[space]}]" if space else f"[%rd{n}]"
    return {
        "dp": "%p1", "dpp": "%p1", "ps": "%p2", "i": _CONSTANTS.get(row.checks[0] if row.checks else "", "0"),
        "l": "LL", "k": "_", "o": "%rd1", "dsel": "%r1.b0",
        "dpack": _PACKS.get(type_, "{%bb1, %bb2}"),
        "spack": _PACKS.get(type_, "{%bb1, %bb2}"),
        "mh": "[%r1, %rd1]", "mhc": "[%r1, %rd1, %rd2]", "mt": _tensor(mods),
        "tx": _coordinates(row, types, mods), "ms": "[%rd1]",
        "mq": "[sf]" if row.name.startswith("suq") else "[tx]", "t": "TT",
        "toff": _sized("%r", mods), "tgrad": _sized("%f", mods), "tcmp": "%f1",
    }[role]  # fmt: skip


_CONSTANTS = {
    "size128": "128",
    "fence128": "128",
    "cpsize": "4",
    "cpsize16": "16",
    "maxnreg": "64",
    "wgmma": "1",
    "wgmmasp": "1",
    "power2": "8",
    "everyone": "0xffffffff",
}
_COORDINATES = {"1d": 1, "2d": 2, "3d": 4, "a1d": 2, "a2d": 4, "cube": 4, "acube": 4, "2dms": 4, "a2dms": 4}


def _sized(prefix: str, mods: list[str]) -> str:
    """A vector of as many elements as the geometry has dimensions."""
    n = 1 if any(m in ("1d", "a1d") for m in mods) else 2 if any(m in ("2d", "a2d") for m in mods) else 4
    return "{" + ", ".join([f"{prefix}{k + 1}" for k in range(n)]) + "}"


def _tensor(mods: list[str]) -> str:
    d = next((int(m[0]) for m in mods if m in ("1d", "2d", "3d", "4d", "5d")), 1)
    if "tile::gather4" in mods or "tile::scatter4" in mods:
        d = 5
    return "[%rd1, {" + ", ".join([f"%r{k + 1}" for k in range(d)]) + "}]"


def _coordinates(row: Row, types: tuple[str, ...], mods: list[str]) -> str:
    geometry = next((m for m in mods if m in _COORDINATES), "1d")
    n = _COORDINATES[geometry]
    surface = row.name[0] == "s"
    type_ = "b32" if surface or len(types) < 2 else types[1]
    regs = [register(type_, k + 1) for k in range(n)]
    if geometry in ("a1d", "a2d", "acube", "a2dms", "2dms"):
        regs[0] = "%r1"
        if geometry.endswith("ms"):
            regs = [f"%r{k + 1}" for k in range(n)]
    name = "sf" if surface else "tx"
    return f"[{name}, {{{', '.join(regs)}}}]"


# --------------------------------------------------------------------------- cases


def type_tuples(row: Row) -> list[tuple[str, ...]]:
    """All type tuples of a row, in a fixed order."""
    if not row.types:
        return [()]
    out: list[tuple[str, ...]] = []
    for alternative in row.types:
        out.extend(itertools.product(*[sorted(place) for place in alternative]))
    return out


def modifier_lists(row: Row) -> list[list[str]]:
    """The required modifiers, then each other value of each slot once."""
    base = [slot.values[0] if slot.values and slot.required else "" for slot in row.slots]
    out = [base]
    for k, slot in enumerate(row.slots):
        for value in slot.values:
            if value != base[k]:
                out.append([*base[:k], value, *base[k + 1 :]])
    return out


def opcode_text(row: Row, mods: list[str], types: tuple[str, ...]) -> str:
    """The dotted opcode, with types in their places."""
    parts = [row.name]
    placed = False
    for slot, mod in zip(row.slots, mods, strict=True):
        if not slot.values:
            parts.extend(types)
            placed = True
        elif mod:
            parts.append(mod)
    if not placed:
        parts.extend(types)
    return ".".join(parts)


def operands_of(row: Row, mods: list[str], types: tuple[str, ...], optional: bool) -> list[str]:
    """The operands, with or without the optional ones."""
    out: list[str] = []
    memory = 0
    for spec in row.operands:
        if spec.when and not any(w in mods for w in spec.when):
            continue
        if spec.optional and not optional:
            continue
        out.append(operand_text(spec, row, types, mods, len(out), memory))
        memory += spec.role in ("m", "mt")
    return out


def accepted(target: str, limit: int = 12) -> Iterator[Case]:
    """Instructions of every row; at most `limit` type tuples per modifier list beyond the first."""
    for name in table.names():
        if name in ("call", "brx.idx", "ret", "exit"):
            continue
        for row in table.rows(name):
            if row.gate.version_below or row.gate.target_below:
                continue  # `old_cases` makes these
            tuples = type_tuples(row)
            for k, mods in enumerate(modifier_lists(row)):
                chosen = tuples if k == 0 else tuples[:: max(1, len(tuples) // limit)]
                for types in chosen:
                    for optional in (False, True) if any(o.optional for o in row.operands) and k == 0 else (False,):
                        text = f"{opcode_text(row, mods, types)} {', '.join(operands_of(row, mods, types, optional))};"
                        yield Case(text, "9.0", target, row.key, "accept")


def old_cases() -> Iterator[Case]:
    """Instructions under PTX 1.x and 2.0 on the first targets: forms that existed only then."""
    for version, target in (
        ("1.4", "sm_10"),
        ("1.4", "sm_13"),
        ("1.5", "sm_13"),
        ("2.0", "sm_10"),
        ("2.0", "sm_20"),
        ("9.0", "sm_10"),
        ("9.0", "sm_20"),
    ):
        for name in table.names():
            if name in ("call", "brx.idx", "ret", "exit") or name[0] == "w":
                continue
            for row in table.rows(name)[:8]:
                types = type_tuples(row)[0]
                for mods in modifier_lists(row)[:2]:
                    text = f"{opcode_text(row, mods, types)} {', '.join(operands_of(row, mods, types, False))};"
                    yield Case(text, version, target, row.key, "old")


_OLD = (
    "sm_20",
    "sm_30",
    "sm_50",
    "sm_52",
    "sm_60",
    "sm_70",
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_89",
    "sm_90",
    "sm_100",
    "sm_120",
)
_EVERY = (
    "3.2",
    "4.2",
    "5.0",
    "6.0",
    "6.3",
    "6.5",
    "7.0",
    "7.1",
    "7.4",
    "7.8",
    "8.0",
    "8.1",
    "8.3",
    "8.6",
    "8.7",
    "8.8",
)
_RANDOM_MODIFIERS = (
    "rn", "rz", "rni", "ftz", "sat", "relu", "satfinite", "approx", "full", "lt", "eq", "and", "add", "min", "global",
    "shared", "param", "const",
    "v2", "v4", "ca", "cg", "volatile", "relaxed", "acquire", "gpu", "cta", "sync", "aligned", "uni", "nc", "wrap",
    "clamp", "trap", "x4", "row", "col",
    "1d", "2d", "NaN", "abs", "cc", "noftz", "hi", "wide", "trans", "L2::cache_hint", "m8n8k4", "m16n8k16",
    "bulk_group", "xyz", "to", "b32", "f32",
)  # fmt: skip


def mutated(target: str, seed: int, count: int) -> Iterator[Case]:
    """One-step mutations of accepted instructions, drawn with a seed."""
    rng = random.Random(seed)
    pool = [
        (name, row)
        for name in table.names()
        if name not in ("call", "brx.idx", "ret", "exit")
        for row in table.rows(name)
    ]
    pool = [(name, row) for name, row in pool if not row.gate.version_below and not row.gate.target_below]
    names = sorted({name for name, _ in pool})
    by_name = {n: [row for name, row in pool if name == n] for n in names}
    for _ in range(count):
        row = rng.choice(by_name[rng.choice(names)])
        types = rng.choice(type_tuples(row))
        mods = list(rng.choice(modifier_lists(row)))
        operands = operands_of(row, mods, types, False)
        yield _mutate(rng, row, types, mods, operands, target)


def _mutate(
    rng: random.Random, row: Row, types: tuple[str, ...], mods: list[str], operands: list[str], target: str
) -> Case:
    kind = rng.choice(
        ("type", "missing", "extra", "modifier", "modifier", "drop", "register", "register", "version", "target")
    )
    opcode = opcode_text(row, mods, types)
    version = "9.0"
    if kind == "type" and types:
        k = rng.randrange(len(types))
        changed = (*types[:k], rng.choice(sorted(TYPES)), *types[k + 1 :])
        opcode = opcode_text(row, mods, changed)
    elif kind == "missing" and operands:
        operands.pop(rng.randrange(len(operands)))
    elif kind == "extra":
        operands.insert(rng.randint(0, len(operands)), rng.choice(("%r9", "%f9", "%p3", "7")))
    elif kind == "modifier":
        parts = opcode.split(".")
        at = rng.randint(len(row.name.split(".")), len(parts))
        parts.insert(at, rng.choice(_RANDOM_MODIFIERS))
        opcode = ".".join(parts)
    elif kind == "drop" and any(mods):
        k = rng.choice([i for i, m in enumerate(mods) if m])
        mods[k] = ""
        opcode = opcode_text(row, mods, types)
    elif kind == "register" and operands:
        k = rng.randrange(len(operands))
        if "[" not in operands[k]:
            operands[k] = rng.choice(
                [
                    "%p4",
                    "%h4",
                    "%r4",
                    "%s4",
                    "%rd4",
                    "%f4",
                    "%fd4",
                    "%q4",
                    "5",
                    "1.5",
                    "gm",
                    "%tid.x",
                    "{%r4, %r5}",
                    "[gm]",
                ]
            )
        else:
            operands[k] = rng.choice(["%r4", "5", "gm", "[%f4]", "[sm]", "[gm]", "[8]"])
    elif kind == "version":
        sm = parse_name(target)
        assert sm is not None
        version = rng.choice([v for v in _EVERY])
        target = rng.choice(_OLD[:9])
        version = _at_least(version, target)
    elif kind == "target":
        target = rng.choice(_OLD)
    return Case(f"{opcode} {', '.join(operands)};", version, target, row.key, kind)


def _at_least(version: str, target: str) -> str:
    """The version, raised to the first one that knows the target."""
    from stages.parse.targets import minimum_version

    sm = parse_name(target)
    assert sm is not None
    need = max(minimum_version(sm), 23)
    have = int(version.replace(".", ""))
    return version if have >= need else f"{need // 10}.{need % 10}"
