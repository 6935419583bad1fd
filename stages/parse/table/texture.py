"""Textures and surfaces.  Column meaning: see `stages.parse.table`.

The number of coordinates, offsets and gradients follows from the geometry (`stages.parse.textures`).
"""

_FETCH = """
{name} | f32,u32,s32,f16x2.f32 | 1d/2d/a1d/a2d/3d/cube/acube v2/v4? | dtex|p, tx2{lod}, toff2?, tcmp? | {gate}
{name} | f32,u32,s32,f16x2.s32 | 1d/2d/a1d/a2d/3d/cube/acube v2/v4? | dtex|p, tx2{lod}, toff2? | {gate}
"""
_MULTISAMPLE = """
{name} | f32,u32,s32,f16x2.f32,s32 | 2dms/a2dms v2/v4? | dtex|p, tx2, toff2? | v3.2 t30
"""

ROWS = (
    _FETCH.format(name="tex", lod="", gate="v1.0")
    + _FETCH.format(name="tex.base", lod="", gate="v3.1 t20")
    + _FETCH.format(name="tex.level", lod=", s2", gate="v3.1 t20")
    + _FETCH.format(name="tex.grad", lod=", tgrad, tgrad", gate="v3.1 t20")
    + _MULTISAMPLE.format(name="tex")
    + _MULTISAMPLE.format(name="tex.base")
    + """
tld4 | f32,u32,s32.f32 | r/g/b/a 2d/a2d/cube/acube v2/v4? | dtex|p, tx2, toff2?, tcmp? | v2.2 t20
txq | b32 | width/height/depth/channel_data_type/channel_order/normalized_coords/array_size/num_mipmap_levels/\
num_samples | d, mq | v1.5
txq | b32 | filter_mode/addr_mode_0/addr_mode_1/addr_mode_2 | d, mq | v1.5
txq | b32 | force_unnormalized_coords | d, ms | v3.1
txq.level | b32 | width/height/depth | d, mq, s:u32 | v4.3 t30
suld.b | b8,b16,b32,b64 | 1d/2d/3d/a1d/a2d ca/cg/cs/cv? v2/v4? trap/clamp/zero | dV~, tx:b32 | v1.5
sust.b | b8,b16,b32,b64 | 1d/2d/3d/a1d/a2d wb/cg/cs/wt? v2/v4? trap/clamp/zero | tx:b32, sV~ | v1.5
sust.p | b32 | 1d/2d/3d/a1d/a2d wb/cg/cs/wt? v2/v4? trap/clamp/zero | tx:b32, sV | v1.5 t20
sured.b | u32,u64,s32,b32,s64 | add/min/max/and/or 1d/2d/3d trap/clamp/zero | tx:b32, s~ | v2.0 t20
sured.p | b32,b64 | add/min/max/and/or 1d/2d/3d trap/clamp/zero | tx:b32, s~ | v2.0 t20
suq | b32 | width/height/depth/channel_data_type/channel_order/array_size/memory_layout | d, mq | v1.5
"""
)
