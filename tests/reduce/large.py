"""A kernel of 5,000 instructions with a fault planted in the optimizer, reduced.

python -m tests.reduce.large [--crash] [-j N]"""

from __future__ import annotations

import argparse
import resource
import time

from stages.reduce.judges import ByChain
from stages.reduce.reduce import Reducer
from tests.reduce.planted import Case, _breaks, _same_source, instructions, planted

LINES = 5000


def program() -> str:
    """Sums and products of loaded values, one of them a float product, all stored at the end."""
    body = [f"mad.lo.u32 %r{3 + n % 9}, %r{3 + (n + 4) % 9}, {n + 3}, %r{3 + (n + 7) % 9};" for n in range(LINES)]
    steps = ("and.b32 %r5, %r4, 255;", "cvt.rn.f32.u32 %f1, %r5;", "add.f32 %f2, %f1, 0f41300000;")
    more = ("fma.rn.f32 %f3, %f1, %f2, %f1;", "cvt.rzi.u32.f32 %r5, %f3;", "st.global.u32 [%d1+8192], %r5;")
    body[LINES // 3] = "\n".join((*steps, *more))
    first = "\n".join(f"add.u32 %r{n}, %r2, {n};" for n in range(3, 12))
    total = "\n".join(f"xor.b32 %r3, %r3, %r{n};" for n in range(4, 12))
    return (
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<14>;\n"
        ".reg .f32 %f<4>;\n.reg .b64 %d<4>;\nld.param.u64 %d1, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r13, %ctaid.x;\n"
        "mad.lo.u32 %r1, %r13, 1024, %r1;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d1, %d1, %d2;\n"
        f"ld.global.u32 %r2, [%d1];\n{first}\n" + "\n".join(body) + f"\n{total}\nst.global.u32 [%d1], %r3;\n}}\n"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--crash", action="store_true")
    parser.add_argument("-j", type=int, default=2)
    args = parser.parse_args()
    text = program()
    change = _breaks("FFMA") if args.crash else _same_source("FFMA", 0, 1)
    with planted(Case("large", "", change, "", crash=args.crash)):
        judge = ByChain("sm_90", {"opt-level": 3, "fmad": 0}, "" if args.crash else None, False, 60.0)
        began = time.time()
        print(judge.begin(text), flush=True)
        left = Reducer(text, "sm_90", judge, args.j, lambda said: None).run()
    used = sum(resource.getrusage(w).ru_utime for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    took = f"{time.time() - began:.0f} s, {used:.0f} s of processor time"
    print(f"{instructions(text)} -> {instructions(left)} instructions in {took}\n{left}")


if __name__ == "__main__":
    main()
