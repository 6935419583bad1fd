"""Forms of warpgroup products and of copies by tensor maps, on matrices and tensors with a random layout."""

from __future__ import annotations

import random
import re

import numpy as np

from stages.interpret.rows import BITS
from stages.parse.table import Row
from stages.simulate.tensor_maps import MapError, tensor_map
from tests.cosim.forms.base import Form, opcode_text

NAMES = re.compile(r"wgmma\.mma_async|cp\.(reduce\.)?async\.bulk\.tensor|tensormap\.replace")
#: Bytes of A and of B in shared memory, of a box, of a tensor.
_A, _B, _BOX, _TENSOR = 8192, 16384, 4096, 16384
_ELEMENT = {"b1": 1, "tf32": 32}


def form(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """A form of this module's families."""
    opcode = opcode_text(row, mods, types)
    if row.name == "wgmma.mma_async":
        return _product(opcode, row, types, rng)
    if row.name == "tensormap.replace":
        return _replace(opcode, row, mods, rng)
    return _copy(opcode, row, mods, rng)


# --------------------------------------------------------------------------- products


def _addresses(rows: int, k_bytes: int, swizzle: int, lead: int, stride: int, turned: bool) -> int:
    """The end of a matrix that begins at 0."""
    span = (16, 128, 64, 32)[swizzle]
    if not turned:
        inner = (k_bytes // 16 - 1) * (16 if swizzle else lead)
        return (rows // 8 - 1) * stride + 7 * span + inner + 16
    chunks, k = rows // 8, k_bytes // 2
    if not swizzle:
        return (chunks - 1) * stride + 7 * 16 + (k // 8 - 1) * lead + 16
    wide = span // 16
    return (chunks - 1) // wide * lead + span + 7 * span + (k // 8 - 1) * stride


def _descriptor(rng: random.Random, at: int, size: int, rows: int, k_bytes: int, turned: bool) -> tuple[int, int]:
    """Words of a descriptor, without the shared-memory address, of a matrix within this many bytes of a place."""
    while True:
        swizzle = rng.randrange(4)
        if not turned and swizzle and k_bytes > (0, 128, 64, 32)[swizzle]:
            continue
        lead, stride = (16 * rng.randrange(1, rng.choice([4, 40, 130])) for _ in range(2))
        start = 16 * rng.randrange(0, 40)
        if start + _addresses(rows, k_bytes, swizzle, lead, stride, turned) <= size - 1024:
            base = rng.randrange(8) if swizzle and rng.random() < 0.2 else 0
            return (at + start) >> 4 | lead >> 4 << 16, stride >> 4 | base << 17 | swizzle << 30


def _product(opcode: str, row: Row, types: tuple[str, ...], rng: random.Random) -> Form:
    td, ta, tb = types
    shape = re.search(r"m64n(\d+)k(\d+)", opcode)
    assert shape is not None
    n, k = int(shape[1]), int(shape[2])
    sparse = ".sp." in opcode
    held = row.operands[1].vector > 0
    flags = [rng.choice([1, -1]), rng.choice([1, -1])] if sum(o.role == "i" for o in row.operands) - sparse else []
    turns = [rng.randrange(2) for _ in range(sum(o.role == "i" for o in row.operands) - sparse - len(flags))]
    turn_a, turn_b = (0, *turns) if len(turns) == 1 else tuple(turns) if turns else (0, 0)
    bits = _ELEMENT.get(tb) or BITS[tb]
    depth = k * bits // 8
    left = _descriptor(rng, 0, _A, 64, depth // 2 if sparse else depth, bool(turn_a))
    right = _descriptor(rng, _A, _B, n, depth, bool(turn_b))
    sources, lines = [f"mma.{ta}"] * (_A // 512) + [f"mma.{tb}"] * (_B // 512), []
    lines.append("mov.u32 %t2, sm; mad.lo.u32 %t2, %me, 4, %t2;")
    for j in range(len(sources)):
        lines.append(f"ld.global.b32 %r60, [%in+{8 * j}]; st.shared.b32 [%t2+{512 * j}], %r60;")
    count = n // 4 if td == "f16" else n // 2
    registers = [f"%w{i}" for i in range(count)]
    kind = {"f16": "mma.f16", "f32": "mma.f32", "s32": "mma.s32.c"}[td]

    def take(register: str, kind: str) -> None:
        lines.append(f"ld.global.b32 {register}, [%in+{8 * len(sources)}];")
        sources.append(kind)

    for register in registers:
        take(register, kind)
    operands = ["{" + ", ".join(registers) + "}"]
    lines.append("mov.u32 %r50, sm; shr.u32 %r50, %r50, 4;")
    for letter, (low, high) in (("a", left), ("b", right)):
        lines.append(
            f"add.u32 %r51, %r50, {low}; mov.u32 %r52, {high}; mov.b64 %d5{'01'[letter == 'b']}, {{%r51, %r52}};"
        )
    if held:
        for i in range(4):
            take(f"%r{i}", f"mma.{ta}")
    operands += ["{%r0, %r1, %r2, %r3}" if held else "%d50", "%d51"]
    if sparse:
        take("%r4", f"meta.{ta}")
        operands += ["%r4", str(rng.randrange(2) if bits >= 16 else 0)]
    lines.append(f"mov.u32 %r5, {int(rng.random() < 0.75)}; setp.ne.u32 %p10, %r5, 0;")
    operands += ["%p10", *(str(x) for x in (*flags, *turns))]
    text = f"{opcode} {', '.join(operands)};"
    lines += [
        "fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;",
        text,
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        *(f"st.global.b32 [%out+{8 * i}], {x};" for i, x in enumerate(registers)),
    ]
    dests = [{"f16": "f16x2", "f32": "f32", "s32": "b32"}[td]] * count
    local = f".shared .align 1024 .b8 sm[{_A + _B}]; .reg .b32 %w<128>;"
    return Form(opcode, text, "\n".join(lines), sources, dests, row.key, local=local, threads=128)


# --------------------------------------------------------------------------- copies

_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16")
#: Types of an operation.
_REDUCED = {
    "add": ("u32", "s32", "u64", "f16", "bf16", "f32"), "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",), "dec": ("u32",), "and": ("u32", "u64"),
}  # fmt: skip


class _Tensor:
    """A tensor, its map, a place in it."""

    def __init__(self, rng: random.Random, rank: int, types: tuple[str, ...], column: bool, rows: bool) -> None:
        while True:
            self.type_ = rng.choice(types)
            size = int(re.sub(r"\D", "", self.type_.replace("bf", "f"))) // 8
            self.dims = [rng.randrange(1, 2 + (64 // size if i == 0 else 9)) for i in range(rank)]
            self.strides, at = [], -(-self.dims[0] * size // 16) * 16
            for d in self.dims[1:]:
                at += 16 * rng.choice([0, 0, 1, 2])
                self.strides.append(at)
                at *= d
            self.steps = [rng.choice([1, 1, 1, 2, 3]) if i or column else 1 for i in range(rank)]
            swizzle = rng.choice([0, 32, 64, 128])
            inner = rng.choice([16, 32, 64, 128, 256])
            self.box = [inner // size, *(rng.randrange(1, 9) for _ in range(rank - 1))]
            if rows:
                self.box[1] = 1
            self.start = [rng.randrange(-3, d + 2) for d in self.dims]
            self.corners = [[rng.randrange(-2, 2) for _ in range(rank - 2)] for _ in range(2)] if column else None
            self.pixels = rng.randrange(1, 17)
            count = [-(-b // s) for b, s in zip(self.box, self.steps, strict=True)]
            self.bytes = size * (
                self.box[0] * self.pixels if column else 4 * self.box[0] if rows else int(np.prod(count))
            )
            if rows:
                self.start = [self.start[0], *(rng.randrange(-1, self.dims[1] + 1) for _ in range(4))]
            if at <= _TENSOR and self.bytes <= _BOX and self._made(rng, swizzle, column):
                return

    def _made(self, rng: random.Random, swizzle: int, column: bool) -> bool:
        if column:
            assert self.corners is not None
            for i, (low, up) in enumerate(zip(*self.corners, strict=True)):
                extent = self.dims[1 + i] + up - low
                if extent < 1:
                    return False
                self.start[1 + i] = low + rng.randrange(0, extent, self.steps[1 + i])
        try:
            self.map, _ = tensor_map(
                np.zeros(1, np.uint8),
                self.box,
                type_=self.type_,
                swizzle=swizzle,
                dims=self.dims,
                strides=self.strides,
                steps=self.steps,
                nan=rng.random() < 0.2 and self.type_[0] in "fb",
                corners=(self.corners[0], self.corners[1]) if self.corners is not None else None,
                pixels=self.pixels,
            )
        except MapError:
            return False
        return True

    def variable(self) -> str:
        """The map in global memory."""
        return f".global .align 128 .b8 map$$[128] = {{{', '.join([str(x) for x in self.map])}}};"


_READY = "mov.u64 %d50, map$$; ld.param.u64 %d51, [pmem]; st.global.u64 [%d50], %d51; fence.proxy.async;"


def _copy(opcode: str, row: Row, mods: list[str], rng: random.Random) -> Form | None:
    rank = next((int(m[0]) for m in mods if re.fullmatch(r"[1-5]d", m)), 0)
    column, rows = any(m.startswith("im2col") for m in mods), any(m.endswith("4") and "tile" in m for m in mods)
    if (column and rank < 3) or any(m.startswith("im2col::") for m in mods) or (rows and rank != 2):
        return None
    what = next((m for m in mods if m in ("add", "min", "max", "inc", "dec", "and", "or", "xor")), "")
    types = _REDUCED[{"max": "min", "or": "and", "xor": "and"}.get(what, what)] if what else _TYPES
    t = _Tensor(rng, rank, types, column, rows)
    coordinates = ", ".join([f"%r{i}" for i in range(len(t.start))])
    place = f"[%d50, {{{coordinates}}}]"
    lines = [f"mov.u32 %r{i}, {x};" for i, x in enumerate(t.start)]
    local = f".shared .align 1024 .b8 sm[{_BOX}]; .shared .align 8 .b64 mb;"
    if "bulk_group" in mods:
        return _store(opcode, row, t, place, lines, local)
    operands = ["[%r40]", place, "[%r41]"]
    if column:
        offsets = [rng.randrange(4) for _ in range(rank - 2)]
        lines += [f"mov.u16 %h{i}, {x};" for i, x in enumerate(offsets)]
        operands.append("{" + ", ".join([f"%h{i}" for i in range(rank - 2)]) + "}")
    if "multicast::cluster" in mods:
        lines.append("mov.u16 %h9, 1;")
        operands.append("%h9")
    if "L2::cache_hint" in mods:
        lines.append("mov.u64 %d52, 0;")
        operands.append("%d52")
    text = f"{opcode} {', '.join(operands)};"
    body = [
        "mov.u32 %t2, sm; mad.lo.u32 %t2, %me, 16, %t2; mov.u32 %r42, 0;",
        "st.shared.v4.b32 [%t2], {%r42, %r42, %r42, %r42}; mov.u32 %r40, sm; mov.u32 %r41, mb;",
        "setp.ne.u32 %p1, %me, 0; @%p1 bra L1;",
        f"mbarrier.init.shared.b64 [mb], 1; {_READY}",
        *lines,
        f"mbarrier.arrive.expect_tx.shared.b64 _, [mb], {t.bytes};",
        text,
        "L1: bar.sync 0;",
        "L2: mbarrier.try_wait.parity.shared.b64 %p2, [mb], 0; @!%p2 bra L2;",
        *(f"ld.shared.b32 %r43, [%t2+{4 * j}]; st.global.b32 [%out+{8 * j}], %r43;" for j in range(4)),
    ]
    return Form(opcode, text, "\n".join(body), [], ["b32"] * 4, row.key, module=t.variable(), local=local, memory="b8")


def _store(opcode: str, row: Row, t: _Tensor, place: str, lines: list[str], local: str) -> Form:
    kind = {"f16": "f16x2", "bf16": "bf16x2", "f32": "f32"}.get(t.type_, "b32")
    operands = [place, "[%r40]"]
    if "L2::cache_hint" in opcode:
        lines.append("mov.u64 %d52, 0;")
        operands.append("%d52")
    text = f"{opcode} {', '.join(operands)};"
    body = [
        "mov.u32 %t2, sm; mad.lo.u32 %t2, %me, 16, %t2; mov.u32 %r40, sm;",
        *(f"ld.global.b32 %r42, [%in+{8 * j}]; st.shared.b32 [%t2+{4 * j}], %r42;" for j in range(4)),
        "fence.proxy.async; bar.sync 0; setp.ne.u32 %p1, %me, 0; @%p1 bra L1;",
        _READY,
        *lines,
        text,
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
        "L1: bar.sync 0;",
    ]
    memory = {"f16": "f16", "bf16": "bf16", "f32": "f32"}.get(t.type_, "b8") if "reduce" in opcode else "b8"
    return Form(opcode, text, "\n".join(body), [kind] * 4, [], row.key, module=t.variable(), local=local, memory=memory)


# --------------------------------------------------------------------------- maps


def _replace(opcode: str, row: Row, mods: list[str], rng: random.Random) -> Form:
    """Each of 64 threads changes the 128-byte map in its part of the third buffer."""
    field = next((m for m in mods if m in _FIELDS), "global_address")
    many, most = _FIELDS.get(field, (0, 0))
    operands = [str(rng.randrange(many))] if many else []
    sources: list[str] = []
    if row.operands[-1].role == "i":
        operands.append(str(rng.randrange(most + 1)))
    else:
        wide = "b64" in opcode
        value = "%d53" if wide else "%r45"
        sources.append("b64" if wide else "b32")
        operands.append(value)
    shared = any(m.startswith("shared") for m in mods)
    load = {"%d53": "ld.global.b64 %d53, [%in];", "%r45": "ld.global.b32 %r45, [%in];"}.get(operands[-1], "")
    if field == "rank" and load:
        load += " and.b32 %r45, %r45, 3;"
    text = f"{opcode} [{'%r46' if shared else '%d54'}], {', '.join(operands)};"
    move = [f"ld.global.b64 %d55, [%d54+{8 * j}]; st.shared.b64 [%r46+{8 * j}], %d55;" for j in range(16)]
    back = [f"ld.shared.b64 %d55, [%r46+{8 * j}]; st.global.b64 [%d54+{8 * j}], %d55;" for j in range(16)]
    body = [
        "setp.ge.u32 %p1, %me, 64; @%p1 bra L1;",
        "ld.param.u64 %d54, [pmem]; mad.wide.u32 %d54, %me, 128, %d54; mov.u32 %r46, sm; "
        "mad.lo.u32 %r46, %me, 128, %r46;",
        load,
        *(move if shared else []),
        text,
        *(back if shared else []),
        "L1:",
    ]
    local = ".shared .align 128 .b8 sm[8192];"
    return Form(opcode, text, "\n".join(body), sources, [], row.key, local=local, memory="b8", threads=128)


#: Fields: how many there are (0: one), the greatest constant.
_FIELDS: dict[str, tuple[int, int]] = {
    "rank": (0, 4), "elemtype": (0, 15), "interleave_layout": (0, 2), "swizzle_mode": (0, 3), "fill_mode": (0, 1),
    "box_dim": (5, 0), "global_dim": (5, 0), "global_stride": (4, 0), "element_stride": (5, 0),
    "swizzle_atomicity": (0, 3),
}  # fmt: skip
