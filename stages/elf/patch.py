"""Fill relocated fields of 128-bit instruction words.

Fields (measured by flipping bits and reading the disassembly on sm_75 80 90 100 120):
  const operand   byte offset, 16 bits at 38 (ALU operands: the low two are 0); LDCU (sm_100+): 17 bits at 37
  immediate       32 bits at 32
  branch          (target - next pc) / 4, signed; 48 bits at 34; sm_90+: low 8 bits at 16, the other 48 at 34
"""

from __future__ import annotations

from ir_format.diag import CompileError
from ir_format.typed import Final

OPCODE_MASK: Final = 0x1FF
OP_LDCU: Final = 0x1AC
OP_LDC: Final = 0x182
OP_EXIT: Final = frozenset({0x14D})
OP_CALL_REL: Final = 0x144
OP_CONVERGENCE: Final = frozenset(
    {0x143, 0x144, 0x145}
)  # CALL.ABS, CALL.REL, BSSY: the kernel has a call-return stack record

BRANCH_SHIFT: Final = 34
BRANCH_BITS: Final = 48


def read_word(text: bytearray, at: int) -> int:
    """The instruction at byte ``at``."""
    return int.from_bytes(text[at : at + 16], "little")


def write_word(text: bytearray, at: int, word: int) -> None:
    """Store an instruction."""
    text[at : at + 16] = word.to_bytes(16, "little")


def _field(word: int, shift: int, bits: int) -> int:
    return word >> shift & (1 << bits) - 1


def _with_field(word: int, shift: int, bits: int, value: int) -> int:
    mask = (1 << bits) - 1
    return word & ~(mask << shift) | (value & mask) << shift


def add_const_offset(text: bytearray, at: int, value: int, what: str) -> None:
    """Add ``value`` bytes to the bank offset of the constant operand; the field holds the operand's own offset
    before."""
    word = read_word(text, at)
    shift, bits = (37, 17) if word & OPCODE_MASK == OP_LDCU else (38, 16)
    old = _field(word, shift, bits)
    new = old + value
    if not 0 <= new < 1 << 16:
        raise CompileError(f"offset {new:#x} of '{what}' does not fit a constant bank")
    write_word(text, at, _with_field(word, shift, bits, new))


def add_imm32(text: bytearray, at: int, value: int) -> None:
    """Add ``value`` to the 32-bit immediate, modulo 2**32."""
    word = read_word(text, at)
    write_word(text, at, _with_field(word, 32, 32, _field(word, 32, 32) + value))


def take_imm32(text: bytearray, at: int) -> int:
    """The 32-bit immediate, which becomes 0: an object keeps it as the addend of a relocation."""
    word = read_word(text, at)
    write_word(text, at, _with_field(word, 32, 32, 0))
    return _field(word, 32, 32)


def take_const_offset(text: bytearray, at: int) -> tuple[int, bool]:
    """The same for the offset of a constant operand; True for a load, whose field has all bits of the offset. The bank
    stays in a load's word and leaves that of other instructions, since the linker adds it there (measured). Raises
    CompileError where no relocation reaches the field (LDCU)."""
    word = read_word(text, at)
    if word & OPCODE_MASK == OP_LDCU:
        raise CompileError("a uniform load of a constant variable has no relocation")
    load = word & OPCODE_MASK == OP_LDC
    write_word(text, at, _with_field(word, 38, 16 if load else 21, 0))
    return _field(word, 38, 16), load


def set_branch(text: bytearray, at: int, target: int, low8: bool) -> None:
    """Point the pc-relative field at byte ``target`` of the same section."""
    distance = target - (at + 16)
    if distance % 4:
        raise CompileError(f"branch target {target:#x} is not a multiple of 4 bytes away")
    distance >>= 2
    word = read_word(text, at)
    if low8:
        word = _with_field(word, 16, 8, distance)
        distance >>= 8
    if not -(1 << BRANCH_BITS - 1) <= distance < 1 << BRANCH_BITS - 1:
        raise CompileError(f"branch target {target:#x} is out of range")
    write_word(text, at, _with_field(word, BRANCH_SHIFT, BRANCH_BITS, distance))


# `BRA self` and `NOP`, the tail of every kernel: byte-equal on sm_75..89, and on sm_90..121 (measured, 11 targets).
BRA_SELF: Final = 0x000FC000038000000000000000007947
NOP: Final = 0x000FC000000000000000000000007918


def append_tail(text: bytearray, low8: bool, pad_nops: int) -> None:
    """Append ``BRA self`` and NOPs up to a multiple of 128 bytes, at least ``pad_nops`` of them."""
    at = len(text)
    text += BRA_SELF.to_bytes(16, "little")
    set_branch(text, at, at, low8)
    count = pad_nops + -(len(text) // 16 + pad_nops) % 8
    text += NOP.to_bytes(16, "little") * count


def scan(text: bytes | bytearray, end: int, opcodes: frozenset[int]) -> list[int]:
    """Byte offsets of the instructions in ``text[:end]`` whose base opcode is one of ``opcodes``."""
    return [at for at in range(0, end, 16) if opcode(text, at) in opcodes]


def opcode(text: bytes | bytearray, at: int) -> int:
    """Base opcode of the instruction at a byte offset."""
    return (text[at] | text[at + 1] << 8) & OPCODE_MASK
