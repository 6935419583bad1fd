"""Resolve what `encode` left symbolic: bank offsets, address slots, code addresses."""

from __future__ import annotations

from ir_format.diag import CompileError
from ir_format.model import Module, Reloc
from ir_format.target import CONST_MAX, Target, given_by_driver
from stages.elf import attrs
from stages.elf.headers import ENTRY_SIZES
from stages.elf.layout import CONST, Kernel, Variables
from stages.elf.patch import add_const_offset, add_imm32, set_branch


def collect_externs(kernels: list[Kernel], module: Module, variables: Variables) -> list[str]:
    """External functions in order of first use by ``kernels`` (file order); gives each kernel its own list, and fills
    bank 4.

    Slots (measured): functions that the first kernel calls, every global variable, used or not, functions that only
    later kernels call.
    """
    known = set(module.externs)
    found: dict[str, None] = {}
    for k in kernels:
        own: dict[str, None] = {}
        for f in k.functions:
            for r in f.code.relocs:
                if r.symbol in known:
                    own[r.symbol] = None
        for name in attrs.names(k.unit, "externs"):
            own[name] = None
        k.externs = list(own)
        found.update(own)
    for name in found:
        if not given_by_driver(name):
            raise CompileError(f"Unresolved extern function '{name}'", severity="fatal")
        if name in variables.place:
            raise CompileError(f"'{name}' is both a variable and an external function")
    first = kernels[0].externs if kernels else []
    data = [v.name for v in variables.order if v.space == "global"]
    variables.slot = {name: 8 * i for i, name in enumerate(dict.fromkeys((*first, *data, *found)))}
    variables.crowded = 8 * len(variables.slot) >= CONST_MAX
    if variables.crowded:  # ptxas puts the addresses into the code then; here those that no code uses lose their slot
        used = {r.symbol for k in kernels for f in k.functions for r in f.code.relocs}
        variables.slot = {
            name: 8 * i for i, name in enumerate(name for name in variables.slot if name in used or name in found)
        }
    if 8 * len(variables.slot) > CONST_MAX:
        size = 8 * len(variables.slot)
        raise CompileError(
            f"Code that names so many global variables is not supported by orias: "
            f"their addresses take {size:#x} bytes, {CONST_MAX:#x} max"
        )
    return list(found)


def resolve(kernel: Kernel, variables: Variables, target: Target) -> None:
    """Fill every relocated field of the kernel's text."""
    for f in kernel.functions:
        for r in f.code.relocs:
            _apply(kernel, variables, target, f.begin + r.offset, r)


def _apply(kernel: Kernel, variables: Variables, target: Target, at: int, r: Reloc) -> None:
    base = kernel.base(r.symbol)
    if r.symbol in ENTRY_SIZES:
        return  # the driver's work
    if r.kind == "call":
        if base is None:
            raise CompileError(f"unit '{kernel.name}' calls '{r.symbol}', which it does not hold")
        set_branch(kernel.text, at, base + r.addend, target.branch_low8)
    elif r.kind == "bank3":
        add_const_offset(kernel.text, at, _const_place(kernel, variables, r) + r.addend, r.symbol)
    elif r.kind == "bank4":
        add_const_offset(kernel.text, at, _slot(kernel, variables, r) + r.addend, r.symbol)
    elif r.kind == "imm_off" and base is None:
        in_const = variables.place.get(r.symbol, ("", 0))[0] == CONST
        add_imm32(kernel.text, at, (_const_place if in_const else _slot)(kernel, variables, r) + r.addend)
    elif r.kind in ("imm_off", "imm_lo") and base is not None:
        add_imm32(kernel.text, at, base + r.addend)
    elif r.kind == "imm_hi" and base is not None:
        add_imm32(kernel.text, at, base + r.addend >> 32)
    else:
        raise CompileError(
            f"unit '{kernel.name}': relocation '{r.kind}' against '{r.symbol}' is not supported by orias"
        )


def _const_place(kernel: Kernel, variables: Variables, r: Reloc) -> int:
    section, offset = variables.place.get(r.symbol, ("", 0))
    if section != CONST:
        raise CompileError(f"unit '{kernel.name}': '{r.symbol}' is no constant variable of the module")
    return offset


def _slot(kernel: Kernel, variables: Variables, r: Reloc) -> int:
    slot = variables.slot.get(r.symbol)
    if slot is None:
        raise CompileError(f"unit '{kernel.name}': '{r.symbol}' has no slot in the address table")
    return slot
