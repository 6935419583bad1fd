"""Tiles of matrices between shared memory and registers: LDSM, STSM."""

from __future__ import annotations

from typing import Final

import numpy as np

from ir_format.model import Reg
from stages.simulate.arr import Arr
from stages.simulate.build import Build, Builder, InstFn, View, put
from stages.simulate.ops_memory import locate, mem_of

u8, u16, u32 = np.uint8, np.uint16, np.uint32


def _count(b: Build) -> int:
    return next((int(x) for x in b.inst.mods if x in ("2", "4")), 1)


def _warps(v: View, m: Arr | None) -> Arr:
    """Numbers of the active warps: the instruction does not touch registers of other warps in the view."""
    return np.arange(v.n // 32) if m is None else np.flatnonzero(m.reshape(-1, 32).any(axis=1))


def _first(warps: Arr, count: int) -> Arr:
    """The first lanes of each warp, which give the addresses."""
    return np.asarray((32 * warps[:, None] + np.arange(count)).ravel())


def _set(v: View, row: int, warps: Arr, values: Arr, m: Arr | None) -> None:
    """A word for each lane of the warps."""
    full = np.zeros((v.n // 32, 32), u32)
    full[warps] = values.reshape(-1, 32)
    put(v.U[row], full.ravel(), m)


def ldsm(b: Build) -> InstFn:
    """Load 1, 2 or 4 tiles of 8 rows of 16 bytes; lane i gives the address of row i. MT88: transposed."""
    if any(x in b.mods for x in ("M816", "MT1616")):
        return _ldsm_bytes(b)
    b.only("16", "M88", "MT88", "2", "4")
    n = _count(b)
    place = locate(b, "shared", mem_of(b), 16, "read")
    rows = [b.dst(i) for i in range(n)]
    transposed = "MT88" in b.mods

    def run(v: View, m: Arr | None) -> None:
        warps = _warps(v, m)
        memory, at = place(v, _first(warps, 8 * n))
        tiles = memory.load(at, 16).reshape(-1, n, 8, 4)
        if transposed:
            halves = np.ascontiguousarray(tiles).view(u16).reshape(-1, n, 8, 8).transpose(0, 1, 3, 2)
            tiles = np.ascontiguousarray(halves).view(u32).reshape(-1, n, 8, 4)
        for i, row in enumerate(rows):
            _set(v, row, warps, np.ascontiguousarray(tiles[:, i]), m)

    return run


def stsm(b: Build) -> InstFn:
    """Store tiles: the inverse of LDSM."""
    if "MT168" in b.mods:
        return _stsm_bytes(b)
    b.only("16", "M88", "MT88", "2", "4")
    n = _count(b)
    place = locate(b, "shared", mem_of(b), 16, "write")
    data = [o for o in b.s if isinstance(o, Reg)]
    rows = [b.row(data[0], i) for i in range(n)]
    transposed = "MT88" in b.mods

    def run(v: View, m: Arr | None) -> None:
        warps = _warps(v, m)
        tiles = np.stack([v.U[r].reshape(-1, 8, 4)[warps] for r in rows], axis=1)
        if transposed:
            halves = np.ascontiguousarray(tiles).view(u16).reshape(-1, n, 8, 8).transpose(0, 1, 3, 2)
            tiles = np.ascontiguousarray(halves).view(u32).reshape(-1, n, 8, 4)
        memory, at = place(v, _first(warps, 8 * n))
        memory.store(at, 16, tiles.reshape(-1, 4))

    return run


#: Packed elements of a row of 16 bytes: bits of each. They become the low bits of bytes (CUTLASS shifts e2m1 by two
#: bits before a product wants it in the middle).
_PACKED: Final = {"U6x16P32TO8": 6, "U4x16P64TO8": 4, "S4TO8": 4}


def _ldsm_bytes(b: Build) -> InstFn:
    """Tiles of bytes: M816 has 8 rows of 16, two lanes per half row; MT1616 has 16 rows of 16, transposed, two
    registers per tile.

    U6x16P32TO8, U4x16P64TO8: sixteen packed elements of a row become bytes (documented for PTX). S4TO8: rows of eight
    bytes, whose sixteen nibbles become bytes with their sign."""
    b.only("8", "M816", "MT1616", "2", "4", *_PACKED)
    square = "MT1616" in b.mods
    n = _count(b)
    rows = 16 if square else 8
    signed = "S4TO8" in b.mods
    size = 8 if signed else 16
    place = locate(b, "shared", mem_of(b), size, "read")
    outs = [b.dst(i) for i in range(n * (2 if square else 1))]
    packed = next((_PACKED[x] for x in b.inst.mods if x in _PACKED), None)

    def run(v: View, m: Arr | None) -> None:
        warps = _warps(v, m)
        memory, at = place(v, _first(warps, rows * n))
        data = np.ascontiguousarray(memory.load(at, size)).view(u8).reshape(-1, size)
        if packed is not None:
            flat = np.unpackbits(data, axis=1, bitorder="little")[:, : 16 * packed].reshape(-1, 16, packed)
            data = (flat * (1 << np.arange(packed))).sum(axis=2).astype(u8)
            if signed:
                data = (data ^ u8(8)) - u8(8)
        tiles = data.reshape(-1, n, rows, 16)  # [warp, tile, row, column]
        if square:
            tiles = tiles.transpose(0, 1, 3, 2)
        halves = tiles.shape[2] // 8  # rows g, then g + 8; lane 4 g + t: columns from 4 t
        for i, row in enumerate(outs):
            tile, half = divmod(i, halves)
            part = np.ascontiguousarray(tiles[:, tile, 8 * half : 8 * half + 8])
            _set(v, row, warps, part.view(u32), m)

    return run


def _stsm_bytes(b: Build) -> InstFn:
    """MT168: 16 rows of 8 bytes, stored transposed: 8 rows of 16 bytes."""
    b.only("8", "MT168", "2", "4")
    n = _count(b)
    place = locate(b, "shared", mem_of(b), 16, "write")
    data = [o for o in b.s if isinstance(o, Reg)]
    rows = [b.row(data[0], i) for i in range(n)]

    def run(v: View, m: Arr | None) -> None:
        warps = _warps(v, m)
        tiles = np.stack(
            [v.U[r].reshape(-1, 8, 4)[warps] for r in rows], axis=1
        )  # lane 4 g + t: bytes from 4 t of row g
        memory, at = place(v, _first(warps, 8 * n))
        memory.store(at, 16, tiles.reshape(-1, 4))

    return run


OPS: Final[dict[str, Builder]] = {"LDSM": ldsm, "STSM": stsm}
