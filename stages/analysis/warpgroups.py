"""Groups of warpgroup products: the last product of a group carries its end. A wait counts groups, empty ones too, so
an end may move between products of one block, and must not get lost."""

from __future__ import annotations

from ir_format.isa import facts
from ir_format.model import NOT_UPT, ZERO, Inst, Mem, Name, Reg
from ir_format.typed import Final

#: Mnemonics of the products.
PRODUCTS: Final = facts.having("warpgroup")
#: The product that writes nothing.
EMPTY: Final = "HGMMA.64x8x16.F16"
#: The last operand of a product: its group goes on, or ends with it.
OPEN: Final = Name("N", "none")
END: Final = Name("N", "gsb0")
#: Operands of the empty product.
NOTHING: Final = Reg("R", ZERO, 0, 2)
NO_DESCRIPTOR: Final = Mem("M", None, None, 0, Reg("UR", ZERO, 0, 4))


def ends_group(inst: Inst) -> bool:
    """Whether a group of products ends with the instruction."""
    return inst.op in PRODUCTS and bool(inst.srcs) and inst.srcs[-1] == END


def is_empty(inst: Inst) -> bool:
    """Whether the product computes nothing."""
    return inst.op in PRODUCTS and inst.dsts == (NOTHING,)


def empty_product(line: int) -> Inst:
    """The product that only ends a group."""
    name, *mods = EMPTY.split(".")
    return Inst(name, tuple(mods), (NOTHING,), (NO_DESCRIPTOR, NOTHING, NOT_UPT, END), None, line)


def end_at_last(insts: list[Inst]) -> bool:
    """Let the group end with the last product of a block; False if there is none after the last call, or
    another group ends with it."""
    for inst in reversed(insts):
        if inst.op == "CALL":
            return False
        if inst.op in PRODUCTS:
            if inst.srcs[-1] == OPEN:
                inst.srcs = (*inst.srcs[:-1], END)
                return True
            return False
    return False
