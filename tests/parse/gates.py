"""Compares gates with ptxas's: under which `.version` and `.target` each form is accepted, and the message if not.

    python -m tests.parse.gates [--every N] [--show K] [--names cp.async,tex] [--modules]
    python -m tests.parse.gates --release 13.5 --new

Every form that the table generates and ptxas accepts at PTX 9.0 on some target is given to both front ends under each
of the 44 versions (on that target), under each of the 45 targets (at 9.0), and under ten old versions with old targets.
Prints how often the verdict differs (thus a minimum version or the set of targets), and how often the first message
does. `--modules` does the same for whole modules, thus for directives: those of `module_cases` and `manual_cases`.
`--new` takes the forms that are accepted here at PTX 9.5 on some target and at 9.0 on none of `BASES`: under 8.8 to
9.5, and on each target at 9.5.
"""

from __future__ import annotations

import argparse
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from ir_format.release import PTX_VERSIONS
from stages.parse import parse_text, table
from stages.parse.table import Row
from stages.parse.table.gates import OTHER, OWN
from stages.parse.table.vocabulary import vocabulary
from stages.parse.targets import VERSIONS
from tests.parse import agreement
from tests.parse.agreement import Messages, _ptxas, judge, message_class, refused
from tests.parse.generate import REGISTERS, accepted, modifier_lists, opcode_text, operands_of, type_tuples
from tests.parse.manual_cases import MODULES, text_of
from tests.parse.module_cases import CASES

BASES = ("sm_100a", "sm_120a", "sm_90a", "sm_103a", "sm_110a", "sm_80", "sm_75", "sm_121f")
_NUMBERS = (
    10,
    11,
    12,
    13,
    20,
    21,
    30,
    32,
    35,
    37,
    50,
    52,
    53,
    60,
    61,
    62,
    70,
    72,
    75,
    80,
    82,
    86,
    87,
    88,
    89,
    90,
    100,
    101,
    103,
    110,
    120,
    121,
)
TARGETS = [
    f"sm_{n}{suffix}"
    for n in _NUMBERS
    for suffix in ("", "a", "f")
    if not suffix or (n >= 90 and (n, suffix) != (90, "f"))
]
BOTH = (
    ("2.3", "sm_20"), ("3.0", "sm_20"), ("4.2", "sm_30"), ("5.0", "sm_60"), ("6.0", "sm_60"), ("6.3", "sm_75"),
    ("7.0", "sm_75"), ("7.0", "sm_80"), ("7.8", "sm_90"), ("8.0", "sm_89"), ("8.6", "sm_100"),
)  # fmt: skip
Form = tuple[str, str]  # row, instruction
Front = Callable[[str], list[tuple[int, str, str]]]
Side = Callable[[list[str], str, str], list[Messages]]  # what a front end says of each line


def architecture(target: str) -> str:
    """A `compute_` name that accepts the target."""
    m = re.fullmatch(r"sm_(\d+)([af]?)", target)
    assert m is not None
    number = int(m.group(1))
    number = 110 if number == 101 else 86 if number == 82 else max(75, number)
    return f"compute_{number}{m.group(2)}"


def kernel(lines: list[str], version: str, target: str) -> tuple[str, int]:
    """A module as from `generate.kernel`, but with everything declared, even what an old version refuses."""
    head = f".version {version}\n.target {target}\n.address_size 64\n"
    head += (
        ".global .align 16 .b8 gm[4096]; .const .align 16 .b8 cm[64]; .global .texref tx; "
        ".global .surfref sf;\n.entry k(.param .u64 p0)\n{ "
    )
    head += " ".join([f".reg .{t} {name}<300>;" for t, name in REGISTERS.items()])
    head += " .shared .align 16 .b8 sm[4096]; .local .align 16 .b8 lm[64]; LL:\n"
    return head + "\n".join(lines) + "\nret;\n}\n", head.count("\n")


def theirs(lines: list[str], version: str, target: str) -> list[Messages]:
    """ptxas's messages for each line."""
    return judge(lines, lambda part: kernel(part, version, target), lambda text: _ptxas(text, architecture(target)))


def ours(lines: list[str], version: str, target: str) -> list[Messages]:
    """Our messages for each line."""

    def run(text: str) -> list[tuple[int, str, str]]:
        _, _, diagnostics = parse_text(text, "k.ptx", architecture(target), release=agreement.RELEASE)
        return [(d.line, d.severity, d.message) for d in diagnostics]

    return judge(lines, lambda part: kernel(part, version, target), run)


def fetches() -> list[Form]:
    """Texture and surface accesses with features that the table's forms lack: four coordinates, a second result, a
    sampler, references in registers, offsets and comparisons."""
    four, result = "{%f1, %f2, %f3, %f4}", "{%f1, %f2, %f3, %f4}"
    out: list[Form] = []
    for name, extra in (
        ("tex", ""),
        ("tex.base", ""),
        ("tex.level", ", %f1"),
        ("tex.grad", ", {%f1, %f2}, {%f1, %f2}"),
        ("tld4.r", ""),
    ):
        head = f"{name}.2d.v4.f32.f32"
        for destination, reference, tail in (
            (result, "tx", ""), (f"{result}|%p1", "tx", ""), (result, "tx, tx", ""), (result, "%rd1", ""), (result,
            "%rd1, %rd2", ""),
            (result, "tx", ", {%r1, %r2}"), (result, "tx", ", {%r1, %r2}, %f5"), (result, "tx", ", %f5"),
            (f"{result}|%p1", "%rd1", ", %f5"),
        ):  # fmt: skip
            out.append(
                (name.removesuffix(".r") + "#fetch", f"{head} {destination}, [{reference}, {four}]{extra}{tail};")
            )
    for name in (
        "suld.b.2d.b32.trap %r1, [%rd1, {%r1, %r2}]",
        "sust.b.2d.b32.trap [%rd1, {%r1, %r2}], %r1", "sust.p.2d.b32.trap [%rd1, {%r1, %r2}], %r1",
                 "sured.b.add.2d.u32.trap [%rd1, {%r1, %r2}], %r1", "sured.p.add.2d.b32.trap [%rd1, {%r1, %r2}], %r1",
                 "txq.width.b32 %r1, [%rd1]", "suq.width.b32 %r1, [%rd1]", "txq.filter_mode.b32 %r1, [%rd1]",
                     "txq.level.width.b32 %r1, [%rd1], %r2"):  # fmt: skip
        out.append((name.split(" ")[0].split(".2d")[0] + "#fetch", name + ";"))
    return out


def forms(limit: int = 6) -> dict[Form, str]:
    """The table's forms with the first target of `BASES` on which ptxas accepts them at PTX 9.0."""
    waiting: dict[Form, None] = dict.fromkeys(fetches())
    for target in BASES:
        waiting.update(dict.fromkeys((c.row, c.text) for c in accepted(target, limit)))
    return taken(waiting, "9.0", BASES, theirs)


def taken(waiting: Iterable[Form], version: str, bases: tuple[str, ...], side: Side) -> dict[Form, str]:
    """The forms that ptxas accepts under a version, with the first such target."""
    found: dict[Form, str] = {}
    for target in bases:
        keys = [k for k in waiting if k not in found]
        for start in range(0, len(keys), 4000):
            part = keys[start : start + 4000]
            for key, messages in zip(part, side([k[1] for k in part], version, target), strict=True):
                if not refused(messages):
                    found[key] = target
    return found


def new_forms(limit: int = 6) -> dict[Form, str]:
    """Forms of PTX 9.1 to 9.5: what is taken here at 9.5 on some target and at 9.0 nowhere (a form that only one of the
    front ends has at 9.0 shows when they are compared, under 9.0 too). Of modifiers also pairs, where a word is new or
    the instruction has some gate of 9.1 or later."""
    bases = ("sm_107a", *BASES)
    older = vocabulary((9, 0), False)
    changed = {
        n
        for line in (OWN + OTHER).splitlines()
        if re.search(r"\bv9\.[1-5]\b", line)
        for n in line.split("|")[0].split()
    }
    waiting: dict[Form, None] = dict.fromkeys((c.row, c.text) for c in accepted(bases[0], limit))
    for name in table.names():
        for row in () if name in ("call", "brx.idx", "ret", "exit") else table.rows(name):
            if row.gate.version_below or row.gate.target_below:
                continue
            tuples = type_tuples(row)
            for mods in pairs_of(row):
                if name not in changed and not any(m and not older.is_modifier(m) for m in mods):
                    continue
                for types in tuples[:: max(1, len(tuples) // 3)]:
                    text = f"{opcode_text(row, mods, types)} {', '.join(operands_of(row, mods, types, False))};"
                    waiting[row.key, text] = None
    old = taken(waiting, "9.0", bases[1:], ours)
    return taken([k for k in waiting if k not in old], "9.5", bases, ours)


def pairs_of(row: Row) -> Iterator[list[str]]:
    """Modifiers of two slots changed at once."""
    base = modifier_lists(row)[0]
    slots = [(k, v) for k, slot in enumerate(row.slots) for v in slot.values if v != base[k]]
    for (j, v), (k, w) in itertools.combinations(slots, 2):
        if j != k:
            mods = list(base)
            mods[j], mods[k] = v, w
            yield mods


class Comparison:
    """Counts and examples of differences."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: dict[tuple[str, str], list[str]] = defaultdict(list)

    def run(self, keys: list[Form], version: str, target: str) -> None:
        """Compares forms under one version and target."""
        for start in range(0, len(keys), 4000):
            part = keys[start : start + 4000]
            lines = [k[1] for k in part]
            for (row, text), a, b in zip(
                part, theirs(lines, version, target), ours(lines, version, target), strict=True
            ):
                self.add(row.split("#")[0], f"[{version} {target}] {text}", _errors(a), _errors(b))

    def add(self, name: str, case: str, a: list[str], b: list[str]) -> None:
        """Counts a case with ptxas's errors and ours."""
        self.counts["cases"] += 1
        if bool(a) != bool(b):
            self.counts["verdict differs"] += 1
            self.wrong["verdict", f"{name}: {(a or b)[0]}"].append(f"{case}  ptxas {a[:2]}, ours {b[:2]}")
        elif a:
            self.counts["refused by both"] += 1
            pair = message_class(a[0]), message_class(b[0])
            self.counts["first text equal"] += a[0] == b[0]
            if pair[0] == pair[1]:
                self.counts["first class equal"] += 1
            else:
                self.wrong["class", f"{name}: {pair[0]} <> {pair[1]}"].append(f"{case}  ptxas {a[:2]}, ours {b[:2]}")


def _errors(messages: Messages) -> list[str]:
    return [m for severity, m in messages if severity in ("error", "fatal", "crash")]


def compare(
    found: dict[Form, str],
    versions: list[str],
    targets: list[str],
    both: tuple[tuple[str, str], ...],
    newest: str = "9.0",
) -> Comparison:
    """Compares forms under versions (each form on its own target), under targets (at `newest`), and under pairs."""
    out = Comparison()
    by_base: dict[str, list[Form]] = defaultdict(list)
    for key, base in found.items():
        by_base[base].append(key)
    for base, keys in by_base.items():
        for version in versions:
            out.run(keys, version, base)
    everything = list(found)
    for version, target in (*[(newest, t) for t in targets], *both):
        out.run(everything, version, target)
    return out


_HEADER = re.compile(r"\.version [0-9.]+\s+\.target (sm_\w+)")


def compare_modules(every: int) -> Comparison:
    """Whole modules under each version on their own target, and on each target at 9.0."""
    out = Comparison()
    texts = {**CASES, **{name: text_of(name) for name in MODULES}}
    for name, text in list(texts.items())[::every]:
        m = _HEADER.match(text)
        if m is None:
            continue
        rest = text[m.end() :]
        for version, target in [
            *[(v, m.group(1)) for v in sorted(VERSIONS, key=float)],
            *[("9.0", t) for t in TARGETS],
        ]:
            changed = f".version {version}\n.target {target}{rest}"
            arch = architecture(target)
            theirs = [(severity, message) for _, severity, message in _ptxas(changed, arch)]
            mine = [(d.severity, d.message) for d in parse_text(changed, "k.ptx", arch, release=agreement.RELEASE)[2]]
            out.add("module", f"[{version} {target}] {name}", _errors(theirs), _errors(mine))
    return out


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", default="", help="only forms of these instructions")
    parser.add_argument("--modules", action="store_true", help="whole modules instead of instructions")
    parser.add_argument("--new", action="store_true", help="the forms of PTX 9.1 to 9.5, with --release 13.5")
    parser.add_argument("--list", action="store_true", help="print the forms and their targets only")
    parser.add_argument("--every", type=int, default=20, help="take each N-th form; 1 takes about 20 minutes")
    parser.add_argument("--show", type=int, default=1)
    parser.add_argument("--release", default="13.0", help="the ptxas to be compared with: 13.0 or 13.5")
    args = parser.parse_args()
    agreement.RELEASE = args.release
    if args.modules:
        result = compare_modules(args.every)
    else:
        found = new_forms() if args.new else forms()
        names = set(args.names.split(",")) if args.names else {row.split("#")[0] for row, _ in found}
        sample = dict([item for item in found.items() if item[0][0].split("#")[0] in names][:: args.every])
        if args.list:
            print(*[f"{base} {row}: {text}" for (row, text), base in sample.items()], sep="\n")
            return
        if args.new:
            later = [f"{a}.{b}" for a, b in PTX_VERSIONS if (a, b) >= (8, 8)]
            result = compare(sample, later, [*TARGETS, "sm_107", "sm_107a", "sm_107f"], (), "9.5")
        else:
            result = compare(sample, sorted(VERSIONS, key=float), TARGETS, BOTH)
    for key in sorted(result.wrong, key=lambda k: (k[0], -len(result.wrong[k]))):
        print(f"{len(result.wrong[key]):6} {key[0]}: {key[1]}")
        for text in result.wrong[key][: args.show]:
            print("         ", text)
    n, bad, both = result.counts["cases"], result.counts["verdict differs"], max(1, result.counts["refused by both"])
    if not args.modules:
        print(f"{len(sample)} of {len(found)} forms, {len(VERSIONS)} versions, {len(TARGETS)} targets")
    print(
        f"verdicts equal: {n - bad} of {n} = {100 * (n - bad) / n:.3f} %; refused by both: {both}; first message: "
        f"class equal {100 * result.counts['first class equal'] / both:.2f} %, "
        f"text equal {100 * result.counts['first text equal'] / both:.2f} %"
    )


if __name__ == "__main__":
    main()
