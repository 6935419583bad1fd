"""Random units of every level for round-trip tests."""

from __future__ import annotations

import random

from ir_format.model import (
    ABS,
    INV,
    NEG,
    REUSE,
    ZERO,
    Block,
    Code,
    Const,
    Ctl,
    Function,
    Imm,
    Inst,
    Label,
    Mem,
    Name,
    Operand,
    Param,
    Reg,
    Reloc,
    Sym,
    Unit,
)

FLAGS = (0, 0, 0, NEG, ABS, INV, NEG | ABS, INV | NEG)


def random_reg(
    rng: random.Random, f: Function, level: str, files: tuple[str, ...] = ("R", "UR", "P", "UP", "B")
) -> Reg:
    """Any register operand of the level."""
    file = rng.choice(files)
    flags = rng.choice(FLAGS) | (REUSE if level != "ori" and rng.random() < 0.1 else 0)
    mod = rng.choice(("", "", "", "H0_H0", "B2"))
    if rng.random() < 0.15:
        return Reg(file, ZERO, 0, rng.choice((1, 2)), flags, mod)
    if level == "ori":
        n = rng.choice([n for n, v in enumerate(f.vregs) if v.file == file])
        width = rng.randint(1, f.vregs[n].width)
        return Reg(file, n, rng.randint(0, f.vregs[n].width - width), width, flags, mod)
    if file in ("P", "UP"):
        return Reg(file, rng.randrange(7), 0, 1, flags, mod)
    return Reg(file, rng.randrange(0, 12), 0, rng.choice((1, 2, 4)) if file != "B" else 1, flags, mod)


def random_operand(rng: random.Random, f: Function, level: str) -> Operand:
    """Any operand of the level."""

    def reg(*files: str) -> Reg:
        return random_reg(rng, f, level, files)._replace(flags=0, mod="")

    k = rng.randrange(9)
    if k == 0:
        return Imm(
            "I",
            rng.choice((0, 5, 0xFFFFFFFF, -8)),
            rng.choice(("", "", 'odd"name')),
            rng.choice(("", "lo")),
            rng.choice((0, NEG)),
        )
    if k == 1:
        ireg = reg("R", "UR") if rng.random() < 0.3 else None
        return Const(
            "C",
            rng.randrange(6),
            rng.choice((0, 0x160, -4)),
            rng.choice((1, 2)),
            ireg,
            rng.choice(FLAGS),
            rng.choice(("", "tab")),
        )
    if k == 2:
        base = reg("R") if rng.random() < 0.7 else None
        ubase = reg("UR") if rng.random() < 0.4 else None
        return Mem(
            "M", base, ubase, rng.choice((0, 4, -16)), reg("UR") if rng.random() < 0.5 else None, rng.choice(("", "sh"))
        )
    if k == 3:
        return Label("L", rng.choice(f.blocks).id)
    if k == 4:
        return Sym("S", "f$1", rng.choice((0, 16, -16)))
    if k == 5:
        return Name("N", "SR_TID.X")
    return random_reg(rng, f, level)


def random_unit(rng: random.Random, level: str) -> Unit:
    """A unit with everything that the model can hold."""
    u = Unit(f"k{rng.randrange(100)}", "entry", "visible")
    u.attrs = {"shared": rng.randrange(100), "reqntid": (1, 2, 3), "note": 'a "b"'}
    u.params = [Param("p", 0, 8, 8, "global", 4)]
    u.symbols = ["g", "tab"]
    u.sections = {"why": ((1, "x"), (2, (3, "y")))}
    for name in ("k", "f"):
        f = Function(name, "entry" if name == "k" else "func")
        f.frame = 16
        f.locs = [(1, 2, 3, -1, ""), (1, 2, 3, 0, "inl")]
        f.spills = (4, 8)
        f.attrs = {"x": 1}
        for file in ("R", "UR", "P", "UP", "B"):
            for _ in range(4):
                f.new_vreg(
                    file,
                    rng.choice((1, 2, 4)) if file in ("R", "UR") else 1,
                    fixed=rng.choice((-1, 3)),
                    uniform=rng.randrange(2),
                    name="%r1",
                )
        if level != "ori":
            f.regs = {"R": 12, "P": 2}
        f.blocks = [Block(i * 3, None, i) for i in range(3)]
        for b in f.blocks:
            for _ in range(rng.randrange(6)):
                b.insts.append(
                    Inst(
                        rng.choice(("IADD3", "LDG", "MOV")),
                        rng.choice(((), ("X",), ("E", "64"))),
                        tuple(random_operand(rng, f, level) for _ in range(rng.randrange(3))),
                        tuple(random_operand(rng, f, level) for _ in range(rng.randrange(4))),
                        random_reg(rng, f, level, ("P",))._replace(flags=rng.choice((0, INV)), mod="")
                        if rng.random() < 0.3
                        else None,
                        rng.randrange(50),
                        rng.choice((-1, 0, 1)),
                        Ctl(rng.randrange(16), 0, 7, rng.randrange(8), rng.randrange(64))
                        if level in ("scheduled", "encoded")
                        else None,
                        tuple(random_operand(rng, f, level) for _ in range(rng.randrange(2))),
                        (),
                        {"k": (1, "z"), "n": -3} if rng.random() < 0.3 else None,
                    )
                )
        u.functions.append(f)
    if level == "encoded":
        u.code = [
            Code(
                "k",
                "entry",
                bytes(range(32)),
                (Reloc(16, "bank4", "g", -8),),
                ((0, 5, -1),),
                (("exit", 16, -1),),
                12,
                0,
            )
        ]
    return u
