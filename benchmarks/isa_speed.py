"""Speed of the ISA spec: encoder in instructions per second, decode + print of 10,000 words, import time.

python -m benchmarks.isa_speed
"""

from __future__ import annotations

import subprocess
import sys
import time

from ir_format import isa
from ir_format.model import NOT_PT, PT, RZ, Ctl, Inst, Mem, Reg, imm


def program(count: int) -> list[Inst]:
    """A mix of common instructions."""
    out = []
    ctl = Ctl(4, 0, 7, 7, 0)

    def r(n: int, width: int = 1) -> Reg:
        return Reg("R", n % 250, 0, width)

    for i in range(count // 5):
        out.append(Inst("IADD3", (), (r(i), PT, PT), (r(i + 1), imm(i), RZ, NOT_PT, NOT_PT), None, ctl=ctl))
        out.append(Inst("IMAD", ("WIDE",), (r(2 * i, 2), PT), (r(i), r(i + 2), r(2 * i + 4, 2), NOT_PT), None, ctl=ctl))
        out.append(Inst("FFMA", (), (r(i),), (r(i + 1), r(i + 2), r(i + 3)), None, ctl=ctl))
        out.append(
            Inst(
                "LDG",
                ("E",),
                (PT, r(i)),
                (Mem("M", r(2 * i, 2), None, 16, Reg("UR", 4, 0, 2)), PT, imm(0)),
                None,
                ctl=ctl,
            )
        )
        out.append(Inst("ISETP", ("GE", "AND"), (Reg("P", 0), PT), (r(i), r(i + 1), PT, PT), None, ctl=ctl))
    return out


def main() -> None:
    """Measure and print."""
    target = isa.target(90)
    insts = program(50000)
    target.encode(insts[0])
    start = time.perf_counter()
    words = [target.encode(i) for i in insts]
    encode = len(insts) / (time.perf_counter() - start)
    start = time.perf_counter()
    for k, word in enumerate(words[:10000]):
        found = target.decode_plan(word, 16 * k)
        assert found
        target.format(found[0], 16 * k, found[1])
    decode = time.perf_counter() - start
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import ir_format.isa"], check=True)
    whole = time.perf_counter() - start
    print(f"encode: {encode:,.0f} instructions/s (bar 50,000)")
    print(f"decode and print 10,000 words: {decode:.2f} s (bar 2 s)")
    print(f"python -c 'import ir_format.isa': {1000 * whole:.0f} ms")


if __name__ == "__main__":
    main()
