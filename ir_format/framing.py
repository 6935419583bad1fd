"""The framing of the Ori stream: msgpack records one after another.

A stream is ``["orias", header] ["module", module] ["unit", unit]* ["end", trailer]``. Nothing that is read is trusted:
a record is first skipped over as a whole, so that every length that it claims is really there, and then unpacked. Every
fault is a :class:`StreamError`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

import msgpack

from ir_format.diag import StreamError
from ir_format.typed import Any, BinaryIO

MAGIC = "orias"
VERSION = 1
MAX_STREAM = 1 << 30  # bytes held for one record at most
CHUNK = 1 << 16

Wire = Any  # a value of msgpack: int, str, bytes, None, tuple, dict


def fail(what: str, x: object) -> StreamError:
    """A StreamError that says what was expected and shows the start of what was found."""
    return StreamError(f"ori stream: expected {what}, found {repr(x)[:60]}")


class Writer:
    """Writes a stream record by record; each is flushed, so that the next stage starts at once."""

    def __init__(self, out: Callable[[bytes], object], flush: Callable[[], object] | None = None) -> None:
        self._out = out
        self._flush = flush
        self._pack = msgpack.Packer(use_bin_type=True).pack
        self._crc = 0
        self._units = 0

    def record(self, tag: str, body: Wire) -> None:
        """Write ``[tag, body]``."""
        try:
            data = self._pack((tag, body))
        except (ValueError, OverflowError, TypeError, UnicodeEncodeError) as e:
            raise StreamError(f"ori stream: can't write a {tag} record: {e}") from None
        self.frame(tag, data)

    def frame(self, tag: str, data: bytes) -> None:
        """Write a record that is packed already."""
        self._crc = zlib.crc32(data, self._crc)
        self._units += tag == "unit"
        self._out(data)
        if self._flush is not None:
            self._flush()

    def end(self) -> None:
        """Write the trailer: number of units and CRC-32 of all bytes before it."""
        self._out(self._pack(("end", {"crc": self._crc, "units": self._units})))
        if self._flush is not None:
            self._flush()


def frames(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """(tag, bytes of the whole record) of each record, the trailer checked and left out.

    Raises StreamError for anything that is not a whole stream with a header first and a true trailer; bodies are not
    looked at.
    """
    read = getattr(stream, "read1", stream.read)
    skipper = msgpack.Unpacker(max_buffer_size=MAX_STREAM)
    pending = bytearray()
    start = crc = units = 0
    first = True
    ended = False
    while True:
        chunk = read(CHUNK)
        if not chunk:
            break
        if ended:
            raise StreamError("ori stream: bytes after the trailer")
        try:
            skipper.feed(chunk)
        except msgpack.exceptions.BufferFull:
            raise StreamError(f"ori stream: a record of more than {MAX_STREAM} bytes") from None
        pending += chunk
        while True:
            try:
                skipper.skip()
            except msgpack.exceptions.OutOfData:
                break
            except (ValueError, msgpack.exceptions.UnpackException) as e:
                raise StreamError(f"ori stream: not msgpack: {e}") from None
            end = skipper.tell()
            data = bytes(pending[: end - start])
            del pending[: end - start]
            start = end
            tag = _tag(data)
            if ended:
                raise StreamError("ori stream: bytes after the trailer")
            if first and tag != MAGIC:
                raise StreamError("not an ori stream: the first record isn't a header")
            if not first and tag == MAGIC:
                raise StreamError("ori stream: a second header")
            first = False
            if tag == "end":
                body = unpack(data)
                if not isinstance(body, dict) or body.get("crc") != crc or body.get("units") != units:
                    raise StreamError("ori stream: the trailer's checksum or count doesn't agree with the records")
                ended = True
                continue
            crc = zlib.crc32(data, crc)
            units += tag == "unit"
            yield tag, data
    if first:
        raise StreamError("not an ori stream: truncated" if pending else "not an ori stream: it is empty")
    if not ended or pending:
        raise StreamError("ori stream: truncated")


def records(stream: BinaryIO, raw_lists: bool = False) -> Iterator[tuple[str, Wire]]:
    """(tag, body) of each record. ``raw_lists``: give lists instead of tuples (the `ptx` level's readers want them)."""
    for tag, data in frames(stream):
        yield tag, unpack(data, raw_lists)


# A record is a two-element array whose first element is one of four short strings: 0x92, 0xa0 + length, text.
_TAGS = {bytes((0x92, 0xA0 + len(t))) + t.encode(): t for t in (MAGIC, "module", "unit", "end")}


def _tag(data: bytes) -> str:
    for prefix, tag in _TAGS.items():
        if data.startswith(prefix):
            return tag
    raise fail("a record", data[:16])


def unpack(data: bytes, raw_lists: bool = False) -> Wire:
    """The body of one record, unpacked. Safe: :func:`frames` has seen that every length it claims is there."""
    try:
        rec = msgpack.unpackb(data, use_list=raw_lists, strict_map_key=True)
    except (ValueError, msgpack.exceptions.UnpackException, RecursionError, TypeError) as e:
        raise StreamError(f"ori stream: not msgpack: {e}") from None
    return rec[1]
