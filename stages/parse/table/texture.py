"""Textures and surfaces.  Column meaning: see `stages.parse.table`."""

ROWS = """
tex | f32,u32,s32,f16x2.f32,s32 | 1d/2d/3d/a1d/a2d/cube/acube v4/v2? | dtex, tx, toff?, tcmp? | v1.0
tex.base | f32,u32,s32,f16x2.f32,s32 | 1d/2d/3d/a1d/a2d/cube/acube/2dms/a2dms v4/v2? | dtex, tx, toff?, tcmp? | v3.0 t20
tex.level | f32,u32,s32,f16x2.f32,s32 | 1d/2d/3d/a1d/a2d/cube/acube/2dms/a2dms v4/v2? | dtex, tx, s:lod, toff?, tcmp? | v3.0 t20
tex.grad | f32,u32,s32,f16x2.f32,s32 | 1d/2d/3d/a1d/a2d/cube/acube v4/v2? | dtex, tx, tgrad, tgrad, toff?, tcmp? | v3.0 t20
tld4 | f32,u32,s32,f16x2.f32 | r/g/b/a 2d/a2d/cube/acube v4/v2? | dtex, tx, toff?, tcmp? | v2.2 t20
txq | b32 | width/height/depth/channel_data_type/channel_order/normalized_coords/filter_mode/addr_mode_0/addr_mode_1/addr_mode_2/force_unnormalized_coords/array_size/num_mipmap_levels/num_samples | d, mq | v1.5
txq.level | b32 | width/height/depth/array_size | d, mq, s:b32 | v4.3 t30
suld.b | b8,b16,b32,b64 | 1d/2d/3d/a1d/a2d $cop? v2/v4? trap/clamp/zero | dV~, tx | v1.5 t20
sust.b | b8,b16,b32,b64 | 1d/2d/3d/a1d/a2d $cop? v2/v4? trap/clamp/zero | tx, sV~ | v1.5 t20
sust.p | b32,u32,s32,f32 | 1d/2d/3d $cop? v2/v4? trap/clamp/zero | tx, sV | v1.5 t20
sured.b | u32,u64,s32,b32,s64 | add/min/max/and/or 1d/2d/3d trap/clamp/zero | tx, s | v3.0 t20
sured.p | b32,b64 | add/min/max/and/or 1d/2d/3d trap/clamp/zero | tx, s | v3.0 t20
suq | b32 | width/height/depth/channel_data_type/channel_order/array_size/memory_layout | d, mq | v1.5
"""
