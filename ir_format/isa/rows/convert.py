"""Conversions."""

from __future__ import annotations

TEXT = r"""
enum isrc   = U8:1 S8:1 U16:1 S16:1 U32:1 _:1 U64:2 S64:2
enum fsize  = ? F16:1 _:1 F64:2
F2F         104 AB             d <- b-|                    ; .FTZ@80 .{? F16 F32 ? BF16 ? ? ?}@75-77 .{? F16 F32 ? BF16 ? ? ?}@84-86 .rnd@78-79 ; cls=xu sb=WR imm=f32
F2F         110 AB             d/dt <- b/st-|              ; .FTZ@80 .{? F16:1 F32:1 F64:2 BF16:1 ? ? ?}:dt@75-77 .{? F16:1 F32:1 F64:2 BF16:1 ? ? ?}:st@84-86 .rnd@78-79 ; cls=xu sb=WR imm=f64
I2F         106 AB             d <- b                      ; .{? F16 _ ? BF16 ? ? ?}@75-77 .{U8 S8 U16 S16 U32 _ ? ?}@74+84-85 .rnd@78-79     ; cls=xu sb=WR
I2F         112 AB             d/dt <- b/st                ; .{? F16:1 _:1 F64:2 BF16:1 ? ? ?}:dt@75-77 .{U8:1 S8:1 U16:1 S16:1 U32:1 _:1 U64:2 S64:2}:st@74+84-85 .rnd@78-79 ; cls=xu sb=WR
F2I         105 AB             d <- b-|                    ; .FTZ@80 .{U8 S8 U16 S16 U32 _ ? ?}@72+75-76 .{? F16 _ ? BF16 ? ? ?}@84-86 .{_ FLOOR CEIL TRUNC}@78-79 .NTZ@77 ; cls=xu sb=WR imm=f32
F2I         111 AB             d/dt <- b/st-|              ; .FTZ@80 .{U8:1 S8:1 U16:1 S16:1 U32:1 _:1 U64:2 S64:2}:dt@72+75-76 .{? F16:1 _:1 F64:2 BF16:1 ? ? ?}:st@84-86 .{_ FLOOR CEIL TRUNC}@78-79 .NTZ@77 ; cls=xu sb=WR imm=f64
FRND        107 AB             d <- b-|                    ; .FTZ@80 .{_ FLOOR CEIL TRUNC}@78-79 ; cls=xu sb=WR imm=f32
I2FP        045 AB  sm=86+     d <- b                      ; .{? ? F32 ? ? ? ? ?}@75-77 .{? ? ? ? U32 S32 ? ?}@74+84-85 .rnd@78-79               ; cls=alu
F2FP        03e ABC sm=80+     d <- a b                    ; .F16 .F32 .PACK_AB ; cls=alu imm=f32
"""
