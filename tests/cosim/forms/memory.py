"""Forms that touch memory: loads, stores, atomics, addresses, caches, copies.

Each thread owns `PART` bytes of the third buffer. For other spaces they are copied there before the instruction and
back after it.
"""

from __future__ import annotations

import random

from stages.interpret.rows import BITS
from stages.parse.table import Row
from tests.cosim.forms import arith
from tests.cosim.forms.base import BLOCK, PART, Form, opcode_text, register

NAMES = (
    "ld",
    "ldu",
    "st",
    "atom",
    "red",
    "prefetch",
    "prefetchu",
    "applypriority",
    "discard",
    "cvta",
    "isspacep",
    "mapa",
    "getctarank",
    "createpolicy",
    "alloca",
    "stacksave",
    "stackrestore",
)
#: Instructions with separate kernels.
SPECIAL = ("cvta", "isspacep", "mapa", "getctarank", "createpolicy", "alloca", "stacksave", "stackrestore")
_SPACES = ("global", "shared", "local", "const", "param")
_POLICY = "createpolicy.fractional.L2::evict_last.b64 %d50, 1.0;"


def space_word(mods: list[str]) -> str:
    """The space that the modifiers name, with the part after the colons; "" for generic."""
    return next((m for m in mods if m.split("::")[0] in _SPACES), "")


def _copy(to: str, to_base: str, source: str, source_base: str) -> str:
    return " ".join(
        [f"ld.{source}.b64 %d52, [{source_base}+{k}]; st.{to}.b64 [{to_base}+{k}], %d52;" for k in range(0, PART, 8)]
    )


class Place:
    """The target of a form's accesses: the address register, set-up, following code, declarations."""

    def __init__(self, space: str, rng: random.Random, atomic: bool = False) -> None:
        self.module = self.local = self.before = self.after = ""
        self.cluster = 1
        self.blob = False
        self.base = "%mem"
        kind = space or rng.choice(
            ["global", "shared"] if atomic else ["global", "global", "shared", "local"]
        )  # atomics reach no local memory
        word = kind.split("::")[0]
        if word == "shared":
            self.local = f".shared .align 128 .b8 sm[{PART * BLOCK}];"
            self.before = (
                f"mov.u32 %t2, %tid.x; mad.lo.u32 %t2, %t2, {PART}, 0; mov.u32 %r60, sm; add.u32 %r60, %r60, "
                f"%t2; {_copy('shared', '%r60', 'global', '%mem')}"
            )
            self.after = _copy("global", "%mem", "shared", "%r60")
            self.base = "%r60"
            if kind == "shared::cluster":
                self.cluster = 2
                self.before += (
                    " barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; mov.u32 %r61, "
                    "%cluster_ctarank; xor.b32 %r61, %r61, 1; "
                    "mapa.shared::cluster.u32 %r62, %r60, %r61;"
                )
                self.after = f"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; {self.after}"
                self.base = "%r62"
            if not space:
                self.before += " cvt.u64.u32 %d51, %r60; cvta.shared.u64 %d51, %d51;"
                self.base = "%d51"
        elif word == "local":
            self.local = f".local .align 128 .b8 lm[{PART}];"
            self.before = f"mov.u64 %d51, lm; {_copy('local', '%d51', 'global', '%mem')}"
            self.after = _copy("global", "%mem", "local", "%d51")
            self.base = "%d51"
            if not space:
                self.before += " cvta.local.u64 %d53, %d51;"
                self.base = "%d53"
        elif word == "const":
            values = ", ".join([str(rng.randrange(256)) for _ in range(PART * 16)])
            self.module = f".const .align 128 .b8 cm$$[{PART * 16}] = {{{values}}};"
            self.before = f"mov.u64 %d51, cm$$; and.b32 %t2, %me, 15; mad.wide.u32 %d51, %t2, {PART}, %d51;"
            self.base = "%d51"
        elif word == "param":
            self.blob = True
            self.base = "blob"


def form(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """A form whose memory operands are in one space."""
    name = row.name.split(".")[0]
    space = space_word(mods)
    if space == "param::func" or (space == "param" and name == "st"):
        return _func_param(row, mods, types, rng)
    opcode = opcode_text(row, mods, types)
    o = arith.Operands()
    atomic = name in ("atom", "red")
    place = Place(space, rng, atomic)
    wide = BITS.get(types[0] if types else "b8", 8) * max(arith._vector_length(mods), 1) > 128
    if (
        "nc" in mods
        or name in ("ldu", "applypriority", "discard")
        or "mmio" in mods
        or ((wide or (atomic and arith._vector_length(mods))) and not space)
    ):
        place = Place("global", rng)
    before = [place.before]
    hint = False
    operands = [s for s in row.operands if not (s.when and not any(w in mods for w in s.when)) and not s.optional]
    for spec in operands:
        kind = arith.kind_of(spec, types)
        if spec.role == "m":
            size = BITS.get(types[0] if types else "b32", 32) // 8 * max(arith._vector_length(mods), 1)
            offset = (
                rng.randrange(PART // max(size, 8)) * max(size, 8)
                if size <= PART and name not in ("prefetch", "prefetchu", "applypriority", "discard")
                else 0
            )
            o.texts.append(f"[{place.base}+{offset}]" if offset else f"[{place.base}]")
            o.lines.append(f"// at {offset}")
            place_offset = offset
        elif spec.when and "L2::cache_hint" in spec.when:
            hint = True
            o.texts.append("%d50")
        elif spec.role == "i" and name in ("applypriority", "discard"):
            o.texts.append("128")
        elif atomic and kind == "b128" and spec.role == "s":
            o.texts.append(o.source("b128"))
        elif not arith.operand(o, spec, row, mods, types, rng):
            return None
    if name in ("applypriority", "discard"):
        before.append("and.b64 %d51, %mem, -128;")
        o.texts[0] = "[%d51]"
    if hint:
        before.append(_POLICY)
    text = f"{opcode} {', '.join(o.texts)};"
    lines = [x for x in o.lines if not x.startswith("//")]
    body = "\n".join([x for x in (*before, *lines, text, place.after, *o.stores()) if x])
    result = Form(
        opcode,
        text,
        body,
        o.sources,
        o.kinds(),
        row.key,
        module=place.module,
        local=place.local,
        cluster=place.cluster,
        blocks=place.cluster,
        blob=place.blob,
    )
    if place.base not in ("blob",) and not place.module:
        result.memory = types[-1] if types and (atomic or name in ("ld", "st", "ldu")) else "b8"
    if name == "discard":
        result.ignore_memory = True
    if atomic and "cas" in mods:
        result.extra["cas"] = str(place_offset)
    return result


def _func_param(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """Parameter variables of a call: the callee loads, the caller stores."""
    opcode = opcode_text(row, mods, types)
    o = arith.Operands()
    name = row.name
    size = BITS[types[0]] // 8 * max(arith._vector_length(mods), 1)
    if size > PART:
        return None  # larger than the parameter variable; ptxas accepts no such vector
    offset = 0
    for spec in row.operands:
        if spec.when and not any(w in mods for w in spec.when):
            continue
        if spec.role == "m":
            offset = rng.randrange(max(PART // max(size, 8), 1)) * max(size, 8)
            o.texts.append(f"[{'pa' if name == 'ld' else 'ca'}+{offset}]")
        elif spec.when:
            o.texts.append("%d50")
        elif not arith.operand(o, spec, row, mods, types, rng):
            return None
    text = f"{opcode} {', '.join(o.texts)};"
    hint = _POLICY if any("cache_hint" in m for m in mods) else ""
    own = range(offset // 8 * 8, -(-(offset + size) // 8) * 8, 8) if name == "st" else range(0)
    element, unit = types[0].replace("s", "b").replace("u", "b").replace("f", "b"), BITS[types[0]] // 8
    registers = (
        ".reg .b8 %b<48>; .reg .b16 %h<64>, %t0; .reg .b32 %r<64>, %t1; .reg .b64 %d<64>, %out; "
        ".reg .b128 %q<48>; .reg .pred %p<64>;"
    )
    if name == "ld":
        inner = " ".join([hint, text, *o.stores()])
    else:
        inner = " ".join(
            [f"ld.param.b64 %d52, [pa+{k}]; st.global.b64 [%out+{k}], %d52;" for k in range(0, PART, 8) if k not in own]
        )
        reg = register(element, 45)
        inner += " ".join(
            [
                f" ld.param.{element} {reg}, [pa+{offset + k}]; st.global.{element} [%out+{offset + k}], {reg};"
                for k in range(0, size, unit)
            ]
        )
        hint += " ".join(o.lines)
    module = (
        f".func f$$(.param .align 64 .b8 pa[{PART}], .param .b64 po) {{ {registers} ld.param.b64 %out, [po]; "
        f"{inner} ret; }}"
    )
    fill = " ".join(
        [f"ld.global.b64 %d52, [%mem+{k}]; st.param.b64 [ca+{k}], %d52;" for k in range(0, PART, 8) if k not in own]
    )
    target = "%out" if name == "ld" else "%mem"
    body = (
        f"{hint if name == 'st' else ''}\n{{ .param .align 64 .b8 ca[{PART}]; .param .b64 co; "
        f"{fill} {text if name == 'st' else ''}\nst.param.b64 [co], {target}; call.uni f$$, (ca, co); }}"
    )
    return Form(opcode, text, body, o.sources, o.kinds(), row.key, module=module, memory=types[-1])


# --------------------------------------------------------------------------- addresses and the like


def _declared() -> str:
    return ".shared .align 16 .b8 sv[64]; .local .align 16 .b8 lv[64];"


def _address(space: str, bits: int) -> str:
    """Lines that leave an address of a space in %d51 (and %r51)."""
    word = space.split("::")[0]
    source = {"global": "gv$$", "shared": "sv", "local": "lv", "const": "cv$$", "param": "blob"}[word]
    return f"mov.u64 %d51, {source}; cvt.u32.u64 %r51, %d51;"


def special(row: Row, mods: list[str], types: tuple[str, ...], rng: random.Random) -> Form | None:
    """Address arithmetic and the stack, in separate kernels."""
    opcode = opcode_text(row, mods, types)
    name = row.name.split(".")[0]
    module = ".global .align 16 .b8 gv$$[64]; .const .align 16 .b8 cv$$[64] = {7, 8, 9};"
    base = {"module": module, "local": _declared(), "row": row.key}
    if name in ("cvta", "isspacep"):
        return _windows(opcode, row, mods, types, base, rng)
    if name in ("mapa", "getctarank"):
        return _ranks(opcode, name, mods, types, base)
    if name == "createpolicy":
        return _policy(opcode, row, mods)
    if name in ("stacksave", "stackrestore", "alloca"):
        return _stack(opcode, name, types)
    return None


def _windows(
    opcode: str, row: Row, mods: list[str], types: tuple[str, ...], base: dict[str, str], rng: random.Random
) -> Form | None:
    """Generic addresses: whether they reach the variable again, and the space that isspacep reports."""
    space = space_word(mods)
    word = space.split("::")[0]
    if row.name == "isspacep":
        other = rng.choice(["global", "shared", "local", "const"])
        text = f"{opcode} %p40, %d51;"
        convert = f"cvta.{other}.u64 %d51, %d51;"
        body = f"{_address(other, 64)} {convert} {text} selp.u32 %t1, 1, 0, %p40; st.global.u32 [%out], %t1;"
        return Form(opcode, text, body, [], ["pred"], **base)  # type: ignore[arg-type]
    if types[0] == "u32":  # half an address: the lower word of the 64-bit form's result
        text = f"{opcode} %r40, %r51;"
        body = f"{_address(space, 32)} {text} sub.u32 %r41, %r40, %r51; st.global.b32 [%out], %r41;"
        return Form(opcode, text, body, [], ["b32"], blob=word == "param", **base)  # type: ignore[arg-type]
    blob = word == "param"
    if row.name == "cvta":
        text = f"{opcode} %d40, %d51;"
        check = (
            "ld.b8 %r40, [%d40];"
            if word in ("const", "param")
            else "mov.u32 %r41, 77; st.b8 [%d40], %r41; ld.b8 %r40, [%d40];"
        )
        body = f"{_address(space, 64)} {text} {check} st.global.b32 [%out], %r40;"
        return Form(opcode, text, body, [], ["b32"], blob=blob, **base)  # type: ignore[arg-type]
    text = f"{opcode} %d40, %d54;"
    load = (
        f"ld.{word}.b8 %r40, [%d40];"
        if word in ("const", "param")
        else f"mov.u32 %r41, 77; st.{word}.b8 [%d40], %r41; ld.{word}.b8 %r40, [%d40];"
    )
    body = (
        f"{_address(space, 64)} cvta.{word}.u64 %d54, %d51; {text} sub.u64 %d41, %d40, %d51; "
        f"{load} st.global.b32 [%out], %r40; st.global.b64 [%out+8], %d41;"
    )
    return Form(opcode, text, body, [], ["b32", "b64"], blob=blob, **base)  # type: ignore[arg-type]


def _ranks(opcode: str, name: str, mods: list[str], types: tuple[str, ...], base: dict[str, str]) -> Form:
    """Addresses of the other block of a cluster: read what it wrote there; the rank comes back."""
    shared = any(m.startswith("shared") for m in mods)
    bits = "64" if types[0] == "u64" else "32"
    r = "d" if bits == "64" else "r"
    variable = "mov.u64 %d51, sv;" if shared else "mov.u64 %d51, sv; cvta.shared.u64 %d51, %d51;"
    setup = (
        f"{variable} cvt.u32.u64 %r51, %d51; mov.u32 %r61, %cluster_ctarank; add.u32 %r53, %r61, 40; "
        f"st.shared.u32 [sv], %r53; "
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; xor.b32 %r61, %r61, 1;"
    )
    load = "ld.shared::cluster.u32" if shared else "ld.u32"
    if name == "mapa":
        text = f"{opcode} %{r}40, %{r}51, %r61;"
        rest = f"{load} %r41, [%{r}40]; st.global.b32 [%out], %r41;"
    else:
        text = f"{opcode} %r41, %{r}52;"
        rest = (
            f"mapa{'.shared::cluster' if shared else ''}.u{bits} %{r}52, %{r}51, %r61; "
            f"{text} st.global.b32 [%out], %r41;"
        )
    body = (
        f"{setup} {text if name == 'mapa' else ''} {rest} barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    )
    return Form(opcode, text, body, [], ["b32"], cluster=2, blocks=2, **base)  # type: ignore[arg-type]


def _policy(opcode: str, row: Row, mods: list[str]) -> Form:
    """A policy is opaque: the test is that a load with it returns the value."""
    operands = {
        "createpolicy.fractional": "0.5",
        "createpolicy.range": "[%mem], 4096, 8192",
        "createpolicy.cvt": "%d0",
    }[row.name]
    text = f"{opcode} %d40, {operands};"
    body = (
        f"ld.global.b64 %d0, [%in]; {text} ld.global.L2::cache_hint.b32 %r40, [%mem], "
        f"{'%d50' if row.name == 'createpolicy.cvt' else '%d40'}; st.global.b32 [%out], %r40;"
    )
    if row.name == "createpolicy.cvt":
        body = f"{_POLICY} {body}"
    return Form(opcode, text, body, ["b64"], ["b32"], row.key, memory="b32")


def _stack(opcode: str, name: str, types: tuple[str, ...]) -> Form:
    """The stack of a thread: two allocations do not overlap; a restored pointer is the saved one."""
    t = types[0]
    r = "d" if t == "u64" else "r"
    rows = {"alloca": "alloca#0", "stacksave": "stacksave#0", "stackrestore": "stackrestore#0"}
    if name == "alloca":
        text = f"{opcode} %{r}40, 32, 16;"
        body = (
            f"ld.global.b32 %r0, [%in]; {text} alloca.{t} %{r}41, 16; st.local.b32 [%{r}40+4], %r0; "
            f"add.u32 %r1, %r0, 1; st.local.b32 [%{r}41], %r1; "
            f"ld.local.b32 %r2, [%{r}40+4]; ld.local.b32 %r3, [%{r}41]; st.global.b32 [%out], %r2; "
            f"st.global.b32 [%out+8], %r3; "
            f"and.b{t[1:]} %{r}42, %{r}40, 15; st.global.b{t[1:]} [%out+16], %{r}42;"
        )
        return Form(opcode, text, body, ["b32"], ["b32", "b32", f"b{t[1:]}"], rows[name])
    text = f"stacksave.{t} %{r}40;" if name == "stacksave" else f"stackrestore.{t} %{r}40;"
    body = (
        f"ld.global.b32 %r0, [%in]; stacksave.{t} %{r}40; alloca.{t} %{r}41, 32; st.local.b32 [%{r}41], "
        f"%r0; ld.local.b32 %r1, [%{r}41]; "
        f"stackrestore.{t} %{r}40; stacksave.{t} %{r}42; sub.{t} %{r}43, %{r}42, %{r}40; "
        f"st.global.b32 [%out], %r1; st.global.b{t[1:]} [%out+8], %{r}43;"
    )
    return Form(opcode, text, body, ["b32"], ["b32", f"b{t[1:]}"], rows[name])
