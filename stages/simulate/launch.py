"""One launch: geometry, constant bank 0, special registers, the blocks that are resident at the same time."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ir_format.target import ABSENT, Target
from stages.simulate.build import Build, Unsupported
from stages.simulate.image import Kernel
from stages.simulate.machine import Bundle, Fault, Machine
from stages.simulate.memory import CONST_HI, LOCAL_HI, PARAM_HI, SHARED_HI
from stages.simulate.state import EXITED, Lanes, RowMaker, View

Arr = NDArray[Any]
Dim3 = tuple[int, int, int]
u32, i64 = np.uint32, np.int64

#: Lanes that are resident at the same time (whole blocks, at least one): enough to hide numpy's call overhead.
LANES: Final = 2048
MAX_THREADS: Final = 1024
Stub = Callable[[Machine, Bundle, Arr], None]


def bank0(
    target: Target, kernel: Kernel, grid: Dim3, block: Dim3, params: bytes, local: int, dynamic: int, cluster: Dim3
) -> bytes:
    """Constant bank 0 as the driver fills it for a launch."""
    m = target.bank0
    data = bytearray(kernel.param_base + max(len(params), kernel.param_size))
    data[: len(kernel.bank0)] = kernel.bank0[: len(data)]

    def word(at: int, value: int) -> None:
        if at != ABSENT and at + 4 <= len(data):
            struct.pack_into("<I", data, at, value & 0xFFFFFFFF)

    def window(at: int, upper: int) -> None:
        if at != ABSENT:
            word(at, 0)
            word(at + 4, upper)

    for axis in range(3):
        word(m.ntid[axis], block[axis])
        word(m.nctaid[axis], grid[axis])
        if m.cluster_nctaid != ABSENT:
            word(m.cluster_nctaid + 4 * axis, cluster[axis])
    word(m.stack_init, local)
    window(m.local_window, LOCAL_HI)
    window(m.shared_window, SHARED_HI)
    window(m.const_window, CONST_HI)
    window(m.param_window, PARAM_HI)
    word(m.descriptor, 0)
    word(m.dyn_smem, dynamic)
    word(m.gridid, 1)
    word(m.smem_bias, 0)
    word(m.nsmid, 1)
    word(m.is_explicit_cluster, int(cluster != (1, 1, 1)))
    data[kernel.param_base : kernel.param_base + len(params)] = params
    return bytes(data)


class Launch:
    """Geometry and per-lane facts; ``start(lanes, first)`` makes a set of blocks resident."""

    def __init__(
        self,
        target: Target,
        kernel: Kernel,
        grid: Dim3,
        block: Dim3,
        cluster: Dim3,
        shared: int,
        stubs: dict[int, Stub],
    ) -> None:
        self.target = target
        self.kernel = kernel
        self.grid, self.block, self.cluster = grid, block, cluster
        self.shared = shared
        self.threads = block[0] * block[1] * block[2]
        self.warps = -(-self.threads // 32)
        self.blocks = grid[0] * grid[1] * grid[2]
        self.cluster_size = cluster[0] * cluster[1] * cluster[2]
        self.stubs = stubs
        resident = max(1, LANES // (self.warps * 32))
        resident = max(self.cluster_size, resident // self.cluster_size * self.cluster_size)
        self.resident = min(resident, self.blocks)
        self.bar_result: Arr = np.zeros(self.resident * self.warps * 32, u32)
        self.order = self._block_order()
        self.machine: Machine | None = None
        self.looks = 0
        self.cluster_arrivals: dict[int, ClusterArrival] = {}

    def _block_order(self) -> Arr:
        """Linear block numbers in the order they become resident: cluster by cluster."""
        gx, gy, gz = self.grid
        cx, cy, cz = self.cluster
        n = np.arange(self.blocks)
        x, y, z = n % gx, n // gx % gy, n // (gx * gy)
        within = x % cx + cx * (y % cy + cy * (z % cz))
        which = x // cx + (gx // cx) * (y // cy + (gy // cy) * (z // cz))
        return np.asarray(np.lexsort((within, which)))

    def start(self, lanes: Lanes, first: int, shared_stride: int, local_stride: int) -> Arr:
        """Fill the per-lane tables for the blocks ``order[first:]``; the mask of lanes that exist."""
        per = self.warps * 32
        lane = np.arange(lanes.n, dtype=i64)
        slot = lane // per
        number = first + slot
        exists = (lane % per < self.threads) & (number < self.blocks)
        linear = self.order[np.minimum(number, self.blocks - 1)]
        thread = lane % per
        bx, by, _ = self.block
        gx, gy, _ = self.grid
        wide = lanes.wide
        rank = slot % self.cluster_size
        fresh = {
            "block": slot, "shared_at": slot * shared_stride, "local_at": lane * local_stride, "rank": rank,
            "cluster_at": (slot - rank) * shared_stride, "ctaid_x": linear % gx, "ctaid_y": linear // gx % gy,
            "ctaid_z": linear // (gx * gy),
            "tid_x": thread % bx, "tid_y": thread // bx % by, "tid_z": thread // (bx * by), "thread": thread,
            "linear": linear,
        }  # fmt: skip
        for name, values in fresh.items():
            if name in wide:
                wide[name][:] = values
            else:
                wide[name] = values.astype(i64)
        lanes.refresh()
        return exists

    def describe(self, lanes: Lanes, lane: int) -> str:
        """A thread in words."""
        w = lanes.wide
        cta = ",".join(str(int(w[f"ctaid_{a}"][lane])) for a in "xyz")
        tid = ",".join(str(int(w[f"tid_{a}"][lane])) for a in "xyz")
        return f"block ({cta}) thread ({tid})"

    # --- special registers ---

    def special(self, name: str, b: Build) -> tuple[int, ...]:
        """Rows that hold a special register (low word, then the high word if it has one)."""
        maker = _SPECIAL.get(name)
        if maker is not None:
            return (b.ctx.lanes.row(name, lambda lanes: maker(self, lanes)),)
        if name in ("SRZ", "SR_ZERO", ""):
            return (255, 255)
        raise Unsupported(f"special register {name} is not supported by the simulator")

    def tick(self) -> int:
        """A cycle count that grows with every read: warp instructions so far plus reads so far."""
        self.looks += 1
        return self.looks + (self.machine.executed if self.machine is not None else 0)

    # --- clusters ---

    def cluster_base(self, v: View, address: Arr, act: Arr | None) -> Arr:
        """For each lane, the offset of the shared memory that a cluster address names."""
        rank = (address >> u32(24)).astype(i64)
        if int(rank.max(initial=0)) >= self.cluster_size:
            raise Fault(f"shared address {int(address.max()):#x} names a block that the cluster does not have")
        base = v.wide("cluster_at")
        stride = -(-max(self.shared, 32) // 32) * 32
        return (base if act is None else base[act]) + rank * stride

    def cluster_barrier(self, machine: Machine, bundle: Bundle, arrive: bool) -> bool:
        """Arrive at, or wait for, the barrier of the bundle's clusters."""
        mask = bundle.mask()
        view = bundle.view
        clusters = view.wide("block") // self.cluster_size
        bundle.pc += 1
        present = np.unique(clusters[mask])
        if not arrive:
            machine.retire(bundle)
            machine.park(bundle, mask)
        for cluster in present:
            state = self.cluster_arrivals.setdefault(int(cluster), ClusterArrival())
            mine = mask & (clusters == cluster)
            if machine.watcher is not None:
                machine.watcher.arrived(state, view, mine, bundle.pc - 1)
            if arrive:
                state.arrived += int(np.count_nonzero(mine))
            else:
                state.groups.append((view.lo, mine, bundle.pc))
            self.cluster_check(machine, int(cluster))
        return arrive

    def cluster_check(self, machine: Machine, cluster: int) -> None:
        """Release the waiting threads of a cluster once all its live threads have arrived."""
        state = self.cluster_arrivals.get(cluster)
        if state is None:
            return
        lanes = machine.lanes
        alive = int(np.count_nonzero((lanes.wide["block"] // self.cluster_size == cluster) & ~lanes.preds[EXITED]))
        if state.arrived >= alive and not state.complete:
            state.complete = True
        if state.complete and state.groups:
            waiting = sum(int(np.count_nonzero(g[1])) for g in state.groups)
            if machine.watcher is not None:
                machine.watcher.released(
                    state, (lanes.wide["block"] // self.cluster_size == cluster) & lanes.preds[EXITED]
                )
            for lo, mine, pc in state.groups:
                machine.unpark(machine.spawn(lo, mine, pc))
            state.groups = []
            state.left += waiting
            if state.left >= alive:
                state.complete, state.left, state.arrived = False, 0, max(0, state.arrived - alive)

    def stub(self, address: int) -> Stub | None:
        """The driver function at an address, if there is any."""
        return self.stubs.get(address)


class ClusterArrival:
    """One cluster's barrier."""

    __slots__ = ("arrived", "complete", "groups", "known", "left")

    def __init__(self) -> None:
        self.known: Any = None
        self.arrived = 0
        self.complete = False
        self.left = 0
        self.groups: list[tuple[int, Arr, int]] = []


def _lane_id(lanes: Lanes) -> Arr:
    return np.arange(lanes.n, dtype=i64) & 31


def _mask(fn: Callable[[Arr], Arr]) -> Callable[[Launch, Lanes], Arr]:
    return lambda launch, lanes: fn(_lane_id(lanes)).astype(u32)


def _wide(name: str) -> Callable[[Launch, Lanes], Arr]:
    return lambda launch, lanes: lanes.wide[name].astype(u32)


def _all(fn: Callable[[Launch], int]) -> Callable[[Launch, Lanes], Arr]:
    return lambda launch, lanes: np.full(lanes.n, fn(launch) & 0xFFFFFFFF, u32)


def _packed_tid(launch: Launch, lanes: Lanes) -> Arr:
    w = lanes.wide
    return np.asarray((w["tid_x"] | w["tid_y"] << 16 | w["tid_z"] << 26).astype(u32))


def _virtid(launch: Launch, lanes: Lanes) -> Arr:
    """Warp number in bits 8-14, SM number (0) above (measured in the code for %warpid and %smid)."""
    return ((lanes.wide["thread"] // 32) << 8).astype(u32)


_SPECIAL: Final[dict[str, Callable[[Launch, Lanes], Arr]]] = {
    "SR_TID.X": _wide("tid_x"), "SR_TID.Y": _wide("tid_y"), "SR_TID.Z": _wide("tid_z"), "SR_TID": _packed_tid,
    "SR_CTAID.X": _wide("ctaid_x"), "SR_CTAID.Y": _wide("ctaid_y"), "SR_CTAID.Z": _wide("ctaid_z"),
    "SR_LANEID": _mask(lambda x: x), "SR_EQMASK": _mask(lambda x: 1 << x), "SR_LTMASK": _mask(lambda x: (1 << x) - 1),
    "SR_LEMASK": _mask(lambda x: (2 << x) - 1), "SR_GTMASK": _mask(lambda x: 0xFFFFFFFF & ~((2 << x) - 1)),
    "SR_GEMASK": _mask(lambda x: 0xFFFFFFFF & ~((1 << x) - 1)), "SR_VIRTID": _virtid,
    "SR_SWINHI": _all(lambda x: SHARED_HI),
    "SR_SWINLO": _all(lambda x: 0), "SR_LWINHI": _all(lambda x: LOCAL_HI), "SR_CgaCtaId": _wide("rank"),
    "SR_CGA_CTAID": _wide("rank"),
    "SR_CgaSize": _all(lambda x: x.cluster_size), "SR_SMEMSZ": _all(lambda x: x.shared),
    "SR_NTID": _all(lambda x: x.threads),
    "SR_VIRTUALSMID": _all(lambda x: 0),
    "SR_VIRTCFG": _all(lambda x: x.warps << 8), "SR_CTXADDR": _all(lambda x: 0),
    "SR_LMEMHIOFF": _all(lambda x: 0),  # lowest address of the stack: -O0 code checks against it (measured)
}  # fmt: skip
__all__ = ["LANES", "Launch", "RowMaker", "Stub", "bank0"]
