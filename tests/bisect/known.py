"""Faults that orias once had, planted again, and whether `orias-bisect` names the culprit.

    python -m tests.bisect.known [--only NAME ...] [--say]

Each is a change to the text of one function of a stage, as it was before the fix (or a fault of that kind in the
present function), and the program that showed it. The search knows nothing of it: the function's code is replaced, then
the search works as from the command line. If no judge can see a fault (slow code, a convention that both sides of a
call get wrong), there is a test command, as its finder would write it."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final

from stages.bisect.bisect import Guilt, Hunt, Unfit
from stages.bisect.command import Broken, Request, Source
from tests.bisect.planted import processor_seconds, reproduces

INPUTS: Final = Path(__file__).with_suffix("")
KERNELS: Final = Path(__file__).parents[1] / "kernels/ptx"
#: The interpreter, for test commands.
PYTHON: Final = sys.executable
SECONDS: Final = 60.0


class Known:
    """A fault. ``where``: `module:function` (or `module:Class.method`); ``changes``: pieces of its text, and their
    faulty replacements; ``input``: the program; ``words``: options of `orias`; ``test``: a command; ``crash``: text of
    the failure's message, if the fault is a failure."""

    def __init__(
        self,
        name: str,
        guilty: str,
        where: str,
        changes: Sequence[tuple[str, str]],
        file: str,
        arch: str = "sm_80",
        words: Sequence[str] = (),
        test: str = "",
        crash: str | None = None,
    ) -> None:
        self.name, self.where, self.changes = name, where, changes
        self.stage, _, self.part = guilty.partition(": ")
        self.arch, self.words, self.test, self.crash = arch, list(words), test, crash
        self.file = INPUTS / f"{file}.ptx" if (INPUTS / f"{file}.ptx").exists() else KERNELS / arch / f"{file}.ptx"


def function_of(where: str) -> FunctionType:
    """The function that `module:name` names."""
    module, _, name = where.partition(":")
    got: object = importlib.import_module(module)
    for part in name.split("."):
        got = getattr(got, part)
    assert isinstance(got, FunctionType), where
    return got


@contextmanager
def replanted(fault: Known) -> Iterator[None]:
    """While active the function is the faulty one."""
    function = function_of(fault.where)
    text = textwrap.dedent(inspect.getsource(function))
    for old, new in fault.changes:
        assert text.count(old) == 1, f"{fault.name}: '{old}' occurs {text.count(old)} times in {fault.where}"
        text = text.replace(old, new)
    made = compile("from __future__ import annotations\n" + text, f"<{fault.name}>", "exec")
    good = function.__code__
    function.__code__ = next(c for c in made.co_consts if isinstance(c, CodeType) and c.co_name == function.__name__)
    try:
        yield
    finally:
        function.__code__ = good


def counted(text: str, most: int) -> str:
    """A test: at most this many lines of the disassembly contain this."""
    return f"test $({PYTHON} -m stages.disasm {{}} | grep -c '{text}') -le {most}"


_CARRY: Final = (
    ("link: Reg | None = cc if cin else None", "link: Reg | None = (b.not_(cc) if minus else cc) if cin else None"),
    ("o = b.p() if not last else cc if cout and b.guard is None else b.p() if cout else PT",
     "o = b.p() if not last or cout else PT"),
    ("if cout and b.guard is not None:", "if cout:"),
    ('Imm("I", 0xF0)', 'Imm("I", 0x0F if minus else 0xF0)'),
)  # fmt: skip
_SUMS: Final = "stages.lower.rules.integer:add_flags"
_JOINS: Final = "stages.lower.convergence.converge"
KNOWN: Final = (
    Known("borrow for a carry (subc, addc)", "lower", _SUMS, _CARRY, "subcc_addc"),
    Known("borrow for a carry (sub, addc)", "lower", _SUMS, _CARRY, "cc_sub_addc_borrow"),
    Known("borrow for a carry (add, subc)", "lower", _SUMS, _CARRY, "cc_add_subc_carry"),
    Known("borrow for a carry (division of 128 bits)", "lower", _SUMS, _CARRY, "u128_div"),
    Known(
        "if-conversion destroys a live half",
        "optimize: if-conversion",
        "stages.optimize.control.if_conversion:_Converter._undefined",
        [("and at + n not in own", "")],
        "ifconvert_undef_pair",
    ),
    Known(
        "who spins is never let go",
        "lower",
        f"{_JOINS}:_Rebuild._kind",
        [(" or r.plain", "")],
        "spinlock_reconvergent",
        "sm_120",
    ),
    Known(
        "who spins is never let go (sm_100)",
        "lower",
        f"{_JOINS}:_Rebuild._kind",
        [(" or r.plain", "")],
        "spinlock_reconvergent",
        "sm_100",
    ),
    Known(
        "no BREAK where threads leave",
        "lower",
        f"{_JOINS}:edge_steps",
        [("for e in sorted(r.breaks):", "for e in ():")],
        "two_exits",
    ),
    Known(
        "nobody meets in front of a shuffle",
        "lower",
        f"{_JOINS}:insert_convergence",
        [
            ("    fn.vregs = [v if i in state.varying", "    regions = []\n    fn.vregs = [v if i in state.varying"),
            ('if state.divergent or fn.kind != "entry"', 'if fn.kind != "entry"'),
        ],
        "shuffle_after_loop",
    ),
    Known(
        "lost reconvergence",
        "lower",
        f"{_JOINS}:_worth",
        [("return [r for r in regions if r.join in kept]", "return []")],
        "lost_reconvergence_isort",
        test=f"test $({PYTHON} -m stages.disasm {{}} | grep -c BSYNC) -ge 1",
    ),
    Known(
        "arguments behind a large result one register too high",
        "lower",
        "stages.lower.abi.arguments:first_argument",
        [("_FIRST + returns_in_memory(rets)", "_FIRST + 2 * returns_in_memory(rets)")],
        "abi_large_return_callee",
        words=["-c"],
        test=f"{PYTHON} -m stages.disasm {{}} | grep -m1 -w R5 | grep -qvE '[A-Z0-9] R5,'",
    ),
    Known(
        "a predicate lost as a result",
        "lower",
        "stages.lower.abi.register_arguments:from_words",
        [("b.reg(x.index), PT)", "b.p(), PT)")],
        "pr_true",
    ),
    Known(
        "a byte behind a parameter lands on the first",
        "lower",
        "stages.lower.rules.memory:_st_function_param",
        [("if not low and decl.size <= n and name not in b.padded:", "if decl.size <= n:")],
        "ret_outside",
    ),
    Known(
        "values that interfere share a register",
        "regalloc: allocate",
        "stages.regalloc.coalescing:_interferes",
        [("            return True", "            return False")],
        "swap",
    ),
    Known(
        "a predicate comes back from its register upside down",
        "regalloc: allocate",
        "stages.regalloc.moves:Mover.r_to_p",
        [('"NE"', '"EQ"')],
        "predicates",
    ),
    Known(
        "values in registers that a call destroys",
        "regalloc: allocate",
        "stages.regalloc.allocate:_ban",
        [("if mask and any(", "if False and any(")],
        "nested_calls",
    ),
    Known(
        "what a call inside of a call destroys",
        "regalloc: allocate",
        "stages.regalloc.finish:finish_function",
        [("written.get(file, 0) | called.get(file, 0)", "written.get(file, 0)")],
        "nested_calls",
    ),
    Known(
        "registers of the caller are not saved",
        "regalloc: allocate",
        "stages.regalloc.finish:finish_function",
        [("    if standard:", "    if False:")],
        "recursion",
    ),
    Known(
        "registers of the caller come back from other places",
        "regalloc: allocate",
        "stages.regalloc.finish:_frame_code",
        [("_restore(inst, reg, saves_at - frame + 4 * at)", "_restore(inst, reg, saves_at - frame + 4 * (at ^ 1))")],
        "recursion",
    ),
    Known(
        "a register is overwritten before it was read",
        "schedule: control",
        "stages.schedule.scoreboards:_State.needed",
        [(" or self.reads[k] & (written | ordering)", "")],
        "histogram",
    ),
    Known(
        "a wait is dropped",
        "schedule: control",
        "stages.schedule.scoreboards:_State.needed",
        [("touched = a.read_mask | a.write_mask", "touched = a.write_mask")],
        "vadd",
    ),
    Known(
        "two results of one register, the later one first",
        "schedule: control",
        "stages.schedule.control:_Walk._keep_register_distances",
        [("when += waw[name]", "when += 1"), ("when += line[name]", "when += 2")],
        "divrem64",
    ),
    Known(
        "no NOP for a long distance",
        "schedule: control",
        "stages.schedule.control:emit",
        [("        _pad(out, gap - stall, inst)", "        pass"), ("stall = min(gap, MOST)", "stall = min(gap, 3)")],
        "saxpy",
    ),
    Known(
        "a load leaves a loop that stores there",
        "optimize: licm",
        "stages.optimize.loops.licm:_Hoister._always",
        [("load.op in LOADS and self.stores[n].may_change(load)", "False")],
        "reload",
    ),
    Known(
        "BSSY names its BSYNC",
        "encode",
        "stages.encode.encode:_reconvergence_points",
        [("WORD * (index + 1)", "WORD * (index + 2)")],
        "two_exits",
    ),
    Known(
        "a live range is cut short",
        "regalloc: allocate",
        "stages.regalloc.live_ranges:Ranges._build",
        [("if c in late else write", "if c in late else max(2 * low + 1, write - 16)")],
        "scan",
    ),
    Known(
        "a stack slot is used twice",
        "regalloc: allocate",
        "stages.regalloc.moves:Mover._chunks",
        [("4 * (slot.num + at)", "4 * (slot.num // 2 * 2 + at)")],
        "sort_network",
        words=["--maxrregcount", "24"],
    ),
    Known(
        "no wait for what is under way around a loop",
        "schedule: control",
        "stages.schedule.scoreboards:_fixed_point",
        [("                before = exits[pred]", "                before = exits[pred] if pred < pos else None")],
        "pipelined",
    ),
    Known(
        "a load behind a barrier has the value from before",
        "optimize: load-elimination",
        "stages.optimize.memory.redundancy:_Loads._block",
        [("and not quiet(i):", "and False:")],
        "exchange",
    ),
    Known(
        "a store that a barrier makes seen is dead",
        "optimize: dead-stores",
        "stages.optimize.memory.redundancy:_dead_stores",
        [("and not quiet(i):", "and False:")],
        "exchange",
    ),
)


class Result:
    """How a search ended."""

    def __init__(self, fault: Known, guilt: Guilt | None, why: str, seconds: float) -> None:
        self.fault, self.guilt, self.why, self.seconds = fault, guilt, why, seconds
        self.stage = guilt is not None and guilt.stage == fault.stage
        self.name = self.stage and guilt is not None and (guilt.name == fault.part or not fault.part)

    def __str__(self) -> str:
        g = self.guilt
        said = f"{g.stage}: {g.name} by {g.judge}: {g.said}" if g is not None else self.why
        mark = "ok  " if self.name else "pass" if self.stage else "BAD "
        return f"{mark} {self.seconds:5.1f} s  {self.fault.name}: {said[:170]}"


def hunt(fault: Known, say: Callable[[str], object] = lambda text: None) -> Result:
    """Search for a fault as the command line does."""
    began = processor_seconds()
    request = Request(fault.file, ["-arch", fault.arch, *fault.words], fault.test, fault.crash)
    try:
        with replanted(fault):
            source = Source(request, say)
            guilt = Hunt(source.chain(), source.judge(), say, source.narrow()).run()
            same = reproduces(source, guilt)
        took = processor_seconds() - began
        return Result(fault, guilt, "", took) if same else Result(fault, None, "commands do not reproduce", took)
    except Broken as e:
        return Result(fault, Guilt("parse", said=str(e.failure)), "", processor_seconds() - began)
    except Unfit as e:
        return Result(fault, None, str(e), processor_seconds() - began)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", help="beginnings of names")
    parser.add_argument("--say", action="store_true", help="what goes on")
    args = parser.parse_args()
    results = []
    for fault in KNOWN:
        if args.only is None or fault.name.startswith(tuple(args.only)):
            results.append(hunt(fault, print if args.say else lambda text: None))
            print(results[-1], flush=True)
    stage, name, longest = sum(r.stage for r in results), sum(r.name for r in results), max(r.seconds for r in results)
    print(f"{len(results)} known faults: right stage {stage}, right pass {name}, longest {longest:.0f} s")
    return int(name < len(results) or longest > SECONDS)


if __name__ == "__main__":
    sys.exit(main())
