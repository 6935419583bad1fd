"""Random units at level `ori`: structured control flow over registers of every file, width and liveness pattern that
lowering can produce.

Every value is defined on every path to its uses (or under the guard of its uses), so that a program has one meaning and
can be executed before and after allocation.
"""

from __future__ import annotations

import random

from ir_format.model import (
    INV,
    NOT_PT,
    PT,
    RZ,
    Block,
    Function,
    Imm,
    Inst,
    Mem,
    Operand,
    Reg,
    Sym,
    Unit,
    cbank,
    imm,
    label,
    mem,
)

ARGS = tuple(range(4, 16))


class Maker:
    """Builds one function. ``live``: values that may be read, per (file, width)."""

    def __init__(
        self, rnd: random.Random, name: str, kind: str, callees: list[tuple[str, int, int]], size: int, pressure: int
    ) -> None:
        self.rnd = rnd
        self.fn = Function(name, kind)
        self.callees = callees
        self.left = size
        self.pressure = pressure
        self.temporaries = False
        self.live: dict[tuple[str, int], list[Reg]] = {}
        self.r1 = self.fn.new_vreg("R", 1, 1, 1)
        self.next = 0
        self.block = self.open()
        self.barriers = 0

    def open(self) -> Block:
        block = Block(self.next)
        self.next += 1
        self.fn.blocks.append(block)
        self.block = block
        return block

    def emit(
        self,
        op: str,
        dsts: tuple[Operand, ...] = (),
        srcs: tuple[Operand, ...] = (),
        guard: Reg | None = None,
        **more: object,
    ) -> Inst:
        name, *mods = op.split(".")
        inst = Inst(name, tuple(mods), dsts, srcs, guard, **more)  # type: ignore[arg-type]
        self.block.insts.append(inst)
        return inst

    # ---------------------------------------------------------------- values

    def known(self, file: str, width: int) -> list[Reg]:
        return self.live.setdefault((file, width), [])

    def pick(self, file: str, width: int = 1) -> Reg:
        """A defined value, sometimes a part of a wider one."""
        rnd = self.rnd
        if file == "R" and rnd.random() < 0.3:
            wider = [w for w in (2, 4) if w > width and self.known("R", w)]
            if wider:
                w = rnd.choice(wider)
                whole = rnd.choice(self.known("R", w))
                return whole._replace(sub=rnd.randrange(0, w, width), width=width)
        pool = self.known(file, width)
        if not pool:
            return self.define(file, width)
        if rnd.random() < 0.5:
            return pool[-1 - rnd.randrange(min(len(pool), 4))]
        return rnd.choice(pool)

    def target(self, file: str, width: int = 1) -> Reg:
        """A destination: new, or a defined variable that is written again."""
        pool = self.known(file, width)
        full = sum(len(p) for (f, _), p in self.live.items() if f == file) >= self.pressure
        if pool and self.rnd.random() < (0.8 if full else 0.25):
            return self.rnd.choice(pool)
        return self.fn.new_vreg(file, width, uniform=1 if file in ("UR", "UP") else 0)

    def done(self, reg: Reg) -> None:
        pool = self.known(reg.file, reg.width)
        if reg not in pool:
            pool.append(reg)

    def define(self, file: str, width: int = 1) -> Reg:
        """Create a new value without inputs."""
        reg = self.fn.new_vreg(file, width, uniform=1 if file in ("UR", "UP") else 0)
        rnd = self.rnd
        if file == "R":
            for part in range(width):
                one = reg._replace(sub=part, width=1)
                kind = rnd.randrange(4)
                if kind == 0:
                    self.emit("MOV", (one,), (imm(rnd.getrandbits(32)),))
                elif kind == 1:
                    self.emit("COPY", (one,), (imm(rnd.randrange(4)),))
                elif kind == 2:
                    self.emit("S2R", (one,), (_name("SR_TID.X"),))
                else:
                    self.emit("LDC", (one,), (cbank(0, 0x160 + 4 * rnd.randrange(8)),))
        elif file == "UR":
            for part in range(width):
                self.emit("UMOV", (reg._replace(sub=part, width=1),), (imm(rnd.getrandbits(32)),))
        elif file == "P":
            self.emit("ISETP.LT.AND", (reg, PT), (self.pick("R"), imm(rnd.getrandbits(8)), PT))
        elif file == "UP":
            self.emit("UISETP.LT.AND", (reg, Reg("UP", -1)), (self.pick("UR"), imm(5), Reg("UP", -1)))
        self.done(reg)
        return reg

    # ---------------------------------------------------------------- statements

    def arithmetic(self) -> None:
        rnd = self.rnd
        kind = rnd.randrange(12)
        guard = None
        if rnd.random() < 0.15:
            guard = self.pick("P")
            if rnd.random() < 0.5:
                guard = guard._replace(flags=INV)

        def out(file: str, width: int = 1) -> Reg:
            # under a guard only a defined variable may be written
            return self.pick_whole(file, width) if guard is not None else self.target(file, width)

        if kind <= 3:
            srcs = (self.pick("R"), self.pick("R"), rnd.choice((RZ, self.pick("R"))))
            dst = out("R")
            self.emit(rnd.choice(("IADD3", "LOP3", "IMAD")), (dst,), srcs, guard)
        elif kind == 4:
            srcs2 = (self.pick("R"), self.pick("R"), self.pick("R", 2))
            dst = out("R", 2)
            self.emit("IMAD.WIDE", (dst,), srcs2, guard)
        elif kind == 5:
            where = self.pick("R", 2)
            width = rnd.choice((1, 2, 4))
            dst = out("R", width)
            self.emit("LDG.E" + {1: "", 2: ".64", 4: ".128"}[width], (dst,), (Mem("M", where, None, 16),), guard)
        elif kind == 6:
            width = rnd.choice((1, 2, 4))
            self.emit("STG.E", (), (Mem("M", self.pick("R", 2), None, 0), self.pick("R", width)), guard)
            return
        elif kind == 7:
            srcs = (self.pick("R"), self.pick("R"), self.pick("P"))
            dst, other = out("P"), self.fn.new_vreg("P")
            self.emit("ISETP.GE.AND", (dst, other if dst != other else PT), srcs, guard)
        elif kind == 8:
            cond = self.pick("P")
            srcs = (self.pick("R"), self.pick("R"), cond._replace(flags=rnd.choice((0, INV))))
            dst = out("R")
            self.emit("SEL", (dst,), srcs, guard)
        elif kind == 9:
            a, c = self.pick("R", 4), self.pick("R", 2)
            acc = self.pick("R", 4)
            dst = out("R", 4)
            self.emit("HMMA", (dst,), (a, c, acc), guard)
        elif kind == 10 and guard is None:
            src = self.pick("UR")
            dst = self.target("UR")
            self.emit("UIADD3", (dst,), (src, self.pick("UR"), imm(3)))
        else:
            src = self.pick("UR")
            a = self.pick("R")
            dst = out("R")
            self.emit("IADD3", (dst,), (a, src, RZ), guard)
        self.done(dst)

    def pick_whole(self, file: str, width: int = 1) -> Reg:
        pool = self.known(file, width)
        return self.rnd.choice(pool) if pool else self.define(file, width)

    def moves(self) -> None:
        """Copies of every kind."""
        rnd = self.rnd
        kind = rnd.randrange(8)
        if kind == 0:  # build a pair or a quad from words
            width = rnd.choice((2, 4))
            parts = [self.pick("R") for _ in range(width)]
            whole = self.fn.new_vreg("R", width)
            for i, part in enumerate(parts):
                self.emit("COPY", (whole._replace(sub=i, width=1),), (part,))
            self.done(whole)
        elif kind == 1:
            width = rnd.choice((1, 2, 4))
            src = self.pick("R", width)
            dst = self.target("R", width)
            self.emit("COPY", (dst,), (src,))
            self.done(dst)
        elif kind == 2:  # parallel copy with possible cycles
            width = rnd.choice((1, 2))
            pool = self.known("R", width)
            if len(pool) >= 2:
                dsts = rnd.sample(pool, min(len(pool), rnd.randrange(2, 5)))
                srcs = tuple(rnd.choice(pool) for _ in dsts)
                if rnd.random() < 0.5:
                    srcs = tuple(dsts[1:] + dsts[:1])
                self.emit("PCOPY", tuple(dsts), srcs)
        elif kind == 3:
            src = self.pick("P")
            dst = self.target("P")
            self.emit("COPY", (dst,), (src._replace(flags=rnd.choice((0, INV))),))
            self.done(dst)
        elif kind == 4:
            a, dst = self.pick("UR"), self.target("R")
            self.emit("COPY", (dst,), (a,))
            self.done(dst)
        elif kind == 5:  # both sides of a condition, each under its guard
            cond = self.pick("P")
            a, b = self.pick("R"), self.pick("R")
            dst = self.fn.new_vreg("R")
            self.emit("COPY", (dst,), (a,), cond)
            self.emit("COPY", (dst,), (b,), cond._replace(flags=INV))
            self.done(dst)
        elif kind == 6:
            src = self.pick("R", 2)
            dst = self.pick_whole("R", 2)
            self.emit("COPY", (dst,), (src,), self.pick("P"))
        else:
            parts = [self.pick("R") for _ in range(2)]
            dst = self.target("R", 2)
            if all(part.num != dst.num for part in parts):
                self.emit("UNDEF", (dst,))
                for at, part in enumerate(parts):
                    self.emit("COPY", (dst._replace(sub=at, width=1),), (part,))
                self.done(dst)

    def under_guard(self, depth: int) -> None:
        """Temporaries that have a value only under one guard, and are read under it, with anything between."""
        rnd = self.rnd
        guard = self.fn.new_vreg("P")
        self.emit("COPY", (guard,), (self.pick("P"),))
        guard = guard._replace(flags=rnd.choice((0, INV)))
        width = rnd.choice((1, 1, 2, 4))
        first, second = self.fn.new_vreg("R", width), self.fn.new_vreg("R")
        where = self.pick("R", 2)
        self.emit("UNDEF", (first,))
        self.emit("LDG.E" + {1: "", 2: ".64", 4: ".128"}[width], (first,), (Mem("M", where, None, 32),), guard)
        self.body(depth + 2)
        part = first._replace(sub=rnd.randrange(width), width=1)
        self.emit("UNDEF", (second,))
        other = self.pick("R")
        self.emit("IADD3", (second,), (part, other, RZ), guard)
        self.body(depth + 2)
        where = self.pick("R", 2)
        self.emit("STG.E", (), (Mem("M", where, None, 48), second), guard)
        if rnd.random() < 0.3:  # one that is a variable in the other case
            dst = self.pick_whole("R", 1)
            self.emit("COPY", (dst,), (second,), guard)

    def local(self) -> None:
        if self.fn.frame:
            at = 4 * self.rnd.randrange(self.fn.frame // 4)
            self.emit("STL", (), (mem(self.r1, at), self.pick("R")))
            dst = self.target("R")
            self.emit("LDL", (dst,), (mem(self.r1, at),))
            self.done(dst)

    def call(self) -> None:
        name, args, results = self.rnd.choice(self.callees)
        uses: list[Operand] = []
        for i in range(args):
            fixed = self.fn.new_vreg("R", 1, 1, ARGS[i])
            src = self.pick("R")
            self.emit("COPY", (fixed,), (src,))
            uses.append(fixed)
        back = self.fn.new_vreg("R", 2, 2, 20)
        self.emit("MOV", (back._replace(width=1),), (Imm("I", 0, self.fn.name, "ret"),))
        self.emit("MOV", (back._replace(sub=1, width=1),), (imm(0),))
        uses.append(back)
        outs = [self.fn.new_vreg("R", 1, 1, ARGS[i]) for i in range(results)]
        self.emit("CALL.REL.NOINC", (), (Sym("S", name),), uses=tuple(uses), defs=tuple(outs))
        for out in outs:
            dst = self.target("R")
            self.emit("COPY", (dst,), (out,))
            self.done(dst)

    def statement(self, depth: int) -> None:
        rnd = self.rnd
        self.left -= 1
        if self.temporaries and rnd.random() < 0.2:
            self.under_guard(depth)
            return
        kind = rnd.random()
        if kind < 0.60:
            self.arithmetic()
        elif kind < 0.78:
            self.moves()
        elif kind < 0.82:
            self.local()
        elif kind < 0.88 and self.callees:
            self.call()
        elif depth < 3:
            (self.branch if rnd.random() < 0.6 else self.loop)(depth)
        else:
            self.arithmetic()

    def body(self, depth: int) -> None:
        for _ in range(self.rnd.randrange(1, 6)):
            if self.left > 0:
                self.statement(depth)

    def snapshot(self) -> dict[tuple[str, int], list[Reg]]:
        return {k: list(v) for k, v in self.live.items()}

    def branch(self, depth: int) -> None:
        """if / if-else, with or without a convergence barrier."""
        cond = self.pick("P")
        barrier = self.fn.new_vreg("B") if self.rnd.random() < 0.4 else None
        head = self.block
        sync = self.emit("BSSY", (barrier,), (label(0),)) if barrier is not None else None
        jump = self.emit("BRA", (), (label(0),), cond)
        before = self.snapshot()
        self.open()
        self.body(depth + 1)
        after_then = self.live
        leave = self.emit("BRA", (), (label(0),))
        other = self.open()
        self.live = {k: list(v) for k, v in before.items()}
        if self.rnd.random() < 0.6:
            self.body(depth + 1)
        after_else = self.live
        join = self.open()
        # what both sides define (or what was there before) is defined now
        self.live = {k: [r for r in v if r in after_else.get(k, [])] for k, v in after_then.items()}
        if barrier is not None and sync is not None:
            self.emit("BSYNC", (), (barrier,))
            nxt = self.open()
            sync.srcs = (label(nxt.id),)
        assert head.insts
        jump.srcs = (label(other.id),)
        leave.srcs = (label(join.id),)

    def loop(self, depth: int) -> None:
        start = self.open()
        before = self.snapshot()
        self.body(depth + 1)
        if self.rnd.random() < 0.3:  # leave from the middle
            cond = self.pick("P")
            out = self.emit("BRA", (), (label(0),), cond)
            self.open()
            middle = self.snapshot()
            self.body(depth + 1)
            self.emit("BRA", (), (label(start.id),), self.pick("P"))
            self.live = middle
            end = self.open()
            out.srcs = (label(end.id),)
        else:
            self.emit("BRA", (), (label(start.id),), self.pick("P"))
            self.open()
        del before

    def observe(self) -> None:
        """Store some live values, so that they matter."""
        for (file, width), pool in sorted(self.live.items()):
            for reg in pool[-3:]:
                if file == "R":
                    self.emit("STG.E", (), (Mem("M", self.pick("R", 2), None, 4 * width), reg))
                elif file == "P":
                    self.emit("SEL", (tmp := self.fn.new_vreg("R"),), (RZ, imm(1), reg))
                    self.emit("STG.E", (), (Mem("M", self.pick("R", 2), None, 0), tmp))


def _name(text: str) -> Operand:
    from ir_format.model import Name

    return Name("N", text)


def _function(
    rnd: random.Random,
    name: str,
    kind: str,
    callees: list[tuple[str, int, int]],
    size: int,
    pressure: int,
    args: int,
    outs: int,
    temporaries: bool,
) -> Function:
    m = Maker(rnd, name, kind, callees, size, pressure)
    m.temporaries = temporaries
    m.fn.frame = rnd.choice((0, 0, 8, 24))
    back = None
    if kind == "entry":
        m.emit("MOV", (m.r1,), (cbank(0, 0x28),))
    else:
        fixed = [m.fn.new_vreg("R", 1, 1, ARGS[i]) for i in range(args)]
        address = m.fn.new_vreg("R", 2, 2, 20)
        m.emit("FENTRY", defs=(*fixed, address))
        for f in fixed:
            dst = m.fn.new_vreg("R")
            m.emit("COPY", (dst,), (f,))
            m.done(dst)
        back = m.fn.new_vreg("R", 2)
        m.emit("COPY", (back,), (address,))
    m.emit("IADD3", (m.r1,), (m.r1, imm(0), RZ), attrs={"frame": -1})
    m.define("R")
    m.define("R", 2)
    m.define("P")
    while m.left > 0:
        m.statement(0)
    m.observe()
    if kind == "entry":
        m.emit("EXIT")
    else:
        assert back is not None
        uses: list[Operand] = []
        for i in range(outs):
            out = m.fn.new_vreg("R", 1, 1, ARGS[i])
            m.emit("COPY", (out,), (m.pick("R"),))
            uses.append(out)
        m.emit("IADD3", (m.r1,), (m.r1, imm(0), RZ), attrs={"frame": 1})
        ret = m.fn.new_vreg("R", 2, 2, 20)
        m.emit("COPY", (ret,), (back,))
        m.emit("RET.REL.NODEC", (), (ret, Sym("S", "k")), uses=tuple(uses))
    return m.fn


def make_unit(seed: int, size: int = 40, temporaries: bool = False) -> Unit:
    """A random unit; equal seeds give equal units. ``temporaries``: with values that are defined only under one
    guard."""
    rnd = random.Random(seed)
    unit = Unit("k")
    functions: list[Function] = []
    callees: list[tuple[str, int, int]] = []
    if rnd.random() < 0.4:
        for i in range(rnd.randrange(1, 3)):
            name, args, outs = f"f{i}", rnd.randrange(0, 4), rnd.randrange(1, 3)
            mine = list(callees)
            if rnd.random() < 0.2:
                mine.append((name, args, outs))  # recursion
            functions.append(_function(rnd, name, "func", mine, size // 2, rnd.choice((3, 8)), args, outs, temporaries))
            callees.append((name, args, outs))
    kernel = _function(rnd, "k", "entry", callees, size, rnd.choice((3, 8, 16, 30)), 0, 0, temporaries)
    unit.functions = [kernel, *functions]
    return unit


__all__ = ["NOT_PT", "make_unit"]
