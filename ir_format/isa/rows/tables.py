"""Value tables and macros that the rows share. Provenance: measured with nvdisasm 13.5 unless a comment says
otherwise."""

from __future__ import annotations

TEXT = r"""
enum h2f    = _ F32 H0_H0 H1_H1
enum rnd    = _ RM RP RZ
enum bop    = AND OR XOR ?
enum icmp   = F LT EQ LE GT NE GE T
enum fcmp   = F LT EQ LE GT NE GE NUM NAN LTU EQU LEU GTU NEU GEU T
enum msize  = U8:1 S8:1 U16:1 S16:1 _:1 64:2 128:4 <75>U.128:4 <80+>?
enum csize  = U8:1 S8:1 U16:1 S16:1 _:1 64:2 ? ?
enum evict  = EF _ EL LU EU NA ? ?
enum h2     = _ ? H0_H0 H1_H1
enum half   = _ H1_H1 H0_H0 ?
enum b4     = _ B1 B2 B3
enum order  = _ ? ? ? CONSTANT STRONG.SM ? STRONG.GPU MMIO.GPU ? STRONG.SYS ? MMIO.SYS ? ? ?
enum scope75 = CTA SM GPU SYS
enum order75 = CONSTANT _ STRONG MMIO
"""
