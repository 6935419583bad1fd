"""Texture and surface kernels of the corpus: every geometry, type, level of detail, optional operand, and source of the
handle.

A *form* is a PTX statement (without semicolon) over fixed register names, and its result registers. The names:
``x0..x3`` float coordinates, ``i0..i2`` integer ones, ``i3`` array index, ``i4`` sample, ``i5..i7`` offsets,
``u0..u3``/``v0..v3`` gradients, ``l`` level, ``z`` the comparison value, ``h`` texture or surface, ``s`` sampler, ``q``
predicate, ``f``/``r``/``d`` results of 32 and 64 bits (``w``: 16 bits).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

#: geometry -> coordinates without array index and sample, registers that PTX requires in the vector, offsets (0: none)
GEOMETRIES = {
    "1d": (1, 1, 1), "2d": (2, 2, 2), "3d": (3, 4, 4), "a1d": (1, 2, 1), "a2d": (2, 4, 2), "cube": (3, 4, 0),
    "acube": (3, 4, 0), "2dms": (2, 4, 2),
    "a2dms": (2, 4, 2),
}  # fmt: skip
SURFACES = ("1d", "2d", "3d", "a1d", "a2d")
CLAMPS = ("trap", "clamp", "zero")
QUERIES = (
    "width",
    "height",
    "depth",
    "channel_data_type",
    "channel_order",
    "normalized_coords",
    "array_size",
    "num_mipmap_levels",
    "num_samples",
)
SAMPLER_QUERIES = ("filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "force_unnormalized_coords")
SURFACE_QUERIES = ("width", "height", "depth", "channel_data_type", "channel_order", "array_size", "memory_layout")


#: operation of sured -> its types, prefixed with b for sured.b, p for sured.p
REDUCTIONS = {
    "add": "b.u32 b.s32 b.u64 p.b32", "min": "b.u32 b.s32 b.u64 b.s64 p.b32 p.b64",
    "max": "b.u32 b.s32 b.u64 b.s64 p.b32 p.b64", "and": "b.b32 p.b32",
    "or": "b.b32 p.b32",
}  # fmt: skip


class Form(NamedTuple):
    """``text``: the statement; ``results``: registers that it writes, stored afterwards (``q`` as a guard)."""

    text: str
    results: tuple[str, ...]


def _vector(parts: list[str]) -> str:
    return "{" + ", ".join(parts) + "}"


def coordinates(geometry: str, kind: str) -> str:
    """The coordinate operand."""
    count, size, _ = GEOMETRIES[geometry]
    parts = [f"{'x' if kind == 'f32' else 'i'}{k}" for k in range(count)]
    if geometry.startswith("a"):
        parts.insert(0, "i3")
    if geometry.endswith("ms"):
        parts.insert(0, "i4")
    while len(parts) < size:
        parts.append(parts[-1])
    return _vector(parts)


def offsets(geometry: str) -> str:
    """The offset operand."""
    count = GEOMETRIES[geometry][2]
    return _vector(["i5", "i6", "i7", "i7"][:count])


def gradient(geometry: str, name: str) -> str:
    """A gradient operand."""
    parts = [f"{name}{k}" for k in range(GEOMETRIES[geometry][0])]
    return _vector(parts + parts[-1:] if len(parts) == 3 else parts)


def textures(independent: bool) -> Iterator[Form]:
    """tex in every form that ptxas accepts."""
    handle = "h, s" if independent else "h"
    for geometry, (_, _, offset) in GEOMETRIES.items():
        many = geometry.endswith("ms")
        for kind in ("f32", "s32"):
            if kind == ("f32" if many else "s32") and (many or "cube" in geometry):
                continue
            for lod in ("", ".base") if many else ("", ".base", ".level", ".grad"):
                if lod == ".grad" and kind == "s32":
                    continue
                for result in ("v4.f32", "v4.s32", "v2.f16x2", "v4.u32"):
                    regs = tuple(f"{'f' if 'f32' in result else 'r'}{k}" for k in range(int(result[1])))
                    if result == "v4.u32" and lod:
                        continue
                    for extra in range(8):
                        with_offset, compare, flag = extra & 1, extra & 2, extra & 4
                        if (
                            with_offset
                            and not offset
                            or compare
                            and (kind == "s32" or many or geometry == "3d")
                            or extra
                            and result == "v4.u32"
                        ):
                            continue
                        text = (
                            f"tex{lod}.{geometry}.{result}.{kind} {_vector(list(regs))}{'|q' if flag else ''}, "
                            f"[{handle}, {coordinates(geometry, kind)}]"
                        )
                        if lod == ".level":
                            text += ", l" if kind == "f32" else ", i0"
                        if lod == ".grad":
                            text += f", {gradient(geometry, 'u')}, {gradient(geometry, 'v')}"
                        text += (f", {offsets(geometry)}" if with_offset else "") + (", z" if compare else "")
                        yield Form(text, (*regs, "q") if flag else regs)
    for keep in range(1, 15):  # results that nothing reads
        regs = tuple(f"f{k}" for k in range(4) if keep >> k & 1)
        for head in ("tex.2d.v4.f32.f32", "tex.2d.v4.f32.s32", "tld4.r.2d.v4.f32.f32"):
            yield Form(f"{head} {{f0, f1, f2, f3}}, [{handle}, {coordinates('2d', head[-3:])}]", regs)


def gathers(independent: bool) -> Iterator[Form]:
    """tld4 in every form."""
    handle = "h, s" if independent else "h"
    for geometry in ("2d", "a2d", "cube", "acube"):
        for component in "rgba":
            for result in ("f32", "u32", "s32"):
                if result != "f32" and component != "r":
                    continue
                letter = "f" if result == "f32" else "r"
                regs = tuple(f"{letter}{k}" for k in range(4))
                for extra in range(8):
                    if extra & 1 and not GEOMETRIES[geometry][2]:
                        continue
                    text = (
                        f"tld4.{component}.{geometry}.v4.{result}.f32 "
                        f"{_vector(list(regs))}{'|q' if extra & 4 else ''}, [{handle}, "
                        f"{coordinates(geometry, 'f32')}]"
                    )
                    text += (f", {offsets(geometry)}" if extra & 1 else "") + (", z" if extra & 2 else "")
                    yield Form(text, (*regs, "q") if extra & 4 else regs)


def queries(independent: bool) -> Iterator[Form]:
    """txq and suq."""
    for query in QUERIES:
        yield Form(f"txq.{query}.b32 r0, [h]", ("r0",))
    for query in ("width", "height", "depth"):
        yield Form(f"txq.level.{query}.b32 r0, [h], i0", ("r0",))
        yield Form(f"txq.level.{query}.b32 r0, [h], 3", ("r0",))
    for query in SAMPLER_QUERIES:
        if independent or query != "force_unnormalized_coords":
            yield Form(f"txq.{query}.b32 r0, [{'s' if independent else 'h'}]", ("r0",))
    for query in SURFACE_QUERIES:
        yield Form(f"suq.{query}.b32 r0, [h]", ("r0",))


def surfaces() -> Iterator[Form]:
    """suld, sust, sured in every form."""
    for geometry in SURFACES:
        at = f"[h, {coordinates(geometry, 's32')}]"
        for clamp in CLAMPS:
            for cache in ("", ".ca", ".cg", ".cs", ".cv", ".wb", ".wt"):
                for size, letter in (("b8", "w"), ("b16", "w"), ("b32", "r"), ("b64", "d")):
                    for vector in (1, 2, 4):
                        if size == "b64" and vector == 4 or cache and (vector == 1) != (size != "b32"):
                            continue
                        names = [f"{letter}{k}" for k in range(vector)]
                        value = _vector(names) if vector > 1 else names[0]
                        dot = f".v{vector}" if vector > 1 else ""
                        if cache not in (".wb", ".wt"):
                            yield Form(f"suld.b.{geometry}{cache}{dot}.{size}.{clamp} {value}, {at}", tuple(names))
                        if cache not in (".ca", ".cv"):
                            yield Form(f"sust.b.{geometry}{cache}{dot}.{size}.{clamp} {at}, {value}", ())
                            if size == "b32":
                                yield Form(f"sust.p.{geometry}{cache}{dot}.{size}.{clamp} {at}, {value}", ())
            if geometry[0] == "a":
                continue
            for operation, types in REDUCTIONS.items():
                for size in types.split():
                    value = "d0" if "64" in size else "r0"
                    yield Form(f"sured.{size[0]}.{operation}.{geometry}.{size[2:]}.{clamp} {at}, {value}", ())


#: name -> type, in the order of their places in the input.
REGISTERS = (
    {f"{b}{k}": t for b, t in (("x", "f32"), ("i", "b32"), ("u", "f32"), ("v", "f32"), ("f", "f32"), ("r", "b32"), ("d",
        "b64"), ("w", "b16")) for k in range(8)}
    | {"l": "f32", "z": "f32", "h": "b64", "s": "b64"}
)  # fmt: skip
_NAME = re.compile(r"(?<![.\w])(?:[xiuvfrdw]\d|[lzhs])\b")

#: the source of the handle: a parameter, memory, or names of the module
HANDLES = ("param", "memory", "direct")


def body(name: str, form: Form, handle: str, constant: bool = False) -> str:
    """A kernel around a form; with ``constant`` the coordinates are numbers."""
    text = form.text
    used = dict.fromkeys(_NAME.findall(text))
    if handle == "direct":
        surface = text.startswith("su")
        text = re.sub(r"\bh\b", "surf0" if surface else "tex0", text)
        text = re.sub(r"\bs\b", "samp0", text)
        used.pop("h", None)
        used.pop("s", None)
    if constant:
        text = re.sub(r"\bx(\d)", lambda m: f"0f3F{int(m[1]) + 8:X}00000", text)
        text = re.sub(r"\bi(\d)", lambda m: str(int(m[1]) - 3), text)
    lines = [".reg .pred q; .reg .b64 in, out;"]
    lines += [f".reg .{REGISTERS[n]} {n};" for n in used]
    lines.append(
        "ld.param.u64 in, [pi]; ld.param.u64 out, [po]; cvta.to.global.u64 in, in; cvta.to.global.u64 out, out;"
    )
    places = list(REGISTERS)
    for n in used:
        if n in form.results or (n[0] in "frdw" and text[:4] not in ("sust", "sure")):
            continue
        if handle == "param" and n in "hs":
            lines.append(f"ld.param.u64 {n}, [p{n}];")
        else:
            lines.append(f"ld.global.{REGISTERS[n]} {n}, [in+{8 * places.index(n)}];")
    lines.append(text + ";")
    guard = "@q " if "q" in form.results else ""
    lines += [f"{guard}st.global.{REGISTERS[n]} [out+{8 * k}], {n};" for k, n in enumerate(form.results) if n != "q"]
    return (
        f".visible .entry {name}(.param .u64 ph, .param .u64 ps, .param .u64 pi, .param .u64 po) {{\n  "
        + "\n  ".join(lines)
        + "\n  ret;\n}\n"
    )


FAMILIES = ("texture", "texture-independent", "surface")
MODULES = {"texture-independent": (", texmode_independent", ".global .samplerref samp0;\n")}


def forms(family: str) -> Iterator[Form]:
    """The forms of a family."""
    if family == "surface":
        yield from surfaces()
        return
    independent = family != "texture"
    yield from textures(independent)
    yield from gathers(independent)
    yield from queries(independent)


def kernels(family: str) -> Iterator[str]:
    """Kernels of a family, ``NAME`` for the name."""
    for form in forms(family):
        for handle in HANDLES:
            yield body("NAME", form, handle)
        if family != "surface":
            yield body("NAME", form, "param", constant=True)


class Bodies:
    """The kernels of a family, made on demand."""

    def __init__(self, family: str) -> None:
        self.family = family

    def __iter__(self) -> Iterator[str]:
        return kernels(self.family)


RAW = {family: Bodies(family) for family in FAMILIES}
