"""Special registers: where each SM holds the value. Measured with ptxas 13.0.88 on sm_75, 80, 89, 90, 100 unless a
comment says otherwise."""

from __future__ import annotations

from ir_format.diag import CompileError
from ir_format.model import NEG, RZ, Const, Imm, Name, Reg
from ir_format.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.lower.builder import Builder

_XYZ = {"x": 0, "y": 1, "z": 2}

# Read by S2R.
_S2R = {
    "%laneid": "SR_LANEID",
    "%lanemask_eq": "SR_EQMASK", "%lanemask_lt": "SR_LTMASK", "%lanemask_le": "SR_LEMASK", "%lanemask_gt": "SR_GTMASK",
    "%lanemask_ge": "SR_GEMASK",
    "%smid": "SR_VIRTUALSMID", "%cluster_ctarank": "SR_CgaCtaId",
    **{f"%tid.{c}": f"SR_TID.{c.upper()}" for c in _XYZ},
    **{f"%ctaid.{c}": f"SR_CTAID.{c.upper()}" for c in _XYZ},
}  # fmt: skip

# Read by CS2R: (name, 64 bits?). The high words are read by CS2R.32 of the HI register.
_CS2R = {
    "%clock": ("SR_CLOCKLO", 1), "%clock_hi": ("SR_CLOCKHI", 1), "%clock64": ("SR_CLOCKLO", 2),
    "%globaltimer": ("SR_GLOBALTIMERLO", 2), "%globaltimer_lo": ("SR_GLOBALTIMERLO", 1),
    "%globaltimer_hi": ("SR_GLOBALTIMERHI", 1),
    **{f"%pm{i}": (f"SR_PM{i}", 1) for i in range(8)},
    **{f"%pm{i}_64": (f"SR_PM{i}", 2) for i in range(8)},
}  # fmt: skip

# Fields of a special register: (register, first bit, bits).
_FIELDS = {"%warpid": ("SR_VIRTID", 8, 7), "%nwarpid": ("SR_VIRTCFG", 8, 8)}

# sm_100+: these are at c[0][SR_CgaSize * -0xa0 + offset].
_CGA_STEP = -0xA0
_CGA_100 = {
    "%dynamic_smem_size": 0x2AC, "%cluster_nctarank": 0x2CC, "aggr": 0x2BC, "%reserved_smem_offset_end": 0x278,
    "%reserved_smem_offset_1": 0x27C,
    **{f"%cluster_nctaid.{c}": 0x2A0 + 4 * i for c, i in _XYZ.items()},  # y, z: guessed from x
    **{f"%nclusterid.{c}": 0x2C0 + 4 * i for c, i in _XYZ.items()},
    **{f"recip.{c}": 0x2B0 + 4 * i for c, i in _XYZ.items()},
    **{f"%envreg{i}": 0x250 + 4 * i for i in range(15)},  # 0..14 are known to be there; other values follow
}  # fmt: skip
_CGA_90 = {
    "%dynamic_smem_size": 0x2C, "%cluster_nctarank": 0x188, "aggr": 0x13C, "%reserved_smem_offset_end": 0x68,
    "%reserved_smem_offset_1": 0x6C,
    **{f"%cluster_nctaid.{c}": 0x144 + 4 * i for c, i in _XYZ.items()},
    **{f"%nclusterid.{c}": 0x15C + 4 * i for c, i in _XYZ.items()},
    **{f"recip.{c}": 0x150 + 4 * i for c, i in _XYZ.items()},
}  # fmt: skip

# sm_80..89: ends of the shared memory that is reserved for the driver (measured). Cooperative groups of several warps
# have their barriers there.
_RESERVED_80 = {"%reserved_smem_offset_end": 0x120, "%reserved_smem_offset_1": 0x124}


def read_special(b: Builder, name: str, width: int) -> Reg:
    """The value of a PTX special register in a new Reg of ``width`` words (a predicate for %is_explicit_cluster)."""
    if name == "%is_explicit_cluster":
        p = b.p()
        b.emit("ISETP.NE.AND", (p, Reg("P", -1)), (_bank(b, b.ctx.target.bank0.is_explicit_cluster), RZ, Reg("P", -1)))
        return p
    got = _read(b, name)
    if got.width == width:
        return got
    out = b.r(width)
    b.copy(out, got)
    return out


def _read(b: Builder, name: str) -> Reg:
    bank = b.ctx.target.bank0
    if name in _S2R:
        if name == "%ctaid.z":
            b.ctx.unit.attrs["ctaidz_used"] = 1
        return s2r(b, _S2R[name])
    if name in _CS2R:
        reg, width = _CS2R[name]
        d = b.r(width)
        b.emit("CS2R" if width == 2 else "CS2R.32", d, (Name("N", reg),))
        return d
    if name == "%nwarpid" and not b.has("clusters"):
        return b.in_reg(Imm("I", b.ctx.target.max_warps))
    if name in _FIELDS:
        reg, low, bits = _FIELDS[name]
        t, d = b.r(), b.r()
        b.emit("SHF.R.U32.HI", t, (RZ, Imm("I", low), s2r(b, reg)))
        b.emit("SGXT.U32", d, (t, Imm("I", bits)))
        return d
    base, _, comp = name.partition(".")
    if comp == "w":  # vectors of launch values have three components; the fourth is 0
        return b.in_reg(Imm("I", 0))
    if base == "%ntid" and comp in _XYZ:
        return _bank(b, bank.ntid[_XYZ[comp]])
    if base == "%nctaid" and comp in _XYZ:
        return _bank(b, bank.nctaid[_XYZ[comp]])
    if name == "%nsmid":
        return _bank(b, bank.nsmid)
    if name == "%gridid":
        return _bank(b, bank.gridid, 2)
    if name == "%current_graph_exec":
        return _bank(b, bank.graph_exec, 2)
    if name.startswith("%reserved_smem_offset_"):
        b.ctx.unit.attrs["reserved_smem"] = 1  # an attribute of the kernel (measured)
    if name in _RESERVED_80 and not b.has("clusters"):
        return _bank(b, _RESERVED_80[name])
    if (
        name in ("%total_smem_size", "%reserved_smem_offset_begin") and not b.has("clusters")
    ) or name == "%total_smem_size":
        total = s2r(b, "SR_SMEMSZ")
        if bank.smem_bias < 0:
            return total
        d = b.r()
        b.emit("IADD3", d, (total, _bank(b, bank.smem_bias)._replace(flags=1), RZ))
        return d
    if name == "%aggr_smem_size" and b.has("clusters"):
        from stages.lower.rules.integer import minmax

        d = b.r()
        minmax(b, d, "u32", s2r(b, "SR_SMEMSZ"), _cga(b, "aggr"), False)
        return d
    if base == "%clusterid" and comp in _XYZ and b.has("clusters"):
        return _cluster_index(b, comp)
    if base == "%cluster_ctaid" and comp in _XYZ and b.has("clusters"):
        d = b.r()
        q = _cluster_index(b, comp)
        n = _cga(b, f"%cluster_nctaid.{comp}")
        first = b.r()
        b.emit("IMAD", first, (q, n, RZ))
        b.emit("IADD3", d, (s2r(b, f"SR_CTAID.{comp.upper()}"), first._replace(flags=NEG), RZ))
        return d
    if name.startswith("%envreg") and name[7:].isdigit() and bank.envreg0 >= 0 and int(name[7:]) < 32:
        return _bank(b, bank.envreg0 + 4 * int(name[7:]))
    if name == "%dynamic_smem_size" and not b.has("clusters"):
        return _bank(b, bank.dyn_smem)
    if b.has("clusters") and name in (_CGA_100 if b.has("cluster-values-indexed") else _CGA_90) and name[0] == "%":
        return _cga(b, name)
    raise CompileError(f"Special register '{name}' not supported by orias on .target '{b.ctx.target_name}'", b.line)


def s2r(b: Builder, name: str) -> Reg:
    """S2R of a register by its SASS name."""
    d = b.r()
    b.emit("S2R", d, (Name("N", name),))
    return d


def _bank(b: Builder, offset: int, width: int = 1) -> Reg:
    from stages.lower.abi.frame import load_const

    d = b.r(width)
    load_const(b, d, 0, offset)
    return d


def _cga(b: Builder, name: str) -> Reg:
    """A launch value of clusters."""
    if not b.has("cluster-values-indexed"):
        return _bank(b, _CGA_90[name])
    n, t, d = b.r(), b.r(), b.r()
    b.emit("CS2R.32", n, (Name("N", "SR_CgaSize"),))
    b.emit("IMAD", t, (n, Imm("I", _CGA_STEP & 0xFFFFFFFF), RZ))
    b.emit("LDC", d, (Const("C", 0, _CGA_100[name], 1, t),))
    return d


def _cluster_index(b: Builder, comp: str) -> Reg:
    """ctaid / cluster size, with the reciprocal from the driver, as in ptxas (exact for the sizes that exist)."""
    f, g, d = b.r(), b.r(), b.r()
    b.emit("I2FP.F32.U32", f, (s2r(b, f"SR_CTAID.{comp.upper()}"),))
    b.emit("FMUL", g, (f, _cga(b, f"recip.{comp}")))
    b.emit("F2I.U32.TRUNC.NTZ", d, (g,))
    return d
