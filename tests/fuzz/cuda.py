"""Random CUDA C through nvcc: PTX in the shapes that a compiler writes. The interpreter judges the PTX, so in C only
the order of threads must not matter."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Final

from tests import oracle
from tests.fuzz.bodies import INPUT, OUTPUT
from tests.fuzz.memory import OWN

_TYPES: Final = (
    "int",
    "unsigned",
    "long long",
    "unsigned long long",
    "short",
    "unsigned char",
    "float",
    "double",
    "signed char",
    "unsigned short",
)
_WEIGHTS: Final = (6, 6, 2, 3, 1, 2, 3, 1, 1, 1)
_REAL: Final = ("float", "double")
_EDGES: Final = ("0", "1", "-1", "2", "31", "32", "255", "0x7fffffff", "0x80000000", "65535", "7", "3", "10")


class Source:
    """One kernel of C."""

    def __init__(self, rng: random.Random, functions: list[tuple[str, str, list[str]]]) -> None:
        self.rng = rng
        self.names: list[tuple[str, str]] = []
        self.functions = functions
        self.count = 0
        self.budget = rng.choice((12, 25, 45))
        self.kernel = True

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def atom(self, kind: str) -> str:
        rng = self.rng
        same = [n for n, t in self.names if t == kind] or [f"({kind}){n}" for n, t in self.names if t not in _REAL]
        if rng.random() < 0.15:
            return f"({kind}){rng.choice(_EDGES)}"
        if rng.random() < 0.2 and kind not in _REAL:
            n, t = rng.choice([v for v in self.names if v[1] not in _REAL])
            return f"({kind}){n}"
        if rng.random() < 0.12:
            what = rng.choice(("own", "own", "in", "loc", "tab") if self.kernel else ("tab",))
            size = {"own": OWN, "in": INPUT, "loc": 32, "tab": 64}[what]
            t = kind if kind not in _REAL else "int"
            return f"({kind})(({t} *){what})[{self.index(size, t)}]"
        return rng.choice(same)

    def index(self, size: int, t: str) -> str:
        n = size // {
            "int": 4,
            "unsigned": 4,
            "float": 4,
            "short": 2,
            "unsigned short": 2,
            "unsigned char": 1,
            "signed char": 1,
        }.get(t, 8)
        if self.rng.random() < 0.5:
            return str(self.rng.randrange(n))
        return (
            f"(unsigned)({self.atom('int')}) % {n}u" if self.rng.random() < 0.2 else f"({self.atom('int')}) & {n - 1}"
        )

    def expression(self, kind: str, depth: int) -> str:
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15:
            return self.atom(kind)
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        if kind in _REAL:
            other = rng.choice(("int", "unsigned", "float" if kind == "double" else "int"))
            return rng.choice((
                f"({a} + {b})", f"({a} * {b})", f"({a} - {b})", f"({a} < {b} ? {a} : {b})",
                    f"fma{'f' if kind == 'float' else ''}({a}, {b}, {self.atom(kind)})",
                        f"({kind})({self.atom(other)})",
                f"(-{a})", f"fabs{'f' if kind == 'float' else ''}({a})",
                    f"fmin{'f' if kind == 'float' else ''}({a}, {b})", f"({a} / {b})" if rng.random() < 0.3 else a,
                f"({self.condition(0)} ? {a} : {b})",
            ))  # fmt: skip
        wide = 63 if "long" in kind else 31
        made = [
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} & {b})", f"({a} | {b})", f"({a} ^ {b})",
                f"({a} << ({b} & {wide}))", f"({a} >> ({b} & {wide}))", f"(~{a})", f"(-{a})",
            f"({self.condition(0)} ? {a} : {b})", f"({kind})({self.condition(0)})", f"min({a}, {b})", f"max({a}, {b})",
                f"({kind})__popc((unsigned){a})", f"({a} / (({b} & 15) + 1))",
                    f"({a} % {rng.choice((3, 7, 10, 16, 100))})",
            f"({kind})__clz((int){a})", f"({kind})__umulhi((unsigned){a}, (unsigned){b})",
                f"({kind})__funnelshift_l((unsigned){a}, (unsigned){b}, (unsigned){a})",
                    f"({kind})__byte_perm((unsigned){a}, (unsigned){b}, 0x{rng.getrandbits(16):04x})",
            f"({kind})("
            f"{self.expression(rng.choice(('int', 'unsigned', 'long long', 'unsigned char', 'short')), depth - 1)})",
        ]  # fmt: skip
        return rng.choice(made)

    def condition(self, depth: int) -> str:
        rng = self.rng
        kind = rng.choices(_TYPES, _WEIGHTS)[0]
        plain = f"({self.atom(kind)} {rng.choice(('<', '<=', '==', '!=', '>', '>='))} {self.atom(kind)})"
        if rng.random() < 0.3:
            plain = f"({self.atom('int')} & {1 << rng.randrange(5)})"
        if depth <= 0:
            return plain
        return rng.choice(
            (
                plain,
                f"({plain} && {self.condition(depth - 1)})",
                f"({plain} || {self.condition(depth - 1)})",
                f"(!{self.condition(depth - 1)})",
                f"(({plain} != 0) ^ ({self.condition(depth - 1)} != 0))",
            )
        )

    def block(self, depth: int, loop: bool) -> str:
        mark = len(self.names)
        text = "".join(self.statement(depth, loop) for _ in range(self.rng.randint(1, 4)))
        del self.names[mark:]
        return "{ " + text + "}\n"

    def assign(self) -> str:
        rng = self.rng
        n, t = rng.choice(self.names)
        return f"{n} {rng.choice(('=', '=', '+=', '^=' if t not in _REAL else '*=', '-='))} {self.expression(t, 2)};\n"

    def statement(self, depth: int, loop: bool) -> str:
        rng = self.rng
        self.budget -= 1
        kind = rng.random() if depth > 0 and self.budget > 0 else rng.random() * 0.5
        if kind < 0.17:
            t = rng.choices(_TYPES, _WEIGHTS)[0]
            text = self.expression(t, rng.randint(1, 3))
            name = self.new()
            self.names.append((name, t))
            return f"{t} {name} = {text};\n"
        if kind < 0.36 or (kind < 0.44 and not self.kernel):
            return self.assign()
        if kind < 0.42:
            t = rng.choice(("int", "unsigned", "unsigned char", "short", "long long"))
            what = rng.choice(("own", "loc"))
            return f"(({t} *){what})[{self.index(OWN if what == 'own' else 32, t)}] = {self.expression(t, 1)};\n"
        if kind < 0.46 and self.functions:
            name, result, params = rng.choice(self.functions)
            made = self.new()
            text = f"{result} {made} = {name}({', '.join(self.atom(p) for p in params)});\n"
            self.names.append((made, result))
            return text
        if kind < 0.5:
            return rng.choice(("break;\n", "continue;\n")) if loop and rng.random() < 0.3 else self.swap()
        if kind < 0.7:
            text = f"if ({self.condition(2)}) {self.block(depth - 1, loop)}"
            return text + (f"else {self.block(depth - 1, loop)}" if rng.random() < 0.5 else "")
        if kind < 0.85:
            if rng.random() < 0.6:
                return self.counted(depth)
            i = self.new()
            bound = rng.choice((f"({self.atom('int')} & 7)", str(rng.randint(1, 9)), f"({self.atom('unsigned')} % 5u)"))
            mark = len(self.names)
            body = (
                f"{chr(10) + '#pragma unroll 1' if rng.random() < 0.5 else ''}\nfor (int {i} = 0; "
                f"{i} < (int){bound}; {i}++) {{ "
            )
            copy = self.new()
            self.names.append((copy, "int"))
            body += f"int {copy} = {i}; {self.block(depth - 1, True)}"
            if rng.random() < 0.5:
                body += f"if ({self.condition(1)}) break;\n"
            del self.names[mark:]
            return body + "}\n"
        n = rng.choice((3, 5, 8))
        text = f"switch ((unsigned)({self.atom('int')}) % {n + 1}u) {{\n"
        for k in range(n):
            text += f"case {k}: {self.block(depth - 2, False)} {'break;' if rng.random() < 0.7 else ''}\n"
        return text + "}\n"

    def counted(self, depth: int) -> str:
        """A loop with a counter of any type that goes up or down by any step, or a pointer, together with loop-carried
        sums."""
        rng = self.rng
        i, n, copy = self.new(), self.new(), self.new()
        t = rng.choice(("int", "int", "unsigned", "long long", "unsigned long long", "short"))
        step = rng.choice((1, 1, 2, 3, 4, 7, 16))
        scalar = (
            "s1" if ("s1", "unsigned") in self.names else self.atom("unsigned")
        )  # functions do not see the kernel's variables
        rounds = rng.choice(
            (
                f"({self.atom('int')} & {rng.choice((3, 7, 15))})",
                f"({scalar} & {rng.choice((3, 7))}u)",
                str(rng.randint(1, 12)),
            )
        )
        start = rng.choice(
            ("0", "0", "1", "-3", f"({self.atom('int')} & 15)", "100", "2147483640" if t == "unsigned" else "32000")
        )
        text = f"{{ {t} {n} = ({t})({rounds}); {t} {i} = ({t})({start}); "
        mark = len(self.names)
        self.names.append((copy, "int"))
        sums = [v for v in self.names[:mark] if v[1] not in ("float", "double")]
        body = f"int {copy} = (int){i}; "
        for name, kind in rng.sample(sums, min(len(sums), rng.randint(1, 2))):
            body += rng.choice(
                (
                    f"{name} += ({kind}){copy};\n",
                    f"{name} = {name} * 3 + {copy};\n",
                    f"{name} ^= (({kind} *)own)[{copy} & {OWN // 8 - 1}];\n" if self.kernel else f"{name}++;\n",
                    f"{name} += {self.expression(kind, 1)};\n",
                )
            )
        if self.kernel and rng.random() < 0.4:
            body += f"((int *){rng.choice(('own', 'loc'))})[{copy} & 7] {rng.choice(('=', '+='))} {self.atom('int')};\n"
        if rng.random() < 0.4:
            body += self.block(depth - 1, True)
        del self.names[mark:]
        if rng.random() < 0.3:
            return text + f"{n} = {i} - {n} * {step}; for (; {i} != {n}; {i} -= {step}) {{ {body} }} }}\n"
        if rng.random() < 0.3:
            return text + f"{n} = {i} + {n} * {step}; do {{ {body} {i} += {step}; }} while ({i} < {n}); }}\n".replace(
                "continue;", ";"
            )
        return text + (
            f"{n} = {i} + {n} * {step}; for (; {i} {rng.choice(('<', '!=', '<'))} {n}; {i} += {step}) {{ {body} }} }}\n"
        )

    def swap(self) -> str:
        """Two or three variables of a type exchange values."""
        t = self.rng.choice([t for _, t in self.names])
        chosen = [n for n, k in self.names if k == t]
        self.rng.shuffle(chosen)
        chosen = chosen[:3]
        made = self.new()
        return (
            f"{{ {t} {made} = {chosen[0]}; "
            + " ".join(f"{a} = {b};" for a, b in zip(chosen, [*chosen[1:], made], strict=True))
            + " }\n"
        )


def _function(rng: random.Random, number: int) -> tuple[str, tuple[str, str, list[str]]]:
    s = Source(rng, [])
    s.kernel = False
    s.budget = 8
    params = rng.choices(_TYPES, _WEIGHTS, k=rng.randint(1, 4))
    params[0] = "int"
    result = rng.choices(_TYPES, _WEIGHTS)[0]
    s.names = [(f"a{n}", t) for n, t in enumerate(params)]
    body = s.block(2, False)
    text = (
        f"__device__ __noinline__ {result} f{number}({', '.join(f'{t} {n}' for n, t in s.names)}) {{ {body} "
        f"return {s.expression(result, 2)}; }}\n"
    )
    return text, (f"f{number}", result, params)


def source(seed: int, kernels: int) -> str:
    """CUDA C with kernels k0... of the parameters of :mod:`tests.fuzz.programs`."""
    rng = random.Random(seed)
    text = (
        f"__constant__ unsigned char tab[64] = "
        f"{{{','.join(str(rng.randrange(256)) for _ in range(64))}}};\nstruct alignas(16) S {{ int "
        f"w[{OWN // 4}]; }};\n"
    )
    functions = []
    for n in range(rng.choice((0, 1, 2))):
        body, f = _function(rng, n)
        text += body
        functions.append(f)
    for n in range(kernels):
        s = Source(rng, functions if rng.random() < 0.4 else [])
        text += (
            f'extern "C" __global__ void k{n}(const unsigned char *in, unsigned char *out, unsigned char *own, '
            f"unsigned *common, int s0, unsigned s1, long long s2, float s3, S st) {{\n"
        )
        text += (
            f"int me = blockIdx.x * 64 + threadIdx.x; in += me * {INPUT}; out += me * {OUTPUT}; "
            f"own += me * {OWN}; alignas(16) unsigned char loc[32]; for (int i = 0; i < 8; "
            f"i++) ((int *)loc)[i] = ((const int *)in)[i];\n"
        )
        s.names = [("s0", "int"), ("s1", "unsigned"), ("s2", "long long"), ("s3", "float"), ("me", "int")]
        for t in rng.choices(_TYPES, _WEIGHTS, k=rng.choice((3, 6, 6, 14))):
            name = s.new()
            where = (
                f"((const {t} *)in)[{s.rng.randrange(16)}]"
                if rng.random() < 0.8
                else f"({t})st.w[{rng.randrange(OWN // 4)}]"
            )
            text += f"{t} {name} = {where};\n"
            s.names.append((name, t))
        while s.budget > 0:
            text += s.statement(3, False)
        for at, (name, t) in enumerate(s.names):
            if t in _REAL:
                bits = f"__float_as_uint({name})" if t == "float" else f"__double_as_longlong({name})"
                text += f"((unsigned long long *)out)[{at}] = {name} != {name} ? 7 : {bits};\n"
            else:
                text += f"(({t} *)(out + {8 * at}))[0] = {name};\n"
        text += f"for (int i = 0; i < 8; i++) ((int *)(out + {OUTPUT - 32}))[i] = ((int *)loc)[i];\n}}\n"
    return text


def module(seed: int, sm: int, kernels: int) -> str:
    """Its PTX. Raises RuntimeError with nvcc's message."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "k.cu"
        path.write_text(source(seed, kernels))
        out = Path(folder) / "k.ptx"
        said = oracle.run_tool("nvcc", "-ptx", f"-arch=sm_{sm}", "-fmad=false", "-w", str(path), "-o", str(out))
        if isinstance(said, oracle.ToolError):
            raise RuntimeError(str(said))
        text = out.read_text()
        return text.replace('.pragma "nounroll";', "") if seed % 2 else text  # nvcc was told not to unroll
