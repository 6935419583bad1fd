"""Operands against their specifications: agreement of types first (`fits`), then the form (`problems`).

Kinds are the strings described in `stages.parse.symbols`.
"""

from __future__ import annotations

from collections.abc import Callable

from ir_format.ptx import Addr, Operand, PtxReg, Reg, Sym
from ir_format.typed import Final
from stages.parse import brackets, compat, rules, textures
from stages.parse.sregs import ANY_INTEGER
from stages.parse.table import OperandSpec
from stages.parse.vectors import alien_neighbours, common, elements

Problem = tuple[str, str]
_MAX_VECTOR = (1, 2, 4, 8, 16, 32, 64, 128)


_NARROW: Final = frozenset(("b8", "u8", "s8", "b16", "u16", "s16"))


def agrees(kind: str, type_: str, relaxed: bool) -> bool:
    """True if an operand of this kind has a type that fits an instruction type."""
    head = kind[:2]
    if kind == "s:b32" and type_ in ("b16", "u16", "s16", "f16"):
        return True  # measured; refused by form later
    if kind == f"s:{ANY_INTEGER}":
        return type_ in compat.STRICT["A"] and type_[1:] != "8"
    if head in ("r:", "s:", "b:"):
        table = compat.RELAXED if relaxed else compat.STRICT
        return kind[2:] in table.get(type_, frozenset((type_,)))
    if kind in ("i", "d", "f"):
        return kind in compat.literals(type_)
    if head == "v:":
        return type_ not in ("pred", "R32", "bf16", "bf16i", "bf16x2")  # refused by its form later (measured)
    if head == "V:":
        return type_[0] in "bus"
    if head == "a:":  # an address counts as 32 bits wide (measured)
        return type_ in ("b32", "u32", "s32") or (relaxed and type_ in _NARROW)
    if head == "-:" or head == "n:":
        return agrees(kind[2:], type_, relaxed)
    if kind == "n":
        return type_ == "pred"
    return kind == "F"


def _vector_agrees(kind: str, type_: str, relaxed: bool, loose: bool = False) -> bool:
    """A vector against a type; `loose`: integers pass for floats of their size (measured where a `.v` modifier asks for
    the vector)."""
    found, _ = common(elements(kind))
    if not found:
        return False
    if loose and type_ in ("f32", "f64") and found[:2] == "r:":
        type_ = "b" + type_[1:]
    return agrees(found, type_, relaxed)


def _value(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    """Registers and constants, scalar or vector."""
    if spec.plain and (kind[0] in "(dva" or (kind[0] == "f" or kind[:3] == "r:f") and type_[0] != "f"):
        return False
    fixed = not spec.vector and not spec.relaxed and not spec.type.isdigit() and spec.type != "W"
    if fixed and (kind[0] == "(" or kind[:2] in ("v:", "a:")):
        return False
    if kind[:2] == "a:" and spec.vector > 0:
        return False
    if kind[:2] == "v:" and (spec.vector > 0 or (spec.role == "x" and spec.vector == -1 and "f" in type_)):
        return False  # in place of a vector, and for `mov` of a variable's address into a float
    if kind[0] == "(":
        if type_[0] == "b" and type_[1:].isdigit() and not vector and spec.vector <= 0:
            # where one value of bits stands, a vector is its pieces; loads and stores take its elements as well
            return _pack(spec, type_, vector, kind) or (
                spec.vector != 0 and _vector_agrees(kind, type_, spec.relaxed, False)
            )
        return _vector_agrees(kind, type_, spec.relaxed, spec.vector == -1 and vector > 0)
    return agrees(kind, type_, spec.relaxed)


def _destination(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    if kind == "_":
        return True
    if kind[:2] == "p:":
        first, second = kind[2:].split("|", 1)
        return (first == "_" or agrees(first, type_, spec.relaxed)) and second in ("r:pred", "_")
    return _value(spec, type_, vector, kind)


def _pack(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    """`{a, b}` as one scalar of a `bN` type."""
    if kind[0] != "(":
        return False
    kinds = elements(kind)
    size, rest = divmod(compat.bit_size(type_), len(kinds))
    if rest or type_[0] != "b" or size not in (8, 16, 32, 64):
        return False
    found, _ = common(kinds)
    return bool(found) and agrees(found, f"b{size}", False)


def _predicate_dest(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    if kind[:2] == "p:":
        first, second = kind[2:].split("|", 1)
        return spec.role == "dpp" and first in ("r:pred", "_") and second in ("r:pred", "_") and kind != "p:_|_"
    return kind in ("r:pred", "_", "i", "n")


def _memory(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    return kind[:2] in ("a:", "V:") or (spec.relaxed and (kind == "i" or kind[:2] in ("v:", "r:")))


def _texture_result(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    if kind[:2] == "p:":
        kind, flag = kind[2:].split("|", 1)
        if flag != "r:pred":
            return False
    if kind[0] == "(":
        return _vector_agrees(kind, type_, False, True)
    return agrees(kind, type_, False)


def _selected(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    if spec.plain and kind[0] in "(va":
        return False
    if kind[:2] == "-:":
        return spec.role == "nsel" and kind[2:4] in ("r:", "b:") and kind[4:] in compat.STRICT["u32"]
    if kind[0] == "(":
        return _vector_agrees(kind, "u32", False)
    return (
        kind == "i" or kind[:2] in ("v:", "a:") or (kind[:2] in ("r:", "b:", "s:") and kind[2:] in compat.STRICT["u32"])
    )


def _texture(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    return textures.fits(spec.role, type_, kind)


def _query(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    return kind == "i" or textures.is_reference(kind)


def _tensor(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    """A tensor map with its coordinates."""
    if kind[:3] != "a2:" or kind[3:5] != "a:":
        return spec.relaxed and kind == "i"
    _, sampler, coordinates = textures.split(kind)
    return not sampler and (
        _vector_agrees(coordinates, "s32", False) if coordinates[0] == "(" else agrees(coordinates, "s32", False)
    )


_ANY_BASE: Final = compat.STRICT["A"] | {"f32", "f64", "f16"}  # what tcgen05.cp and .shift take (measured)


def _tensor_memory(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    if kind == "a:i":
        return type_ == "A"
    return kind[:4] == "a:r:" and (kind[4:] in compat.STRICT["U"] or kind[4:] in _ANY_BASE) or kind[:4] == "a:v:"


_BRANCH: Final = compat.STRICT["A"] | {"b128"}

_FITS: Final[dict[str, Callable[[OperandSpec, str, int, str], bool]]] = {
    "d": _destination,
    "d_": _destination,
    "dmask": lambda s, t, v, k: (
        k == "i" or (k[0] in "(va" and not s.plain) or k[:2] in ("r:", "b:", "s:") and k[2:] in compat.STRICT["u32"]
    ),
    "dsel": lambda s, t, v, k: k[:2] == "b:" and k[2:] in compat.STRICT["u32"],
    "dtex": _texture_result,
    "dpack": _pack,
    "spack": _pack,
    "s": _value,
    "x": _value,
    "i": lambda s, t, v, k: k == "i",
    "m": _memory,
    "mt": _tensor,
    "mh": lambda s, t, v, k: brackets.is_handle(k, 1),
    "mhc": lambda s, t, v, k: brackets.is_handle(k, 2),
    "ta": _tensor_memory,
    "mq": _query,
    "ms": _query,
    "tx": _texture,
    "toff": _texture,
    "tgrad": _texture,
    "tcmp": lambda s, t, v, k: agrees(k, "f32", False),
    "l": lambda s, t, v, k: k in ("l", "i", "F") or k[:2] == "a:" or (k[:2] in ("r:", "s:") and k[2:] in _BRANCH),
    "t": lambda s, t, v, k: k == "t",
    "k": lambda s, t, v, k: k == "_",
    "o": lambda s, t, v, k: k[:2] in ("v:", "r:"),
    "dp": _predicate_dest,
    "dpp": _predicate_dest,
    "ps": lambda s, t, v, k: k in ("r:pred", "n", "i"),
    "sel": _selected,
    "nsel": _selected,
    "msel": _selected,
}


def fits(spec: OperandSpec, type_: str, vector: int, kind: str) -> bool:
    """True if the operand's type agrees with the row (else the arguments mismatch)."""
    return _FITS[spec.role](spec, type_, vector, kind)


# --------------------------------------------------------------------------- forms


def misfits(kinds: tuple[str, ...]) -> list[Problem]:
    """Elements of another size than those before them; reported before anything else about an instruction."""
    out: list[Problem] = []
    for kind in kinds:
        at = kind.find("(")
        if at >= 0:
            _, count = common(elements(kind[at : kind.rindex(")") + 1]))
            out.extend([("error", "Incompatible elements of vector expression")] * count)
    return out


def problems(spec: OperandSpec, type_: str, vector: int, kind: str, index: int, name: str) -> list[Problem]:
    """What is wrong with the form of an operand whose type agrees."""
    role = spec.role
    if kind[0] == "(" and role not in ("toff", "tgrad"):
        count = alien_neighbours(elements(kind))
        aliens = [("error", f"Vector with elements of different types are not allowed in {name} instruction")] * count
        return aliens + _form(spec, type_, vector, kind, index, name)
    return _form(spec, type_, vector, kind, index, name)


def _form(spec: OperandSpec, type_: str, vector: int, kind: str, index: int, name: str) -> list[Problem]:
    role = spec.role
    if role in ("d", "d_", "dp", "dpp", "dtex"):
        return _bad_destination(spec, type_, vector, kind, index, name)
    if role in ("s", "x"):
        return _bad_source(spec, type_, vector, kind, index, name)
    if role == "dmask":
        return _bad_mask(kind, index, name)
    if role in ("dpack", "spack"):
        return _bad_pack(role, kind, name)
    if role == "m":
        return _bad_address(kind, index, name)
    if role == "ms" and kind in ("a:v:texref", "a:v:surfref"):
        return [("error", f"Argument {index} of instruction '{name}': .samplerref expected")]
    if role == "ms" and kind == "a:i":
        return [("error", f"Argument {index} of instruction '{name}': .texref or .u64 register expected")]
    if role in ("sel", "nsel", "msel"):
        return _bad_selected(role, kind, index, name)
    if role == "ta":
        return _bad_tensor_memory(type_, kind)
    if role == "mt":
        return _bad_tensor(kind, index, name)
    if role in ("mq", "tx"):
        return _bad_texture(kind, index, name)
    if role == "tgrad" and kind[0] != "(":
        return [("error", f"Vector expected for argument {index + 1}")]
    if role == "l" and kind != "l":
        return [("error", f"Label expected for argument {index} of instruction '{name}'")]
    return []


def offset_too_many(name: str, kinds: tuple[str, ...]) -> bool:
    """A load or store of tensor memory with the offset that its shape does not have, or without the one it has."""
    if len(kinds) not in (2, 3) or kinds[2 if name == "tcgen05.ld" else 1 :][: len(kinds) - 2] not in ((), ("i",)):
        return False
    address, values = (kinds[1], kinds[0]) if name == "tcgen05.ld" else (kinds[0], kinds[-1])
    return address[:4] == "a:r:" and values[0] == "("


def _bad_mask(kind: str, index: int, name: str) -> list[Problem]:
    """The result of a video instruction whose parts a mask selects."""
    if kind[:2] == "s:":
        return [("error", f"Special register argument not allowed for instruction '{name}'")]
    if kind[0] not in "i(va":
        return []
    vector = [("error", f"Vector operand is not allowed for instruction '{name}'")] if kind[0] == "(" else []
    return [*vector, ("error", f"Incorrect video selector for operand {index}")]


def _bad_pack(role: str, kind: str, name: str) -> list[Problem]:
    kinds = elements(kind)
    if role == "dpack" and any(k in ("i", "d", "f") for k in kinds):
        return [("error", f"Result register required for instruction '{name}'")]
    if role == "spack" and "_" in kinds and "r:b16" not in kinds:  # measured: 16-bit halves may be left out
        return [("error", "Sink '_' not allowed as a source operand")]
    return []


#: What says how long a vector it wants.
_SIZED: Final = ("clusterlaunchcontrol", "ldmatrix", "stmatrix")


def _vector_problem(spec: OperandSpec, vector: int, kind: str, index: int, name: str, result: bool) -> list[Problem]:
    want = spec.vector
    if want == -2:
        return []
    if want == -1:
        want = vector
    if kind[0] != "(":
        if not want:
            return []
        if spec.vector > 0:
            if name.startswith(_SIZED):
                return [("error", f"Vector of size {want} is expected for argument {index} of instruction '{name}'")]
            return [("error", f"Vector expected for argument {index}")]
        if name == "multimem.ld_reduce":
            return [("error", f"Vector of size {want} is expected for argument {index} of instruction '{name}'")]
        if result and name == "ldu" and kind in ("i", "d", "f"):
            return [("error", f"Result register required for instruction '{name}'")]
        if result and name not in ("atom", "red"):
            return [("error", "Result vector expected")]
        if name in ("atom", "red"):
            head = (
                []
                if kind[:2] != "s:"
                else [("error", f"Special register argument not allowed for instruction '{name}'")]
            )
            return [*head, ("error", f"Vector expected for argument {index}")]
        if name == "multimem.st":
            return [("error", f"Vector of size {want} is expected for argument {index} of instruction '{name}'")]
        return [("error", f"Argument vector size mismatch for instruction '{name}'")]
    size = len(elements(kind))
    if size == want or (size == 1 and spec.vector == -1 and not want):
        return []
    if size not in _MAX_VECTOR:
        return [("error", f"Illegal vector size: {size}")]
    if spec.vector == 0 and name in ("atom", "red"):
        return [("error", f"Vector is not expected for argument {index} of instruction '{name}'")]
    if spec.vector == 0:
        return [("error", f"Vector operand is not allowed for instruction '{name}'")]
    if name.startswith(_SIZED) and spec.vector > 0:
        return [("error", f"Vector of size {want} is expected for argument {index} of instruction '{name}'")]
    if name in ("tcgen05.ld", "tcgen05.st") and spec.vector > 0:
        return [("error", f"Argument {index} of instruction '{name}': Argument vector size mismatch")]
    return [("error", f"Argument vector size mismatch for instruction '{name}'")]


#: What ptxas makes of an instruction before it looks at the result (measured).
_MADE_OF: Final = {
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"), "mov"),
    "createpolicy.fractional": "_createpolicy.fractional",
}


def _bad_destination(spec: OperandSpec, type_: str, vector: int, kind: str, index: int, name: str) -> list[Problem]:
    if kind == "_":
        if spec.role in ("d_", "dp", "dpp") or spec.pair:
            return [] if not spec.pair else [("fatal", f"Result discard mode is not allowed for instruction '{name}'")]
        return [("fatal", f"Result discard mode is not allowed for instruction '{name}'")]
    if kind[:2] == "p:":
        if spec.role == "dtex" and kind[2] != "(":
            return [("error", "Result vector expected")]
        if spec.pair and kind.startswith("p:_|") and name != "elect":
            return [("fatal", f"Result discard mode is not allowed for instruction '{name}'")]
        if spec.role == "dpp":
            return (
                [("error", f"Predicate output not allowed for instruction '{name}'")]
                if type_ in ("f16", "bf16")
                else []
            )
        if kind.endswith("|_") and not spec.pair:
            return _bad_destination(spec, type_, vector, kind[2:-2], index, name)
        return [] if spec.pair else [("error", f"Predicate output not allowed for instruction '{name}'")]
    if spec.pair and name == "elect":
        return [("error", f"Predicate output expected for instruction '{name}'")]
    if spec.role == "dtex" and kind in ("i", "d", "f"):
        return [("error", f"Result register required for instruction '{name}'")]
    if spec.role == "dtex" and kind[0] != "(":
        return [("error", "Result vector expected")]
    if spec.role == "dtex" and vector and len(elements(kind)) != vector:
        return [("error", f"Argument vector size mismatch for instruction '{name}'")]
    vector_problem = _vector_problem(spec, vector, kind, index, name, True) if spec.role != "dtex" else []
    if vector_problem:
        return vector_problem
    if kind in ("i", "d", "f", "F", "n") or (kind[0] == "(" and any(k in ("i", "d", "f") for k in elements(kind))):
        return [("error", f"Result register required for instruction '{_MADE_OF.get(name, name)}'")]
    head = kind[:2]
    if head == "s:":
        if name == "mov" or (name == "cvt" and type_ != "f16x2"):
            return [("error", "Read-only special register cannot be destination argument")]
        return [("error", f"Special register argument not allowed for instruction '{name}'")]
    if head == "v:" or head == "a:":
        return [("error", f"Argument {index} of instruction '{name}': must be register")]
    if head == "b:":
        return [("error", f"Video selector is not allowed on destination for instruction '{name}'")]
    if head == "-:":
        return [("error", "Operand negation limited to either (source A xor source B) or source C")]
    return []


def _bad_selected(role: str, kind: str, index: int, name: str) -> list[Problem]:
    if kind[0] == "(":
        return [("error", f"Vector operand is not allowed for instruction '{name}'")]
    if kind[:2] == "s:":
        return [("error", f"Special register argument not allowed for instruction '{name}'")]
    if role == "msel" and kind[:2] not in ("r:", "b:"):
        return [("error", f"Incorrect video selector for operand {index}")]
    if kind[:2] in ("v:", "a:"):
        return [("error", f"Argument {index} of instruction '{name}': must be register")]
    return []


def _bad_texture(kind: str, index: int, name: str) -> list[Problem]:
    if kind == "i":
        return [("error", f"Address expected for argument {index} of instruction '{name}'")]
    want = "surfref" if name[0] == "s" else "texref"
    base = textures.split(kind)[0] if kind[:3] == "a2:" else kind
    if base == "a:v:samplerref" and name.startswith("txq"):
        return []
    if (base.startswith("a:v:") and base != f"a:v:{want}") or base == "a:i":
        return [("error", f"Argument 1 of instruction '{name}': .{want} or .u64 register expected")]
    return []


def _bad_tensor_memory(type_: str, kind: str) -> list[Problem]:
    """An address of tensor memory that is no register of 32 bits: ptxas says so of the addition that it makes of it."""
    if kind[:4] == "a:v:":
        return [("error", "Argument 1 of instruction 'add': must be register")]
    if type_ != "A" and kind != "a:i" and kind[4:] not in compat.STRICT["U"]:
        return [("error", "Arguments mismatch for instruction 'add'")]
    return []


def _bad_tensor(kind: str, index: int, name: str) -> list[Problem]:
    if kind[:3] != "a2:":
        return [("error", f"Vector expected for argument {index + 1}")]
    base, _, coordinates = textures.split(kind)
    if base[:4] == "a:v:" and base[4:].partition("!")[0] not in ("global", "texref", "surfref", "samplerref"):
        return [("error", f"State space mismatch between instruction and address in instruction '{name}'")]
    if coordinates[0] != "(":
        return [("error", f"Vector expected for argument {index + 1}")]
    return [("error", "Sink '_' not allowed as a source operand")] if "_" in elements(coordinates) else []


def not_shared(kind: str) -> bool:
    """A variable, or its address, of another space than shared memory."""
    return kind.removeprefix("a:")[:2] == "v:" and kind.rsplit(":", 1)[1].partition("!")[0] != "shared"


def _bad_source(spec: OperandSpec, type_: str, vector: int, kind: str, index: int, name: str) -> list[Problem]:
    vector_problem = _vector_problem(spec, vector, kind, index, name, False)
    if vector_problem:
        return vector_problem
    if kind[0] == "(" and "_" in elements(kind):
        return [("error", "Sink '_' not allowed as a source operand")]
    head = kind[:2]
    if name in ("mapa", "getctarank") and spec.role == "x":
        if head == "s:":
            return [("error", f"Special register argument not allowed for instruction '{name}'")]
        if not_shared(kind):
            return [("error", f"State space mismatch between instruction and address in instruction '{name}'")]
    if head in ("a:", "v:") and name[:4] in ("sust", "sure"):
        return [("error", f"Argument {index + 1} of instruction '{name}': must be register")]  # behind its coordinates
    if head == "a:":
        return [("error", f"Argument {index} of instruction '{name}': must be register")]
    if kind in ("v:texref", "v:surfref") and type_ != "u64" and name == "mov":
        return [("error", f"Indirect access to {'texture' if kind == 'v:texref' else 'surface'} requires .u64 type")]
    if spec.role == "x" and ((head in ("v:", "V:") and name != "cvt") or (head == "s:" and type_[0] != "f")):
        return []
    if head == "s:":
        return [("error", f"Special register argument not allowed for instruction '{name}'")]
    if head == "v:":
        return [("error", f"Argument {index} of instruction '{name}': must be register")]
    if head == "b:":
        return [("error", f"Video selector is not allowed on source operand for instruction '{name}'")]
    if head == "-:":
        return [("error", f"Operand negation not allowed for instruction '{name}'")]
    return []


_TWO_SPACES: Final = ("cp.", "multimem.cp.", "tensormap.cp")
_WRITES: Final = frozenset(("st", "red", "atom"))


_TEXTURES: Final = ("tex", "tld4")
_MEMORY: Final = ("ld", "ldu", "st", "suld", "sust")


def early_special(name: str, vector: int, kinds: tuple[str, ...]) -> list[Problem]:
    """A special register where a texture's result, offset or gradient, a vector in memory or a label is due: reported
    before the instruction's modifiers."""
    places: tuple[str, ...] = ()
    if name.startswith(_TEXTURES) or name == "bra":
        places = kinds
    elif vector and name.partition(".")[0] in _MEMORY:
        places = kinds[:1] if name[0] == "l" or name[:3] == "sul" else kinds[1:]
    if any(k[:2] == "s:" for k in places):
        return [("error", f"Special register argument not allowed for instruction '{name}'")]
    return []


def converted(kinds: tuple[str, ...], mods: tuple[str, ...]) -> list[Problem]:
    """`cvta` of a variable names its space."""
    if len(kinds) < 2 or kinds[1][:2] not in ("v:", "V:"):
        return []
    have = kinds[1].rsplit(":", 1)[1].partition("!")[0]
    want = next((m.split("::")[0] for m in mods if m in rules.SPACES), have)
    text = "State space mismatch between instruction and address in instruction 'cvta'"
    return [("error", text)] if have != want and have in rules.SPACES else []


def written_parameters(kinds: tuple[str, ...], mods: tuple[str, ...]) -> list[Problem]:
    """A store to an input parameter: reported before all else."""
    if any(m.startswith("param") for m in mods) and kinds and kinds[0][:9] == "a:v:param" and "!" in kinds[0]:
        return [("error", f"Illegal to write to function input parameter '{kinds[0].split('!', 1)[1]}'")]
    return []


def parameter_of_kernel(name: str, kinds: tuple[str, ...]) -> list[str]:
    """`.param::func` at a kernel's parameter: ptxas takes it for the kernel's until 13.5."""
    if any(k[:9] == "a:v:param" and "!" in k for k in kinds):
        return [f"Illegal state space for address operand '::func' with instruction '{name}'"]
    return []


class Memory:
    """Compares the spaces of an instruction's addresses with those that its modifiers name, in order.

    A variable's space is known from its name; after a register it is not.  A third address, or one beyond those named,
    is an mbarrier in shared memory.
    """

    __slots__ = ("name", "seen", "spaces")

    def __init__(self, name: str, mods: tuple[str, ...]) -> None:
        self.name = name
        self.seen = 0
        self.spaces = [m.split("::")[0] for m in mods if m in rules.SPACES or m == "global.shared::cta"]
        if len(self.spaces) > 1 and not name.startswith(_TWO_SPACES):
            self.spaces = self.spaces[:1]

    def problems(self, role: str, kind: str, place: int) -> list[Problem]:
        """Messages for the next address, which is the operand at this place."""
        index = self.seen
        self.seen += 1
        base = kind[2:]
        if base == "i" and self.spaces[:1] != ["local"] and self.name != "fence.proxy":
            return [("error", "Immediate addresses allowed only for .local state space")]
        if role == "mt" or (base[:2] not in ("v:", "V:") and kind[:2] != "V:"):
            return []
        space, _, parameter = kind.rsplit(":", 1)[1].partition("!")
        if parameter and self.name == "st" and self.spaces:
            return []
        if parameter and self.name in _WRITES and self.name != "st":
            return [("error", f"Illegal to write to function input parameter '{parameter}'")]
        if self.name == "fence.proxy":  # takes an address of any space (measured)
            return []
        if self.name == "prefetchu" and space in ("shared", "local"):
            return [("error", "Non-generic address is not supported as operand for prefetchu instruction")]
        if self.name.startswith("mbarrier.") and space != "shared" and self.spaces in ([], ["shared"]):
            symbol = OPERAND % place
            return [("error", f"Illegal state space for address operand '{symbol}' with instruction '{self.name}'")]
        if not self.spaces:
            bad = space in ("const", "param")  # not in the generic window
        else:
            want = (
                self.spaces[index] if index < len(self.spaces) else "shared" if len(self.spaces) > 1 else self.spaces[0]
            )
            bad = space != want
        return (
            [("error", f"State space mismatch between instruction and address in instruction '{self.name}'")]
            if bad
            else []
        )


#: Stands for the name of an operand in a message, until the operand is known: what is cached knows kinds only.
OPERAND: Final = "{operand %d}"


def named(message: str, operands: tuple[Operand, ...], registers: list[PtxReg]) -> str:
    """A message with the names of the operands that it speaks of."""
    for index, x in enumerate(operands):
        if isinstance(x, Addr):
            base = x.base
            name = registers[base.index].name if isinstance(base, Reg) else base.name if isinstance(base, Sym) else ""
            message = message.replace(OPERAND % index, name)
    return message


def _bad_address(kind: str, index: int, name: str) -> list[Problem]:
    base = kind[2:]
    if base[:2] == "r:" and base[2:] not in compat.STRICT["A"]:
        if base[2:] == "b128":
            return [("error", "Illegal operand type for address/array-index")]
        symbol = OPERAND % index
        return [
            (
                "error",
                f"Illegal to use symbol '{symbol}' of type .{base[2:]} as address operand. Use integer or bit only.",
            )
        ]
    if base[:1] == "(" or base[:2] == "s:":
        return [("error", "Illegal operand type for address/array-index")]
    if base in ("l", "F", "t", "_") or (name in ("ld", "st") and base in ("v:texref", "v:surfref", "v:samplerref")):
        return [("error", f"Illegal operand type to instruction '{name}'")]
    if base in ("d", "f"):
        return [("error", "Integer constant expression expected")]
    return []
