"""Whole modules that exercise directives, declarations, scopes, calls and headers: some good, most with one fault.

`CASES` maps a name to PTX text; `tests/parse/agreement.py --modules` runs both front ends over them.
"""

from __future__ import annotations

_HEAD = ".version {version}\n.target {target}\n.address_size 64\n"


def _module(body: str, version: str = "9.0", target: str = "sm_90") -> str:
    return _HEAD.format(version=version, target=target) + body


def _entry(
    body: str,
    version: str = "9.0",
    target: str = "sm_90",
    params: str = ".param .u64 p",
    before: str = "",
    hints: str = "",
) -> str:
    declared = ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .b16 %h<4>;"
    return _module(
        f"{before}\n.visible .entry k({params}) {hints}\n{{\n{declared}\n{body}\nret;\n}}\n", version, target
    )


_HEADERS = {
    "empty": "",
    "no_target": ".version 9.0\n",
    "no_version": ".target sm_90\n",
    "header_only": _module(""),
    "bad_version": ".version 9.9\n.target sm_90\n",
    "bad_version_entry": ".version 9.9\n.target sm_90\n.entry k() { ret; }\n",
    "version_word": ".version nine\n.target sm_90\n",
    "version_integer": ".version 9\n.target sm_90\n",
    "bad_target": ".version 9.0\n.target sm_99\n",
    "old_version_target": ".version 7.0\n.target sm_90\n.entry k() { ret; }\n",
    "old_version_target_no_entry": ".version 7.0\n.target sm_90\n",
    "target_options": ".version 9.0\n.target sm_90, texmode_independent\n.entry k() { ret; }\n",
    "target_conflict": ".version 9.0\n.target sm_90, texmode_independent, texmode_unified\n.entry k() { ret; }\n",
    "target_unknown_option": ".version 9.0\n.target sm_90, turbo\n.entry k() { ret; }\n",
    "target_map_f64": ".version 9.0\n.target sm_90, map_f64_to_f32\n.entry k() { ret; }\n",
    "target_debug": ".version 9.0\n.target sm_90, debug\n.entry k() { ret; }\n",
    "address_size_32": ".version 9.0\n.target sm_90\n.address_size 32\n.entry k() { ret; }\n",
    "address_size_16": ".version 9.0\n.target sm_90\n.address_size 16\n.entry k() { ret; }\n",
    "address_size_old": ".version 2.0\n.target sm_20\n.address_size 64\n.entry k() { ret; }\n",
    "no_address_size": ".version 9.0\n.target sm_90\n.entry k() { ret; }\n",
    "two_targets": ".version 9.0\n.target sm_90\n.target sm_80\n.entry k() { ret; }\n",
    "two_versions": ".version 9.0\n.version 8.0\n.target sm_90\n.entry k() { ret; }\n",
    "compute_target": ".version 9.0\n.target compute_90\n.entry k() { ret; }\n",
    "sm_10": ".version 1.4\n.target sm_10\n.entry k() { ret; }\n",
    "non_ascii": _module("// caf\xe9\n.entry k() { ret; }\n"),
    "nul": _module("\0.entry k() { ret; }\n"),
    "open_comment": _module("/* .entry k() { ret; }\n"),
    "comment_in_string": _module('.file 1 "a//b.cu"\n.entry k() { ret; }\n'),
    "crlf": _module(".entry k()\r\n{\r\n ret;\r\n}\r\n"),
    "junk": _module("hello\n"),
    "stray_brace": _module("}\n"),
    "stray_semicolon": _module(";\n"),
    "open_body": _module(".entry k() { ret;\n"),
    "open_params": _module(".entry k( { ret; }\n"),
    "tab_line_marker": _module('# 7 "x.h"\n.entry k() { frob; }\n'),
}

_DECLARATIONS = {
    "global": _module(
        ".global .u32 a; .global .align 8 .b8 b[16]; .visible .global .f32 c = 1.5; .entry k() { ret; }\n"
    ),
    "global_twice": _module(".global .u32 a;\n.global .u32 a;\n.entry k() { ret; }\n"),
    "global_extern_then_def": _module(".extern .global .u32 a;\n.global .u32 a;\n.entry k() { ret; }\n"),
    "global_visible_then_extern": _module(".visible .global .u32 a;\n.extern .global .u32 a;\n.entry k() { ret; }\n"),
    "global_extern_type_differs": _module(".extern .global .u32 a;\n.visible .global .u64 a;\n.entry k() { ret; }\n"),
    "global_pred": _module(".global .pred a;\n.entry k() { ret; }\n"),
    "global_no_type": _module(".global a;\n.entry k() { ret; }\n"),
    "global_bad_type": _module(".global .q32 a;\n.entry k() { ret; }\n"),
    "global_two_types": _module(".global .u32 .u32 a;\n.entry k() { ret; }\n"),
    "global_align_3": _module(".global .align 3 .u32 a;\n.entry k() { ret; }\n"),
    "global_align_0": _module(".global .align 0 .u32 a;\n.entry k() { ret; }\n"),
    "global_align_small": _module(".global .align 1 .u32 a;\n.entry k() { ret; }\n"),
    "global_dim_0": _module(".global .u32 a[0];\n.entry k() { ret; }\n"),
    "global_dim_negative": _module(".global .u32 a[-1];\n.entry k() { ret; }\n"),
    "global_unsized": _module(".global .u32 a[];\n.entry k() { ret; }\n"),
    "global_unsized_init": _module(".global .u32 a[] = {1,2,3};\n.entry k() { ret; }\n"),
    "global_extern_unsized": _module(".extern .global .u32 a[];\n.entry k() { ret; }\n"),
    "shared_extern_unsized": _module(".extern .shared .align 16 .b8 a[];\n.entry k() { ret; }\n"),
    "shared_unsized": _module(".shared .align 16 .b8 a[];\n.entry k() { ret; }\n"),
    "shared_init": _module(".shared .u32 a = 1;\n.entry k() { ret; }\n"),
    "local_module": _module(".local .u32 a;\n.entry k() { ret; }\n"),
    "param_module": _module(".param .u32 a;\n.entry k() { ret; }\n"),
    "reg_module": _module(".reg .u32 a;\n.entry k() { ret; }\n"),
    "const_init": _module(".const .u32 a[2] = {1, 2};\n.entry k() { ret; }\n"),
    "init_short": _module(".global .u32 a[4] = {1, 2};\n.entry k() { ret; }\n"),
    "init_long": _module(".global .u32 a[2] = {1, 2, 3};\n.entry k() { ret; }\n"),
    "init_nested": _module(".global .u32 a[2][2] = {{1, 2}, {3, 4}};\n.entry k() { ret; }\n"),
    "init_nested_long": _module(".global .u32 a[2][2] = {{1, 2, 3}, {3, 4}};\n.entry k() { ret; }\n"),
    "init_flat": _module(".global .u32 a[2][2] = {1, 2, 3, 4};\n.entry k() { ret; }\n"),
    "init_too_deep": _module(".global .u32 a[2] = {{1}, {2}};\n.entry k() { ret; }\n"),
    "init_scalar_braces": _module(".global .u32 a = {1};\n.entry k() { ret; }\n"),
    "init_float_in_int": _module(".global .u32 a = 1.5;\n.entry k() { ret; }\n"),
    "init_int_in_float": _module(".global .f32 a = 1;\n.entry k() { ret; }\n"),
    "init_f16": _module(".global .f16 a = 1.0;\n.entry k() { ret; }\n"),
    "init_wide": _module(".global .u8 a = 300;\n.entry k() { ret; }\n"),
    "init_address": _module(".global .u32 a; .global .u64 b = a; .entry k() { ret; }\n"),
    "init_address_offset": _module(".global .u32 a[4]; .global .u64 b[2] = {a+4, generic(a)+8}; .entry k() { ret; }\n"),
    "init_address_narrow": _module(".global .u32 a; .global .u32 b = a; .entry k() { ret; }\n"),
    "init_address_float": _module(".global .u32 a; .global .f64 b = a; .entry k() { ret; }\n"),
    "init_address_unknown": _module(".global .u64 b = nothing;\n.entry k() { ret; }\n"),
    "init_address_shared": _module(".shared .u32 a; .global .u64 b = a; .entry k() { ret; }\n"),
    "init_mask": _module(
        ".global .u32 a; .global .u8 b[4] = {0xff(a), 0xff00(a), 0xff0000(a), 0xff000000(a)}; .entry k() { ret; }\n"
    ),
    "init_function": _module(".func f() { ret; }\n.global .u64 b = f; .entry k() { ret; }\n"),
    "init_extern": _module(".extern .global .u32 a = 1;\n.entry k() { ret; }\n"),
    "init_bits": _module(".global .f32 a = 0f3F800000; .global .f64 b = 0d3FF0000000000000; .entry k() { ret; }\n"),
    "vector": _module(".global .v4 .f32 a = {1.0, 2.0, 3.0, 4.0};\n.entry k() { ret; }\n"),
    "vector_3": _module(".global .v3 .f32 a;\n.entry k() { ret; }\n"),
    "vector_wide": _module(".global .v4 .f64 a;\n.entry k() { ret; }\n"),
    "weak": _module(".weak .global .u32 a;\n.entry k() { ret; }\n"),
    "common": _module(".common .global .u32 a;\n.entry k() { ret; }\n"),
    "common_const": _module(".common .const .u32 a;\n.entry k() { ret; }\n"),
    "managed": _module(".global .attribute(.managed) .u32 a;\n.entry k() { ret; }\n"),
    "managed_shared": _module(".shared .attribute(.managed) .u32 a;\n.entry k() { ret; }\n"),
    "attribute_unknown": _module(".global .attribute(.fast) .u32 a;\n.entry k() { ret; }\n"),
    "texref": _module(".global .texref t;\n.entry k() { ret; }\n"),
    "texref_shared": _module(".shared .texref t;\n.entry k() { ret; }\n"),
    "samplerref_unified": _module(".global .samplerref s;\n.entry k() { ret; }\n"),
    "file": _module('.file 1 "a.cu"\n.file 2 "b.cu", 12, 34\n.entry k() { ret; }\n'),
    "file_twice": _module('.file 1 "a.cu"\n.file 1 "b.cu"\n.entry k() { ret; }\n'),
    "section": _module(".entry k() { ret; }\n.section .debug_str\n{\ninfo:\n.b8 1, 2\n.b32 info+2\n}\n"),
    "section_unknown": _module(".entry k() { ret; }\n.section .frob\n{\n.b8 1\n}\n"),
    "pragma_module": _module('.pragma "nounroll";\n.entry k() { ret; }\n'),
    "pragma_module_unknown": _module('.pragma "frob";\n.entry k() { ret; }\n'),
    "alias": _module(".visible .func f() { ret; }\n.visible .func g();\n.alias g, f;\n.entry k() { ret; }\n"),
    "alias_unknown": _module(".visible .func g();\n.alias g, f;\n.entry k() { ret; }\n"),
    "const_expression": _module(
        ".global .u32 a[2*3+1] = {1+2, 7 & 3, 1 << 4, ~0, !1, 5 > 3 ? 1 : 2, -1};\n.entry k() { ret; }\n"
    ),
}

_FUNCTIONS = {
    "entry_twice": _module(".entry k() { ret; }\n.entry k() { ret; }\n"),
    "func_twice": _module(".func f() { ret; }\n.func f() { ret; }\n.entry k() { ret; }\n"),
    "func_then_entry": _module(".func f() { ret; }\n.entry f() { ret; }\n"),
    "entry_name_of_global": _module(".global .u32 f;\n.entry f() { ret; }\n"),
    "entry_return": _module(".entry (.param .u32 r) k() { ret; }\n"),
    "entry_reg_param": _module(".entry k(.reg .u32 a) { ret; }\n"),
    "entry_params": _module(
        ".entry k(.param .u32 a, .param .u64 .ptr .global .align 8 b, .param .align 8 .b8 c[24]) { ret; }\n"
    ),
    "entry_param_twice": _module(".entry k(.param .u32 a, .param .u32 a) { ret; }\n"),
    "entry_param_pred": _module(".entry k(.param .pred a) { ret; }\n"),
    "entry_param_unsized": _module(".entry k(.param .b8 a[]) { ret; }\n"),
    "entry_param_ptr_u32": _module(".entry k(.param .u32 .ptr .global a) { ret; }\n"),
    "entry_param_ptr_space": _module(".entry k(.param .u64 .ptr .frob a) { ret; }\n"),
    "entry_params_4352": _module(".entry k(.param .align 4 .b8 a[4352]) { ret; }\n", "8.0"),
    "entry_params_4356": _module(".entry k(.param .align 4 .b8 a[4356]) { ret; }\n", "8.0"),
    "entry_params_32764": _module(".entry k(.param .align 4 .b8 a[32764]) { ret; }\n"),
    "entry_params_32768": _module(".entry k(.param .align 4 .b8 a[32768]) { ret; }\n"),
    "entry_extern": _module(".extern .entry k();\n"),
    "entry_forward": _module(".entry k();\n.entry k() { ret; }\n"),
    "func_no_body": _module(".func f();\n.entry k() { ret; }\n"),
    "func_extern_body": _module(".extern .func f() { ret; }\n.entry k() { ret; }\n"),
    "func_weak": _module(".weak .func f() { ret; }\n.entry k() { ret; }\n"),
    "func_reg_params": _module(".func (.reg .u32 r) f(.reg .u32 a) { mov.u32 r, a; ret; }\n.entry k() { ret; }\n"),
    "func_noreturn": _module(".func f() .noreturn { trap; }\n.entry k() { ret; }\n"),
    "func_noreturn_result": _module(".func (.reg .u32 r) f() .noreturn { trap; }\n.entry k() { ret; }\n"),
    "func_maxntid": _module(".func f() .maxntid 32 { ret; }\n.entry k() { ret; }\n"),
    "func_pragma": _module('.entry k() .pragma "nounroll"; { ret; }\n'),
    "maxntid": _entry("", hints=".maxntid 128, 1, 1 .minnctapersm 2"),
    "maxntid_zero": _entry("", hints=".maxntid 0"),
    "maxntid_four": _entry("", hints=".maxntid 1, 1, 1, 1"),
    "maxntid_reqntid": _entry("", hints=".maxntid 32 .reqntid 32"),
    "reqntid": _entry("", hints=".reqntid 32, 2"),
    "minnctapersm_alone": _entry("", hints=".minnctapersm 2"),
    "maxnctapersm": _entry("", hints=".maxntid 32 .maxnctapersm 2"),
    "maxnreg": _entry("", hints=".maxnreg 32"),
    "maxnreg_zero": _entry("", hints=".maxnreg 0"),
    "cluster": _entry("", hints=".explicitcluster .reqnctapercluster 2, 1, 1"),
    "cluster_old": _entry("", hints=".explicitcluster", target="sm_80"),
    "clusterrank": _entry("", hints=".maxclusterrank 8"),
    "blocksareclusters": _entry("", hints=".blocksareclusters"),
    "blocksareclusters_full": _entry("", hints=".blocksareclusters .reqnctapercluster 2 .reqntid 32"),
    "hint_unknown": _entry("", hints=".frob 1"),
    "maxntid_twice": _entry("", hints=".maxntid 32 .maxntid 64"),
}

_CALL = ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; st.param.b32 [r], %x; ret; }\n"
_BODIES = {
    "call": _entry(
        "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), f, (a); ld.param.b32 %r2, [b]; }",
        before=_CALL,
    ),
    "call_no_args": _entry("{ .param .b32 b; call (b), f; }", before=_CALL),
    "call_few_args": _entry("{ .param .b32 b; call (b), f, (); }", before=_CALL),
    "call_many_args": _entry("{ .param .b32 a; .param .b32 b; call (b), f, (a, a); }", before=_CALL),
    "call_no_return": _entry("{ .param .b32 a; call f, (a); }", before=_CALL),
    "call_type": _entry("{ .param .b64 a; .param .b32 b; call (b), f, (a); }", before=_CALL),
    "call_formal": _entry("{ .param .b32 b; call (b), f, (q); }", before=_CALL, params=".param .b32 q"),
    "call_formal_return": _module(
        _CALL
        + ".func (.param .b32 r) g(.param .b32 a) { { .param .b32 b; st.param.b32 [b], 3; call (r), f, (b); } ret; }\n"
    ),
    "call_reg_for_param": _entry("{ .param .b32 b; call (b), f, (%r1); }", before=_CALL),
    "call_constant": _entry("{ .param .b32 b; call (b), f, (1); }", before=_CALL),
    "call_unknown": _entry("call nothing, (%r1);"),
    "call_entry": _entry("call k, (%r1);"),
    "call_later": _entry("call g;") + ".func g() { ret; }\n",
    "call_declared": _module(".func g();\n.entry k() { call g; ret; }\n.func g() { ret; }\n"),
    "call_extern": _module(".extern .func g();\n.entry k() { call g; ret; }\n"),
    "call_variable": _entry("call v;", before=".global .u32 v;"),
    "call_indirect": _entry("P: .callprototype _ (); call %rd1, P;"),
    "call_indirect_args": _entry(
        "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n{ .param .b32 a; .param .b32 b; call (b), "
        "%rd1, (a), P; }"
    ),
    "call_indirect_few": _entry(
        "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n{ .param .b32 b; call (b), %rd1, (), P; }"
    ),
    "call_indirect_none": _entry("call %rd1;"),
    "call_indirect_unknown": _entry("call %rd1, Q;"),
    "call_indirect_32": _entry("P: .callprototype _ (); call %r1, P;"),
    "call_targets": _entry("T: .calltargets g, h; call %rd1, T;", before=".func g() { ret; }\n.func h() { ret; }\n"),
    "call_targets_unknown": _entry("T: .calltargets g; call %rd1, T;"),
    "call_uni_guard": _entry("@%p1 call g;", before=".func g() { ret; }\n"),
    "call_modifier": _entry("call.sync g;", before=".func g() { ret; }\n"),
    "brx": _entry("T: .branchtargets A, B; brx.idx %r1, T; A: B:"),
    "brx_unknown_list": _entry("brx.idx %r1, T; A: B:"),
    "brx_unknown_label": _entry("T: .branchtargets A, B; brx.idx %r1, T; A:"),
    "brx_label": _entry("brx.idx %r1, A; A:"),
    "brx_float": _entry("T: .branchtargets A; brx.idx %f1, T; A:"),
    "label_twice": _entry("A: A:"),
    "label_variable": _entry("%r1: ret;"),
    "label_unknown": _entry("bra A;"),
    "label_unknown_twice": _entry("bra A;\nbra A;\nbra B;"),
    "label_inner": _entry("bra A; { A: }"),
    "label_outer": _entry("{ bra A; } A:"),
    "label_at_end": _entry("bra A; A:"),
    "reg_twice": _entry(".reg .b32 %r1;"),
    "reg_inner": _entry("{ .reg .b32 %r1; mov.u32 %r1, 1; }"),
    "reg_family_twice": _entry(".reg .b32 %r<4>;"),
    "reg_family_zero": _entry(".reg .b32 %z<0>;"),
    "reg_after_use": _entry("mov.u32 %late, 1; .reg .b32 %late;"),
    "reg_out_of_range": _entry("mov.u32 %r8, 1;"),
    "reg_leading_zero": _entry("mov.u32 %r01, 1;"),
    "reg_family_itself": _entry("mov.u32 %r, 1;"),
    "reg_vector": _entry(".reg .v4 .f32 %v; mov.f32 %v.x, 1.0; mov.v4.f32 %v, {%f1, %f2, %f3, %f4};"),
    "reg_vector_component": _entry(".reg .v2 .f32 %v; mov.f32 %v.z, 1.0;"),
    "reg_align": _entry(".reg .align 4 .b32 %z;"),
    "reg_init": _entry(".reg .b32 %z = 1;"),
    "reg_array": _entry(".reg .b32 %z[4];"),
    "reg_texref": _entry(".reg .texref %t;"),
    "reg_bf16": _entry(".reg .bf16 %t;"),
    "local_var": _entry(".local .align 4 .b8 a[8]; st.local.u32 [a+4], %r1;"),
    "local_init": _entry(".local .u32 a = 1;"),
    "subscript": _entry(
        ".shared .u32 a[4]; mov.u64 %rd1, a[1]; cvta.shared.u64 %rd1, a[2]; ld.shared.u32 %r1, a[3]; "
        "st.shared.u32 a[0], %r1;"
    ),
    "subscript_scalar": _entry(".shared .u32 a; mov.u64 %rd1, a[1];"),
    "subscript_function": _entry("mov.u64 %rd1, f[0];", before=_CALL),
    "subscript_atom": _entry(".shared .u32 a[4]; atom.shared.add.u32 %r1, a[1], 5;"),
    "subscript_cvta_to": _entry(".global .u32 a[4]; cvta.to.global.u64 %rd1, a[1];"),
    "subscript_add": _entry(".global .u32 a[4]; add.u64 %rd1, a[1], 3;"),
    "subscript_twice": _entry(".global .u32 a[4][4]; mov.u64 %rd1, a[1][1];"),
    "subscript_float": _entry(".global .u32 a[4]; mov.f32 %f1, a[1];"),
    "shared_var": _entry(".shared .u32 a[4]; st.shared.u32 [a+4], %r1;"),
    "global_in_body": _entry(".global .u32 a = 5; ld.global.u32 %r1, [a];"),
    "const_in_body": _entry(".const .u32 a = 5; ld.const.u32 %r1, [a];"),
    "extern_in_body": _entry(".extern .shared .b8 a[]; ld.shared.u8 %r1, [a];"),
    "var_twice": _entry(".local .u32 a; .local .u32 a;"),
    "var_shadow_param": _entry(".local .u32 p;"),
    "var_shadow_global": _entry(".local .u32 a; st.local.u32 [a], 1;", before=".global .u32 a;"),
    "offset_past_end": _entry(".local .u32 a; st.local.u32 [a+64], 1;"),
    "param_offset": _entry("ld.param.u32 %r1, [p+4];"),
    "param_past_end": _entry("ld.param.u64 %rd1, [p+8];"),
    "param_address": _entry("mov.u64 %rd1, p;"),
    "param_write": _entry("st.param.u64 [p], %rd1;"),
    "loc": _entry(".loc 1 2 3\nadd.u32 %r1, %r2, %r3;", before='.file 1 "a.cu"'),
    "loc_no_file": _entry(".loc 1 2 3\nadd.u32 %r1, %r2, %r3;"),
    "loc_inlined": _entry(
        ".loc 1 2 3\nmov.u32 %r1, 1;\n.loc 1 9 1, function_name inf, inlined_at 1 2 3\nmov.u32 %r1, 2;",
        before='.file 1 "a.cu"',
    )
    + ".section .debug_str\n{\ninf:\n.b8 102, 0\n}\n",
    "pragma_body": _entry('.pragma "nounroll"; A: @%p1 bra A;'),
    "pragma_body_unknown": _entry('.pragma "frob";'),
    "guard_register": _entry("@%r1 mov.u32 %r1, 1;"),
    "guard_unknown": _entry("@%q mov.u32 %r1, 1;"),
    "guard_constant": _entry("@1 mov.u32 %r1, 1;"),
    "guard_label": _entry("@%p1 A: ret;"),
    "missing_semicolon": _entry("mov.u32 %r1, 1\nmov.u32 %r2, 2;"),
    "missing_comma": _entry("add.u32 %r1, %r2 %r3;"),
    "extra_comma": _entry("add.u32 %r1, %r2, %r3, ;"),
    "unknown_instruction": _entry("frob.u32 %r1, %r2;"),
    "unknown_modifier": _entry("add.frob.u32 %r1, %r2, %r3;"),
    "unknown_register": _entry("add.u32 %r1, %zz, %r3;"),
    "unknown_register_guarded": _entry("@%p1 add.u32 %r1, %zz, %r3;"),
    "unknown_twice": _entry("add.u32 %r1, %zz, %r3;\nadd.u32 %r1, %zz, %zy;"),
    "unknown_special": _entry("mov.u32 %r1, %frob;"),
    "special_component": _entry("mov.u32 %r1, %tid.q;"),
    "special_no_component": _entry("mov.u32 %r1, %tid;"),
    "special_vector": _entry(".reg .v4 .u32 %v; mov.v4.u32 %v, %tid;"),
    "special_old": _entry("mov.u32 %r1, %cluster_ctarank;", target="sm_80"),
    "special_old_version": _entry("mov.u32 %r1, %cluster_ctarank;", version="7.0", target="sm_80"),
    "special_pred": _entry("mov.pred %p1, %is_explicit_cluster;"),
    "special_width": _entry("mov.u32 %r1, %clock64;"),
    "nested_scopes": _entry("{ { { mov.u32 %r1, 1; } } }"),
    "unbalanced": _entry("{ mov.u32 %r1, 1;"),
    "ret_value": _entry("ret %r1;"),
    "two_errors": _entry("add.u32 %r1, %r2;\nadd.f64 %r1, %r2, %r3;\nbra Z;"),
    "declaration_after_code": _entry("mov.u32 %r1, 1; .reg .b32 %z; mov.u32 %z, %r1;"),
    "instruction_as_name": _entry(".reg .b32 add; mov.u32 add, 1;"),
    "wrap_line": _entry("add.u32\n%r1,\n%r2,\n%f3;"),
    "multi_on_line": _entry("add.u32 %r1, %r2, %r3; add.u32 %r1, %r2, %f3; add.u32 %r1, %f2, %r3;"),
    "big_constant": _entry("mov.u32 %r1, 99999999999999999999;"),
    "octal": _entry("mov.u32 %r1, 0777;"),
    "bad_octal": _entry("mov.u32 %r1, 08;"),
    "float_constants": _entry("mov.f32 %f1, 1e10; mov.f32 %f1, .5; mov.f32 %f1, 5.; mov.f32 %f1, 0F3f800000;"),
    "string_operand": _entry('mov.u32 %r1, "a";'),
    "shared_too_big": _module(".shared .b8 a[49153];\n.entry k() { .reg .b32 %r; ld.shared.u8 %r, [a]; ret; }\n"),
    "version_directive_inside": _entry(".version 9.0"),
    "callprototype_noreturn": _entry("P: .callprototype _ (.param .b64 _) .noreturn;"),
    "branchtargets_module": _module("T: .branchtargets A;\n.entry k() { ret; }\n"),
}


def _fetch(text: str, options: str = ", texmode_independent") -> str:
    """One texture access; with separate samplers unless told otherwise."""
    before = ".global .texref t;" + (" .global .samplerref s;" if options else "")
    return _entry(f".reg .b32 %q<4>; .reg .b64 %hh<2>; {text}", target=f"sm_90{options}", before=before)


_RESULT = "{%q0, %q1, %q2, %q3}"
_FETCHES = {
    "sampler": _fetch(f"tex.2d.v4.f32.f32 {_RESULT}, [t, s, {{%q0, %q1}}];"),
    "sampler_missing": _fetch(f"tex.2d.v4.f32.f32 {_RESULT}, [t, {{%q0, %q1}}];"),
    "sampler_missing_for_integers": _fetch(f"tex.2d.v4.f32.s32 {_RESULT}, [t, {{%q0, %q1}}];"),
    "sampler_is_texture": _fetch(f"tex.2d.v4.f32.f32 {_RESULT}, [t, t, {{%q0, %q1}}];"),
    "sampler_in_register": _fetch(f"tex.level.2d.v4.f32.f32 {_RESULT}, [%hh0, %hh1, {{%q0, %q1}}], %q2;"),
    "sampler_cube": _fetch(f"tex.cube.v4.f32.f32 {_RESULT}, [t, s, {{%q0, %q1, %q2, %q3}}];"),
    "sampler_gather_cube": _fetch(f"tld4.r.acube.v4.f32.f32 {_RESULT}, [t, s, {{%q0, %q1, %q2, %q3}}];"),
    "sampler_short": _fetch(f"tex.a2d.v4.f32.f32 {_RESULT}, [t, s, {{%q0, %q1}}];"),
    "unified_cube": _fetch(f"tex.cube.v4.f32.f32 {_RESULT}, [t, {{%q0, %q1, %q2, %q3}}];", ""),
    "unified_short": _fetch(f"tex.3d.v4.f32.f32 {_RESULT}, [t, {{%q0, %q1}}];", ""),
}

CASES: dict[str, str] = {**_HEADERS, **_DECLARATIONS, **_FUNCTIONS, **_BODIES, **_FETCHES}
