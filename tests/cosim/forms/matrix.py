"""Forms of matrices of a warp. Numbers are drawn so that every sum is exact, because the order of hardware additions is
not documented."""

from __future__ import annotations

import random
import re

from stages.parse.table import Row
from tests.cosim.forms import arith
from tests.cosim.forms.base import Form, opcode_text, store

NAMES = ("mma", "wmma", "ldmatrix", "stmatrix", "movmatrix")


def form(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """A form of this module's families."""
    opcode = opcode_text(row, mods, types)
    if row.name == "mma":
        return _mma(opcode, row, mods, types, rng)
    if row.name.startswith("wmma"):
        return _wmma(opcode, row, mods, types, rng)
    if row.name == "movmatrix":
        text = f"{opcode} %r40, %r0;"
        return Form(
            opcode, text, f"ld.global.b32 %r0, [%in]; {text} st.global.b32 [%out], %r40;", ["b32"], ["b32"], row.key
        )
    return _tiles(opcode, row, rng)


def _mma(opcode: str, row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """mma: A, B, C in registers, and metadata and scales if the form has them."""
    o = arith.Operands()
    kinds = {1: types[1], 2: types[2], 3: types[3]}
    sparse = any(m.startswith("sp") for m in mods)
    place = 0
    factor = ""  # of A: its selector names a pair of threads
    for k, spec in enumerate(row.operands):
        if k == 0:
            kind = _register_kind(types[0], spec.type)
            o.texts.append(o.vector_result(kind, spec.vector))
        elif k in kinds:
            o.texts.append(
                o.vector(f"mma.{kinds[k]}{'.c' if k == 3 else ''}", spec.vector)
                if kinds[k] != "f64"
                else o.vector("mma.f64", spec.vector)
            )
        elif spec.role == "i":
            o.texts.append(str(_selector(opcode, rng)))
        elif spec.vector:
            step = next((int(m[-2]) for m in mods if m.startswith("scale_vec")), 2 if "mxf4" in opcode else 1)
            byte = 0 if step == 4 else rng.choice([0, 2]) if step == 2 else rng.randrange(4)
            o.texts.append(f"{{{byte}, {rng.randrange(2 if o.texts[-1] == factor else 4)}}}")
        elif sparse and place == 0:
            place = 1
            o.texts.append(o.source("meta." + types[1]))
        else:
            o.texts.append(o.source("scale." + types[-1]))
            factor = factor or o.texts[-1]
    text = f"{opcode} {', '.join(o.texts)};"
    return Form(opcode, text, "\n".join([*o.lines, text, *o.stores()]), o.sources, o.kinds(), row.key, threads=64)


def _register_kind(type_: str, spec: str) -> str:
    return {"f16": "f16x2", "f32": "f32", "f64": "f64", "s32": "b32"}.get(type_, spec)


def _selector(opcode: str, rng: random.Random) -> int:
    """The sparsity selector: pairs of threads for forms with 32 bits of metadata per pair, one of four for 64 bits
    (documented)."""
    if re.search(
        r"m16n8k16\S*\.(f16|bf16)|m16n8k8\S*tf32|m16n8k32\S*\.(f16|bf16)\.f16|m16n8k16\S*tf32"
        r"|m16n8k32\S*\.[us]8|m16n8k64\S*\.[us]4",
        opcode,
    ):
        return rng.randrange(2)
    return 0


def _wmma(opcode: str, row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """wmma: the whole sequence, since the layout of fragments is not documented: load, (multiply,) store; the memory
    contents are compared."""
    shape = next(m for m in mods if re.fullmatch(r"m\d+n\d+k\d+", m))
    m, n, k = (int(x) for x in re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape).groups())  # type: ignore[union-attr]
    if row.name == "wmma.mma":
        return _wmma_mma(opcode, row, mods, types, shape, (m, n, k))
    return _wmma_move(opcode, row, mods, types[0], shape, (m, n, k), rng)


_BITS = {
    "f16": 16,
    "bf16": 16,
    "tf32": 32,
    "f32": 32,
    "f64": 64,
    "s32": 32,
    "u8": 8,
    "s8": 8,
    "u4": 4,
    "s4": 4,
    "b1": 1,
}


#: Register counts of fragments that only the row of another name gives: (matrix, shape, type) -> count.
def _fragments(matrix: str, shape: str, type_: str) -> tuple[int, str]:
    from stages.parse import table

    name = f"wmma.store.{matrix}" if matrix == "d" else f"wmma.load.{matrix}"
    for row in table.rows(name):
        if any(type_ in t[0] for t in row.types) and any(shape in s.values for s in row.slots):
            spec = row.operands[1 if matrix == "d" else 0]
            return spec.vector, {"f64": "d"}.get(spec.type, "r")
    raise KeyError(shape)


def _regs(letter: str, first: int, n: int) -> str:
    return "{" + ", ".join([f"%{letter}{first + k}" for k in range(n)]) + "}"


def _layouts(mods: list[str]) -> list[str]:
    return [m for m in mods if m in ("row", "col")]


def _stride(rows: int, cols: int, layout: str) -> int:
    return cols if layout == "row" else rows


def _matrix_memory(name: str, elements: int, type_: str) -> tuple[str, int]:
    size = max(elements * _BITS[type_] // 8, 16)
    return f".shared .align 128 .b8 {name}[{size}];", size


def _slots(size: int, wide: bool) -> int:
    """Input slots per thread for a matrix of this many bytes."""
    return -(-size // (256 if wide else 128))


def _fill(name: str, size: int, slot: int, wide: bool = False) -> str:
    """Each of 32 threads puts its share of a matrix, words of 4 or 8 bytes, into shared memory from its part of the
    input."""
    bytes_ = 8 if wide else 4
    words = size // bytes_
    r, t = ("%d52", "b64") if wide else ("%r60", "b32")
    lines = [f"mov.u32 %t2, {name}; mad.lo.u32 %t2, %me, {bytes_}, %t2;"]
    for j in range(_slots(size, wide)):
        guard = f"setp.lt.u32 %p50, %me, {words - 32 * j}; @%p50 " if words - 32 * j < 32 else ""
        lines.append(f"ld.global.{t} {r}, [%in+{(slot + j) * 8}]; {guard}st.shared.{t} [%t2+{32 * bytes_ * j}], {r};")
    return " ".join(lines)


def _wmma_mma(
    opcode: str, row: Row, mods: list[str], types: tuple[str, ...], shape: str, dims: tuple[int, int, int]
) -> Form:
    m, n, k = dims
    d, c = types[0], types[-1]
    a = types[1] if len(types) == 4 else "f16"
    layouts = _layouts(mods)
    lines: list[str] = []
    sources: list[str] = []
    declared: list[str] = []
    texts: dict[str, str] = {}
    for matrix, (rows, cols), layout, type_ in (
        ("a", (m, k), layouts[0], a),
        ("b", (k, n), layouts[1], a),
        ("c", (m, n), "row", c),
    ):
        memory, size = _matrix_memory(f"m{matrix}", rows * cols, type_)
        declared.append(memory)
        kind = f"mma.{type_}{'.c' if matrix == 'c' else ''}"
        wide = type_ == "f64"
        lines.append(_fill(f"m{matrix}", size, len(sources), wide))
        sources += [kind] * _slots(size, wide)
        count, letter = _fragments(matrix, shape, type_)
        first = {"a": 0, "b": 10, "c": 20}[matrix]
        texts[matrix] = _regs(letter, first, count)
        lines.append(f"mov.u32 %r59, m{matrix};")
        lines.append(
            f"LD{matrix}: wmma.load.{matrix}.sync.aligned.{layout}.{shape}.shared.{type_} {texts[matrix]}, "
            f"[%r59], {_stride(rows, cols, layout)};"
        )
    out, size = _matrix_memory("md", m * n, d)
    declared.append(out)
    count, letter = _fragments("d", shape, d)
    result = _regs(letter, 40, count)
    text = f"{opcode} {result}, {texts['a']}, {texts['b']}, {texts['c']};"
    fills = [x for x in lines if x.startswith("mov.u32 %t2")]
    rest = [x for x in lines if not x.startswith("mov.u32 %t2")]
    body = [
        *fills,
        "bar.warp.sync 0xffffffff;",
        *rest,
        text,
        "mov.u32 %r59, md;",
        f"wmma.store.d.sync.aligned.row.{shape}.shared.{d} [%r59], {result}, {n};",
        "bar.warp.sync 0xffffffff;",
    ]
    dests = _read_back("md", size, body, {"f16": "f16x2", "f32": "f32", "f64": "b32", "s32": "b32"}[d])
    return Form(opcode, text, "\n".join(body), sources, dests, row.key, local=" ".join(declared), threads=32)


def _read_back(name: str, size: int, body: list[str], kind: str) -> list[str]:
    words = size // 4
    dests = []
    body.append(f"mov.u32 %t2, {name}; mad.lo.u32 %t2, %me, 4, %t2;")
    for j in range(-(-words // 32)):
        body.append(
            f"mov.u32 %r60, 0; setp.lt.u32 %p50, %me, {words - 32 * j}; @%p50 ld.shared.b32 %r60, "
            f"[%t2+{128 * j}]; st.global.b32 [%out+{8 * j}], %r60;"
        )
        dests.append(kind)
    return dests


#: The first thread's part of the third buffer: the launch has one warp, whose parts are consecutive.
_BASE = "ld.param.u64 %d55, [pmem];"


def _to_global(name: str, size: int) -> str:
    """Copy a matrix from shared memory to the third buffer."""
    lines = [_BASE, f"mov.u32 %t2, {name}; mad.lo.u32 %t2, %me, 4, %t2; mad.wide.u32 %d56, %me, 4, %d55;"]
    words = size // 4
    for j in range(-(-words // 32)):
        guard = f"setp.lt.u32 %p50, %me, {words - 32 * j}; @%p50 "
        lines.append(
            f"ld.shared.b32 %r60, [%t2+{128 * j}]; {guard}st.global.b32 [%d56+{128 * j}], %r60;"
            if words >= 32 * (j + 1)
            else f"{guard}ld.shared.b32 %r60, [%t2+{128 * j}]; @%p50 st.global.b32 [%d56+{128 * j}], %r60;"
        )
    return " ".join([*lines, "bar.warp.sync 0xffffffff;"])


def _from_global(name: str, size: int) -> str:
    """Copy it back."""
    lines = [
        "bar.warp.sync 0xffffffff;",
        f"mov.u32 %t2, {name}; mad.lo.u32 %t2, %me, 4, %t2; mad.wide.u32 %d56, %me, 4, %d55;",
    ]
    words = size // 4
    for j in range(-(-words // 32)):
        lines.append(
            f"setp.lt.u32 %p50, %me, {words - 32 * j}; @%p50 ld.global.b32 %r60, [%d56+{128 * j}]; "
            f"@%p50 st.shared.b32 [%t2+{128 * j}], %r60;"
        )
    return " ".join(lines)


def _wmma_move(
    opcode: str, row: Row, mods: list[str], type_: str, shape: str, dims: tuple[int, int, int], rng: random.Random
) -> Form | None:
    """Loads and stores of accumulators: load in one layout, store in another. A product shows loads of A and B."""
    m, n, k = dims
    matrix = row.name[-1]
    layout = _layouts(mods)[0]
    if matrix in ("a", "b"):
        return _wmma_load(opcode, row, mods, type_, shape, dims)
    memory, size = _matrix_memory("mc", m * n, type_)
    out, _ = _matrix_memory("md", m * n, type_)
    count, letter = _fragments("c", shape, type_)
    regs = _regs(letter, 0, count)
    other = rng.choice(["row", "col"])
    load_layout, store_layout = (layout, other) if matrix == "c" else (other, layout)
    space = next((x for x in mods if x.startswith(("shared", "global"))), "")
    bare = opcode
    load = (
        f"wmma.load.c.sync.aligned.{load_layout}.{shape}.shared.{type_} {regs}, [%r59], {_stride(m, n, load_layout)};"
    )
    store_ = (
        f"wmma.store.d.sync.aligned.{store_layout}.{shape}.shared.{type_} [%r58], {regs}, "
        f"{_stride(m, n, store_layout)};"
    )
    address = {"c": "%r59", "d": "%r58"}[matrix]
    pre, post = "", ""
    if space == "global":
        pre, post = (_to_global("mc", size), "") if matrix == "c" else (_BASE, _from_global("md", size))
        address = "%d55"
    elif not space:
        pre = f"cvt.u64.u32 %d51, {address}; cvta.shared.u64 %d51, %d51;"
        address = "%d51"
    if matrix == "c":
        load = f"{pre} {bare} {regs}, [{address}], {_stride(m, n, load_layout)};"
    else:
        store_ = f"{pre} {bare} [{address}], {regs}, {_stride(m, n, store_layout)}; {post}"
    body = [
        _fill("mc", size, 0),
        "bar.warp.sync 0xffffffff; mov.u32 %r59, mc; mov.u32 %r58, md;",
        load,
        store_,
        "bar.warp.sync 0xffffffff;",
    ]
    dests = _read_back("md", size, body, "b32")
    text = load if matrix == "c" else store_
    return Form(
        opcode,
        text,
        "\n".join(body),
        ["b32"] * _slots(size, False),
        dests,
        row.key,
        local=f"{memory} {out}",
        threads=32,
        memory="b8" if space == "global" else "",
    )


def _wmma_load(
    opcode: str, row: Row, mods: list[str], type_: str, shape: str, dims: tuple[int, int, int]
) -> Form | None:
    from stages.parse import table

    for other in table.rows("wmma.mma"):
        types = next((t for t in other.types if len(t) == 4 and type_ in t[1]), None)
        half = type_ == "f16" and len(other.types[0]) == 2
        if (types is None and not half) or not any(shape in s.values for s in other.slots):
            continue
        layout = _layouts(mods)[0]
        matrix = row.name[-1]
        slots = []
        seen = 0
        for s in other.slots:
            values = s.values
            if set(values) & {"row", "col"}:
                mine = (seen == 0) == (matrix == "a")
                slots.append(layout if mine else values[0])
                seen += 1
            else:
                slots.append(values[0] if s.required else "")
        chosen = (
            ("f32", "f32")
            if half
            else tuple([type_ if k in (1, 2) else sorted(p)[0] for k, p in enumerate(types or ())])
        )
        whole = _wmma_mma(opcode_text(other, slots, chosen), other, slots, chosen, shape, dims)
        whole.row = row.key
        space = next((x for x in mods if x.startswith(("shared", "global"))), "")
        lines = whole.body.split("\n")
        for k, line in enumerate(lines):
            if line.startswith(f"LD{matrix}:"):
                text = re.sub(r"wmma\.load\S+", opcode, line)
                whole.text = text.split(": ", 1)[1]
                if space == "global":
                    rows, cols = (dims[0], dims[2]) if matrix == "a" else (dims[2], dims[1])
                    text = f"{_to_global(f'm{matrix}', max(rows * cols * _BITS[type_] // 8, 16))} " + text.replace(
                        "[%r59]", "[%d55]"
                    )
                    whole.memory = "b8"
                if not space:
                    text = "cvt.u64.u32 %d51, %r59; cvta.shared.u64 %d51, %d51; " + text.replace("[%r59]", "[%d51]")
                lines[k] = text
        whole.body = "\n".join(lines)
        whole.opcode = opcode
        return whole
    return None


def _tiles(opcode: str, row: Row, rng: random.Random) -> Form | None:
    """ldmatrix and stmatrix: every lane names a row of 16 bytes, in no particular order."""
    is_load = row.name == "ldmatrix"
    vector = row.operands[0 if is_load else 1].vector
    regs = _regs("r", 0, vector)
    space = "shared" in opcode
    head = (
        "mov.u32 %r58, sm; mov.u32 %r57, %me; mul.lo.u32 %r56, %r57, 5; add.u32 %r56, %r56, 3; and.b32 %r56, "
        "%r56, 31; mad.lo.u32 %r58, %r56, 16, %r58;"
    )
    address = "%r58"
    if not space:
        head += " cvt.u64.u32 %d51, %r58; cvta.shared.u64 %d51, %d51;"
        address = "%d51"
    local = ".shared .align 128 .b8 sm[512];"
    if is_load:
        text = f"{opcode} {regs}, [{address}];"
        body = [
            _fill("sm", 512, 0),
            head,
            "bar.warp.sync 0xffffffff;",
            text,
            *[store("b32", f"%r{k}", k) for k in range(vector)],
        ]
        return Form(opcode, text, "\n".join(body), ["b32"] * 4, ["b32"] * vector, row.key, local=local, threads=32)
    text = f"{opcode} [{address}], {regs};"
    loads = " ".join([f"ld.global.b32 %r{k}, [%in+{8 * k}];" for k in range(vector)])
    zero = " ".join(
        [f"mov.u32 %t2, sm; mad.lo.u32 %t2, %me, 16, %t2; st.shared.b32 [%t2+{4 * k}], 0;" for k in range(4)]
    )
    body = [zero, loads, head, "bar.warp.sync 0xffffffff;", text, "bar.warp.sync 0xffffffff;"]
    dests = _read_back("sm", 512, body, "b32")
    return Form(opcode, text, "\n".join(body), ["b32"] * vector, dests, row.key, local=local, threads=32)
