"""Makes PTX with nvcc from calls of every device function that CUDA's headers declare.

    python -m tests.parse.cuda_corpus FOLDER [--archs 75,80,90a,100a,120a]

The headers are read where nvcc is installed: each declared function whose parameters are values or pointers becomes a
kernel on one line, `R r = f(a, b)` with operands loaded from memory. Lines that do not compile for an architecture are
left out. One PTX file per header and architecture; `python -m tests.parse.corpus_check FOLDER` compares them.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
from pathlib import Path

HEADERS = (
    "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuda_fp6.h", "cuda_fp4.h", "mma.h", "cuda_pipeline_primitives.h",
    "cuda_awbarrier_primitives.h",
    "crt/device_functions.h", "crt/math_functions.h", "device_atomic_functions.h", "sm_20_intrinsics.h",
    "sm_30_intrinsics.h", "sm_32_intrinsics.h",
    "sm_35_intrinsics.h", "sm_60_atomic_functions.h", "sm_61_intrinsics.h", "sm_32_atomic_functions.h",
    "sm_20_atomic_functions.h", "crt/sm_70_rt.h", "crt/sm_80_rt.h", "crt/sm_90_rt.h",
    "device_launch_parameters.h", "crt/sm_100_rt.h", "surface_indirect_functions.h", "texture_indirect_functions.h",
)  # fmt: skip
_DECLARED = re.compile(r"([A-Za-z_][\w :*]*?)\b(\w+) ?\(([^()]*)\)( const)?( noexcept)?")
_NOISE = re.compile(
    r"\b(extern|static|inline|__\w*_DECL__|__DEVICE_\w+__|__device__|__host__|__forceinline__|__inline__|"
    r"__cudart_builtin__|__device_builtin__|"
    r"__CUDA_\w+|__\w+_DECL__|noexcept|template|typename|asm|__builtin\w*|volatile|__restrict__|constexpr)\b"
    r"|__attribute__\S*"
)
_PLAIN = re.compile(r"(const )?[\w ]+\*{0,2}")
_EXTRA = """
template <class T> __device__ T get(const char* p, int k) { return *(const T*)(p + 64 * k); }
template <class T> __device__ void put(char* p, T v) { *(T*)p = v; }
"""


def functions(text: str) -> list[tuple[str, str, list[str]]]:
    """Result type, name and parameter types of a header's declarations."""
    text = re.sub(r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/", " ", text)
    text = re.sub(r"\\\n", " ", text)
    text = "\n".join([line for line in text.split("\n") if not line.lstrip().startswith("#")])
    out: dict[tuple[str, str], tuple[str, str, list[str]]] = {}
    for part in re.split(r"[;{}]", text):
        statement = " ".join(part.split())
        m = _DECLARED.fullmatch(statement) if len(statement) < 400 else None
        if m is None:
            continue
        head, name, inside = m.group(1), m.group(2), m.group(3)
        result = " ".join(_NOISE.sub(" ", head).split())
        types = [_type(p) for p in inside.split(",") if p.strip() not in ("", "void")]
        if (
            result
            and result not in ("return", "else", "using", "typedef", "struct")
            and all(t and _PLAIN.fullmatch(t) for t in (result, *types))
        ):
            out[name, ",".join(types)] = (result, name, types)
    return list(out.values())


def _type(parameter: str) -> str:
    words = " ".join(_NOISE.sub(" ", parameter.split("=")[0]).replace("*", " * ").replace("&", " ").split())
    m = re.fullmatch(r"(.*?)( \w+)?", words)
    assert m is not None
    base = (
        m.group(1)
        if m.group(2)
        and m.group(1)
        not in ("unsigned", "signed", "const", "long", "long long", "unsigned long long", "unsigned long")
        else words
    )
    return base.replace(" *", "*").strip()


def kernel(number: int, result: str, name: str, types: list[str]) -> str:
    """One line: a kernel that calls a function."""
    values = []
    for k, t in enumerate(types):
        plain = t.removeprefix("const ")
        values.append(f"({t})(p + {64 * k})" if "*" in t else f"get<{plain}>(q, {k})")
    call = f"{name}({', '.join(values)})"
    body = f"{call};" if result == "void" else f"put<{result.removeprefix('const ')}>(p, {call});"
    return f'extern "C" __global__ void k{number}(char* p, const char* q) {{ {body} }}'


def compile_all(lines: list[str], headers: list[str], arch: str, out: Path) -> int:
    """Compiles the lines that compile; returns how many those are."""
    source = out.with_suffix(".cu")
    head = "".join([f"#include <{h}>\n" for h in headers]) + _EXTRA
    for _ in range(12):
        source.write_text(head + "\n".join(lines) + "\n")
        done = subprocess.run(
            ["nvcc", "-ptx", "-w", f"-arch=compute_{arch}", "-Xcudafe", "--error_limit=100000", str(source), "-o",
            str(out)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return len(lines)
        before = head.count("\n")
        bad = {int(n) - before - 1 for n in re.findall(re.escape(source.name) + r"\((\d+)\): error", done.stderr)}
        left = [line for k, line in enumerate(lines) if k not in bad]
        if len(left) == len(lines) or not left:
            break
        lines = left
    out.unlink(missing_ok=True)
    return 0


def _include_folder(folder: Path) -> Path:
    """The folder in which nvcc finds its headers."""
    source = folder / "probe.cu"
    source.write_text("#include <cuda_fp16.h>\n")
    listed = subprocess.run(["nvcc", "-M", str(source)], capture_output=True, text=True, check=True).stdout
    return Path(next(word for word in listed.split() if word.endswith("/cuda_fp16.h"))).parent


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--archs", default="75,80,90a,100a,120a")
    args = parser.parse_args()
    if shutil.which("nvcc") is None:
        raise SystemExit("nvcc is not installed")
    args.folder.mkdir(parents=True, exist_ok=True)
    include = _include_folder(args.folder)
    for header in HEADERS:
        path = include / header
        if not path.exists():
            continue
        texts = [p.read_text(errors="replace") for p in (path, path.with_suffix(".hpp")) if p.exists()]
        lines = [kernel(k, *f) for k, f in enumerate(functions("\n".join(texts)))]
        headers = [header] if "crt/" not in header and "functions" not in header and "intrinsics" not in header else []
        for arch in args.archs.split(","):
            out = args.folder / f"{Path(header).stem}_sm_{arch}.ptx"
            print(header, arch, compile_all(lines, headers, arch, out), "of", len(lines), flush=True)


if __name__ == "__main__":
    main()
