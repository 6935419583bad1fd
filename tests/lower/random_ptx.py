"""Random PTX kernels on integers, predicates and control flow, for running two compilers' code side by side.

Every thread reads its registers from ``in``, runs the same random code, and writes all registers to ``out``. Everything is defined: shifts and
fields take any amount, loops count down, divisors are left out.
"""

from __future__ import annotations

import random

WORDS = 10  # 32-bit registers
WIDES = 6  # 64-bit ones
HALVES = 4
PREDS = 4
#: Bytes of input and of output per thread.
RECORD = 8 * (WORDS + WIDES + HALVES + PREDS)

# {d*} destinations, {s*} sources (register or literal), {r*} register sources; letter after: w 32, l 64, h 16 bits, p predicate; {c} a comparison...
OPS = """
add.s32 {dw},{sw},{sw} | sub.s32 {dw},{sw},{sw} | add.u64 {dl},{sl},{sl} | sub.s64 {dl},{sl},{sl} | add.sat.s32 {dw},{sw},{sw} | sub.sat.s32 {dw},{sw},{sw}
mul.lo.s32 {dw},{sw},{sw} | mul.hi.s32 {dw},{sw},{sw} | mul.hi.u32 {dw},{sw},{sw} | mul.wide.s32 {dl},{sw},{sw} | mul.wide.u32 {dl},{sw},{sw}
mul.lo.s64 {dl},{sl},{sl} | mul.hi.s64 {dl},{sl},{sl} | mul.hi.u64 {dl},{sl},{sl} | mad.lo.s32 {dw},{sw},{sw},{sw} | mad.wide.s32 {dl},{sw},{sw},{sl}
mad.hi.u32 {dw},{sw},{sw},{sw} | mad.lo.u64 {dl},{sl},{sl},{sl} | mad.wide.u16 {dw},{sh},{sh},{sw} | mul.wide.s16 {dw},{sh},{sh} | mul.lo.u16 {dh},{sh},{sh}
mul24.lo.s32 {dw},{sw},{sw} | mul24.hi.u32 {dw},{sw},{sw} | mul24.hi.s32 {dw},{sw},{sw} | mul.hi.s16 {dh},{sh},{sh}
and.b32 {dw},{sw},{sw} | or.b32 {dw},{sw},{sw} | xor.b64 {dl},{sl},{sl} | not.b32 {dw},{sw} | cnot.b32 {dw},{sw} | and.b64 {dl},{sl},{sl} | not.b64 {dl},{sl}
shl.b32 {dw},{sw},{n} | shr.u32 {dw},{sw},{n} | shr.s32 {dw},{sw},{n} | shl.b64 {dl},{sl},{n} | shr.u64 {dl},{sl},{n} | shr.s64 {dl},{sl},{n}
shl.b16 {dh},{sh},{n} | shr.u16 {dh},{sh},{n} | shr.s16 {dh},{sh},{n}
shf.l.wrap.b32 {dw},{sw},{sw},{n} | shf.r.wrap.b32 {dw},{sw},{sw},{n} | shf.l.clamp.b32 {dw},{sw},{sw},{n} | shf.r.clamp.b32 {dw},{sw},{sw},{n}
bfe.u32 {dw},{sw},{m},{m} | bfe.s32 {dw},{sw},{m},{m} | bfe.u64 {dl},{sl},{m},{m} | bfe.s64 {dl},{sl},{m},{m}
bfi.b32 {dw},{sw},{sw},{m},{m} | bfi.b64 {dl},{sl},{sl},{m},{m}
popc.b32 {dw},{sw} | popc.b64 {dw},{sl} | clz.b32 {dw},{sw} | clz.b64 {dw},{sl} | brev.b32 {dw},{sw} | brev.b64 {dl},{sl}
bfind.u32 {dw},{sw} | bfind.s32 {dw},{sw} | bfind.u64 {dw},{sl} | bfind.s64 {dw},{sl} | bfind.shiftamt.s32 {dw},{sw} | bfind.shiftamt.u64 {dw},{sl}
prmt.b32 {dw},{sw},{sw},{sw} | prmt.b32.f4e {dw},{sw},{sw},{n} | prmt.b32.rc8 {dw},{sw},{sw},{n} | prmt.b32.ecl {dw},{sw},{sw},{n} | lop3.b32 {dw},{sw},{sw},{sw},{lut}
min.s32 {dw},{sw},{sw} | max.u32 {dw},{sw},{sw} | min.s64 {dl},{sl},{sl} | max.u64 {dl},{sl},{sl} | min.s16 {dh},{sh},{sh} | max.u16 {dh},{sh},{sh}
abs.s32 {dw},{sw} | abs.s64 {dl},{sl} | neg.s32 {dw},{sw} | neg.s64 {dl},{sl} | abs.s16 {dh},{sh} | neg.s16 {dh},{sh}
sad.s32 {dw},{sw},{sw},{sw} | sad.u32 {dw},{sw},{sw},{sw} | sad.u64 {dl},{sl},{sl},{sl} | sad.s16 {dh},{sh},{sh},{sh}
add.u16 {dh},{sh},{sh} | sub.s16 {dh},{sh},{sh}
cvt.u64.u32 {dl},{rw} | cvt.s64.s32 {dl},{rw} | cvt.u32.u64 {dw},{rl} | cvt.u16.u32 {dh},{rw} | cvt.s32.s16 {dw},{rh} | cvt.u32.u16 {dw},{rh} | cvt.s64.s16 {dl},{rh}
cvt.s8.s32 {dw},{rw} | cvt.u8.u32 {dw},{rw} | cvt.sat.s8.s32 {dw},{rw} | cvt.sat.u8.s32 {dw},{rw} | cvt.sat.u16.u32 {dh},{rw} | cvt.sat.s32.s64 {dw},{rl}
cvt.sat.u32.s32 {dw},{rw} | cvt.sat.s16.u64 {dh},{rl} | cvt.u64.s8 {dl},{rw} | cvt.sat.u64.s64 {dl},{rl} | cvt.sat.s32.u32 {dw},{rw}
setp.{c}.s32 {dp},{sw},{sw} | setp.{c}.u32 {dp},{sw},{sw} | setp.{c}.s64 {dp},{sl},{sl} | setp.{c}.u64 {dp},{sl},{sl} | setp.{c}.s16 {dp},{sh},{sh}
setp.{c}.and.s32 {dp},{sw},{sw},{rp} | setp.{c}.or.u64 {dp},{sl},{sl},{rp} | setp.{c}.xor.u16 {dp},{sh},{sh},!{rp}
and.pred {dp},{rp},{rp} | or.pred {dp},{rp},{rp} | xor.pred {dp},{rp},{rp} | not.pred {dp},{rp}
selp.b32 {dw},{sw},{sw},{rp} | selp.b64 {dl},{sl},{sl},{rp} | selp.u16 {dh},{sh},{sh},{rp} | set.{c}.u32.s32 {dw},{sw},{sw} | slct.s32.s32 {dw},{sw},{sw},{sw} | slct.u64.s32 {dl},{sl},{sl},{sw}
mov.b64 {dl},{{{rw},{rw}}} | mov.b32 {dw},{{{rh},{rh}}} | mov.u32 {dw},{sw} | mov.u64 {dl},{sl}
add.cc.u32 {dw},{sw},{sw}; addc.cc.u32 {dw},{sw},{sw}; addc.u32 {dw},{sw},{sw}
sub.cc.u32 {dw},{sw},{sw}; subc.cc.u32 {dw},{sw},{sw}; subc.u32 {dw},{sw},{sw}
mad.lo.cc.u32 {dw},{sw},{sw},{sw}; madc.hi.u32 {dw},{sw},{sw},{sw} | add.cc.u64 {dl},{sl},{sl}; addc.u64 {dl},{sl},{sl}
dp4a.s32.u32 {dw},{sw},{sw},{sw} | dp4a.u32.u32 {dw},{sw},{sw},{sw} | dp2a.lo.s32.s32 {dw},{sw},{sw},{sw} | dp2a.hi.u32.s32 {dw},{sw},{sw},{sw}
cvt.pack.sat.u8.s32.b32 {dw},{rw},{rw},{rw} | cvt.pack.sat.s16.s32 {dw},{rw},{rw} | bmsk.clamp.b32 {dw},{sw},{sw} | szext.wrap.s32 {dw},{sw},{sw} | szext.clamp.u32 {dw},{sw},{sw}
shfl.sync.idx.b32 {dw},{rw},{n},0x1f,0xffffffff | vote.sync.ballot.b32 {dw},{rp},0xffffffff | vote.sync.all.pred {dp},{rp},0xffffffff
"""
TEMPLATES = [t.strip() for line in OPS.splitlines() for t in line.split("|") if t.strip()]
WARP = ("shfl", "vote")
_EDGES32 = (0, 1, -1, 2, 31, 32, 0x7FFFFFFF, -0x80000000, 0x80, 0xFF, 0x8000, 0xFFFF, 0x10000, -2, 0x55555555)
_EDGES64 = (0, 1, -1, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000, 0xFFFFFFFF, 0x100000000, -0x100000000, 63, 64)
_AMOUNTS = (0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 100, 127, 255)
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


class Generator:
    """One random kernel."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.labels = 0
        self.before: list[str] = []  # lines that must stand before the one being made

    def source(self, kind: str, register_only: bool) -> str:
        rng = self.rng
        if kind == "p":
            return f"%p{rng.randrange(PREDS)}"
        if kind == "h":
            return f"%h{rng.randrange(HALVES)}"
        name, count, edges = ("%r", WORDS, _EDGES32) if kind == "w" else ("%rd", WIDES, _EDGES64)
        if register_only or rng.random() < 0.75:
            return f"{name}{rng.randrange(count)}"
        return str(rng.choice(edges) if rng.random() < 0.7 else rng.randrange(-1 << 31, 1 << 31))

    def fill(self, template: str) -> str:
        rng = self.rng
        out = []
        taken: set[str] = set()
        i = 0
        while i < len(template):
            c = template[i]
            if template.startswith("{{", i) or template.startswith("}}", i):
                out.append(c)
                i += 2
                continue
            if c != "{":
                out.append(c)
                i += 1
                continue
            end = template.index("}", i)
            what = template[i + 1 : end]
            i = end + 1
            if what == "c":
                out.append(rng.choice(_COMPARE))
            elif what == "n":
                out.append(f"%r{rng.randrange(WORDS)}" if rng.random() < 0.5 else str(rng.choice(_AMOUNTS)))
            elif what == "m":  # a field position or length: only values up to 255 mean anything
                if rng.random() < 0.5:
                    reg = f"%x{len(self.before)}"
                    self.before.append(f"and.b32 {reg}, %r{rng.randrange(WORDS)}, 255;")
                    out.append(reg)
                else:
                    out.append(str(rng.choice(_AMOUNTS)))
            elif what == "lut":
                out.append(str(rng.randrange(256)))
            elif what[0] == "d":
                reg = self.source(what[1], True)
                while reg in taken:
                    reg = self.source(what[1], True)
                taken.add(reg)
                out.append(reg)
            else:
                out.append(self.source(what[1], what[0] == "r"))
        return "".join(out)

    def straight(self, count: int, whole: bool) -> None:
        for _ in range(count):
            template = self.rng.choice(TEMPLATES)
            if template.startswith(WARP) and not whole:
                continue
            guard = ""
            if self.rng.random() < 0.15 and ";" not in template and not template.startswith(WARP):
                guard = f"@{self.rng.choice(('', '!'))}%p{self.rng.randrange(PREDS)} "
            line = self.fill(template)
            self.lines += self.before
            self.before = []
            self.lines.append(f"{guard}{line};")

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def statement(self, depth: int, whole: bool) -> None:
        """Random code; ``whole``: all threads of the warp are surely here together."""
        rng = self.rng
        kind = rng.choice(("seq", "if", "ifelse", "loop", "plain", "plain")) if depth else "plain"
        if kind == "plain":
            self.straight(rng.randrange(2, 7), whole)
        elif kind == "seq":
            self.statement(depth - 1, whole)
            self.statement(depth - 1, whole)
        elif kind in ("if", "ifelse"):
            other, end = self.label(), self.label()
            self.lines.append(f"@{rng.choice(('', '!'))}%p{rng.randrange(PREDS)} bra {other};")
            self.statement(depth - 1, False)
            if kind == "ifelse":
                self.lines.append(f"bra {end};")
                self.lines.append(f"{other}:")
                self.statement(depth - 1, False)
                self.lines.append(f"{end}:")
            else:
                self.lines.append(f"{other}:")
        else:
            head, out, count = self.label(), self.label(), f"%c{depth}"
            self.lines.append(f"and.b32 {count}, %r{rng.randrange(WORDS)}, 7;")
            self.lines.append(f"{head}:")
            self.statement(depth - 1, False)
            if rng.random() < 0.4:
                self.lines.append(f"@%p{rng.randrange(PREDS)} bra {out};")
                self.straight(2, False)
            self.lines += [f"sub.s32 {count}, {count}, 1;", f"setp.gt.s32 %q, {count}, 0;", f"@%q bra {head};", f"{out}:"]

    def text(self, target: str, depth: int) -> str:
        """The kernel ``k(in, out)``."""
        head = [f".version 8.0\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{{"]
        head.append(f".reg .b32 %r<{WORDS}>; .reg .b64 %rd<{WIDES}>; .reg .b16 %h<{HALVES}>; .reg .pred %p<{PREDS}>, %q;")
        head.append(".reg .b32 %c<9>; .reg .b32 %t, %x, %x0, %x1; .reg .b64 %a, %b;")
        head.append(f"mov.u32 %t, %tid.x; mul.wide.u32 %b, %t, {RECORD}; ld.param.u64 %a, [in]; add.s64 %a, %a, %b;")
        at = 0
        for name, count, t in (("%r", WORDS, "b32"), ("%rd", WIDES, "b64"), ("%h", HALVES, "b16")):
            for i in range(count):
                head.append(f"ld.global.{t} {name}{i}, [%a+{at}];")
                at += 8
        for i in range(PREDS):
            head.append(f"ld.global.b32 %x, [%a+{at}]; and.b32 %x, %x, 1; setp.ne.u32 %p{i}, %x, 0;")
            at += 8
        self.statement(depth, True)
        tail = ["ld.param.u64 %a, [out]; add.s64 %a, %a, %b;"]
        at = 0
        for name, count, t in (("%r", WORDS, "b32"), ("%rd", WIDES, "b64"), ("%h", HALVES, "b16")):
            for i in range(count):
                tail.append(f"st.global.{t} [%a+{at}], {name}{i};")
                at += 8
        for i in range(PREDS):
            tail.append(f"selp.u32 %x, 1, 0, %p{i}; st.global.b32 [%a+{at}], %x;")
            at += 8
        return "\n".join((*head, *self.lines, *tail, "ret;\n}\n"))
