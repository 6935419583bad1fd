"""Lift code sections to the Ori IR at level `scheduled`: one unit per section, blocks split at branch targets and after
branches."""

from __future__ import annotations

from ir_format import isa
from ir_format.diag import CompileError
from ir_format.isa import facts
from ir_format.model import Block, Function, Header, Inst, Label, Module, Operand, Reg, Unit
from stages.disasm.cubin import WORD, CodeSection, Cubin
from stages.disasm.listing import Decoded, branch_slot, decode_section

#: Mnemonics that end a block (docs/stream.md).
ENDS = facts.with_value("ctl", "branch", "exit", "ret", "trap")


def lift_section(section: CodeSection, sm: int) -> Unit:
    """The section as a unit with one function whose code is the whole section. Raises CompileError for a word without a
    row."""
    target = isa.target(sm)
    items = decode_section(section, target)
    for item in items:
        if item.inst is None:
            raise CompileError(f"{section.name} at {item.pc:#x}: {item.reason} (word {item.word:#034x})")
    name = section.name.removeprefix(".text.")
    unit = Unit(name, "entry")
    function = Function(name, "entry")
    unit.functions.append(function)
    starts = {0}
    for item in items:
        if item.label >= 0:
            starts.add(item.label)
        if item.inst is not None and item.inst.op in ENDS:
            starts.add(item.pc + WORD)
    numbers = {pc: k for k, pc in enumerate(sorted(pc for pc in starts if pc < len(section.data)))}
    block: Block | None = None
    highest: dict[str, int] = {}
    for item in items:
        if item.pc in numbers:
            block = Block(numbers[item.pc])
            function.blocks.append(block)
        assert block is not None and item.inst is not None
        block.insts.append(_labelled(item, numbers))
        for o in (*item.inst.dsts, *item.inst.srcs):
            if isinstance(o, Reg) and o.num >= 0:
                highest[o.file] = max(highest.get(o.file, 0), o.num + o.width)
    function.regs = dict(sorted(highest.items()))
    return unit


def _labelled(item: Decoded, numbers: dict[int, int]) -> Inst:
    inst = item.inst
    assert inst is not None and item.plan is not None
    if item.label < 0:
        return inst
    ops: list[Operand] = [*inst.dsts, *inst.srcs]
    ops[branch_slot(item.plan)] = Label("L", numbers[item.label])
    n = len(inst.dsts)
    return Inst(inst.op, inst.mods, tuple(ops[:n]), tuple(ops[n:]), inst.guard, inst.line, inst.loc, inst.ctl)


def lift(cubin: Cubin, source: str = "") -> tuple[Header, Module, list[Unit]]:
    """Header, module record and units of a whole cubin."""
    header = Header("scheduled", f"sm_{cubin.sm}", source)
    units = [lift_section(s, cubin.sm) for s in cubin.sections]
    module = Module()
    module.units = [u.name for u in units]
    return header, module, units


def relowered(units: list[Unit], header: Header) -> dict[str, bytes]:
    """Code of lifted (and perhaps edited) units by section name."""
    from stages.encode.encode import encode_unit

    return {f".text.{u.name}": encode_unit(u, header).code[0].data for u in units}


def unscheduled(header: Header, units: list[Unit]) -> None:
    """Turn lifted units into input for `schedule`: without control words, and without the NOPs that pad the section."""
    header.level = "allocated"
    for unit in units:
        for function in unit.functions:
            while function.blocks and all(i.op == "NOP" for i in function.blocks[-1].insts):
                function.blocks.pop()
            for block in function.blocks:
                for inst in block.insts:
                    inst.ctl = None
