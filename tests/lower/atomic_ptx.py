"""One kernel with every atomic operation, each thread on its own address, in global, shared and generic space."""

from __future__ import annotations

FORMS = (
    *((op, t) for op in ("add", "min", "max") for t in ("u32", "s32", "u64", "s64") if (op, t) != ("add", "s64")),
    ("inc", "u32"), ("dec", "u32"), ("add", "f32"), ("add", "f64"), ("add", "f16x2"), ("add", "f16"),
    *((op, t) for op in ("and", "or", "xor", "exch", "cas") for t in ("b32", "b64")), ("cas", "b16"),
)  # fmt: skip
SPACES = ("global", "shared", "generic global", "generic shared")
#: 8-byte slots per thread: (old value, memory after) for every form and space.
SLOTS = 2 * len(FORMS) * len(SPACES)


def text(target: str) -> str:
    """The kernel ``k(in, out)``: per thread 3 slots of input (memory, operand, new value of a swap)."""
    lines = []
    at = 0
    for op, t in FORMS:
        noftz = ".noftz" if t.startswith("f16") else ""
        width = 64 if t.endswith("64") else 16 if t in ("f16", "b16") else 32
        name = {64: "%x", 32: "%w", 16: "%h"}[width]
        if t in ("f32", "f64"):
            name = {"f32": "%f", "f64": "%d"}[t]
        for space in SPACES:
            base = {"global": "%mem", "shared": "%s", "generic global": "%mem", "generic shared": "%gs"}[space]
            own = "shared" if "shared" in space else "global"
            where = f".{space}" if " " not in space else ""
            address = "%sh" if own == "shared" else "%mem"
            lines.append(f"st.{own}.b64 [{address}], %m;")
            extra = f", {name}2" if op == "cas" else ""
            if op == "cas":
                lines.append(
                    f"and.b32 %c, %id, 1; setp.eq.u32 %p, %c, 0; selp.b64 %y, %m, %v, %p; {_set(name, 1, '%y')} "
                    f"{_set(name, 2, '%n')}"
                )
            else:
                lines.append(_set(name, 1, "%v"))
            reg = "%sh" if base == "%s" else base
            lines.append(f"atom{where}.{op}{noftz}.{t} {name}0, [{reg}], {name}1{extra};")
            lines.append(
                f"{_get(name)} st.global.b64 [%o+{at}], %y; ld.{own}.b64 %y, [{address}]; st.global.b64 "
                f"[%o+{at + 8}], %y;"
            )
            at += 16
    regs = (
        ".reg .b64 %x<3>, %m, %v, %n, %y, %o, %mem, %gs, %i, %a; .reg .b32 %w<3>, %id, %sh, %c, %t; .reg .b16 "
        "%h<3>; .reg .f32 %f<3>; .reg .f64 %d<3>; .reg .pred %p;"
    )
    head = f"""
.version 8.0
.target {target}
.address_size 64
.global .align 8 .b64 cell[64];
.visible .entry k(.param .u64 in, .param .u64 out)
{{ {regs} .shared .align 8 .b64 buf[64];
mov.u32 %id, %tid.x;
ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
mul.wide.u32 %a, %id, 24; add.s64 %i, %i, %a; mul.wide.u32 %a, %id, {8 * SLOTS}; add.s64 %o, %o, %a;
ld.global.b64 %m, [%i]; ld.global.b64 %v, [%i+8]; ld.global.b64 %n, [%i+16];
mov.u64 %mem, cell; mul.wide.u32 %a, %id, 8; add.s64 %mem, %mem, %a;
mov.u32 %sh, buf; shl.b32 %t, %id, 3; add.s32 %sh, %sh, %t; cvt.u64.u32 %gs, %sh; cvta.shared.u64 %gs, %gs;
"""
    return head + "\n".join(lines) + "\nret;\n}\n"


def _set(name: str, i: int, x: str) -> str:
    """Register ``i`` of a kind from the low bits of a 64-bit one."""
    return {
        "%x": f"mov.b64 %x{i}, {x};", "%w": f"cvt.u32.u64 %w{i}, {x};", "%h": f"cvt.u16.u64 %h{i}, {x};",
        "%f": f"cvt.u32.u64 %t, {x}; mov.b32 %f{i}, %t;", "%d": f"mov.b64 %d{i}, {x};",
    }[name]  # fmt: skip


def _get(name: str) -> str:
    """%y from register 0 of a kind."""
    return {
        "%x": "mov.b64 %y, %x0;", "%w": "cvt.u64.u32 %y, %w0;", "%h": "cvt.u64.u16 %y, %h0;",
        "%f": "mov.b32 %t, %f0; cvt.u64.u32 %y, %t;", "%d": "mov.b64 %y, %d0;",
    }[name]  # fmt: skip
