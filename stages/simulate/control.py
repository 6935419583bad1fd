"""Control flow: branches, calls, convergence barriers, CTA barriers, exits.

A control instruction gets the machine and the bundle. It moves the bundle and returns whether the same bundle
continues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ir_format.model import INV, ZERO, Imm, Name, Reg, Sym
from stages.simulate.build import Arr, Build, Builder, Get, InstFn, View, count, join64, put
from stages.simulate.machine import Arrival, Bundle, CtlFn, Fault, Machine
from stages.simulate.members import leave
from stages.simulate.state import B_EXITED, B_WARPSYNC, EXITED, SINK, ballot, spread, warp_any

u32, u64 = np.uint32, np.uint64
CtlBuilder = Callable[[Build], CtlFn]
Who = Callable[[Bundle], "Arr | None"]
#: After this many YIELDs of a spinning bundle the lanes that wait for it are released.
PATIENCE: Final = 512
ZERO_REGISTER: Final = 255


def trivially_true(op: Reg | None) -> bool:
    """Is the predicate absent or PT?"""
    return op is None or (op.num == ZERO and not op.flags & INV)


def condition(b: Build, own: bool = True) -> Who:
    """The lanes of a bundle for which guard and condition operand hold; None = all of them."""
    ops: list[Reg] = [] if trivially_true(b.inst.guard) or b.inst.guard is None else [b.inst.guard]
    if own:
        ops += [o for o in b.ps if isinstance(o, Reg) and not trivially_true(o)]
    gets = [b.p(o) for o in ops]
    if not gets:
        return lambda bundle: None

    def who(bundle: Bundle) -> Arr | None:
        mask = gets[0](bundle.view)
        for g in gets[1:]:
            mask = mask & g(bundle.view)
        if bundle.m is not None:
            mask = mask & bundle.m
        n = int(count(mask))
        return None if n == bundle.active else mask

    return who


def guarded_ctl(b: Build, all_lanes: CtlFn, some: Callable[[Machine, Bundle, Arr], bool]) -> CtlFn:
    """Run ``all_lanes`` when every lane takes part, nothing when none does, ``some`` else."""
    who = condition(b)

    def run(machine: Machine, bundle: Bundle) -> bool:
        mask = who(bundle)
        if mask is None:
            return all_lanes(machine, bundle)
        if not count(mask):
            bundle.pc += 1
            return True
        return some(machine, bundle, mask)

    return run


def target_of(b: Build) -> int:
    """Instruction index of the immediate target."""
    for op in b.inst.srcs:
        if isinstance(op, Imm):
            return int(b.ctx.code.index(op.value))
    raise b.refuse("no target")


def bra(b: Build) -> CtlFn:
    """Branch. .DIV branches if the warp's active group is not the whole mask, .CONV if it is; .U promises
    uniformity."""
    b.only("U", "DIV", "CONV", "INC", "DEC", "ANY", "ALL")
    target = target_of(b)
    if "ANY" in b.mods or "ALL" in b.mods:
        return _bra_vote(b, target, "ALL" in b.mods)
    if "DIV" in b.mods or "CONV" in b.mods:
        return _bra_div(b, target)

    def jump(machine: Machine, bundle: Bundle) -> bool:
        bundle.pc = target
        return True

    return guarded_ctl(b, jump, lambda machine, bundle, mask: machine.split(bundle, mask, target))


def _branch(machine: Machine, bundle: Bundle, taken: Arr, target: int) -> bool:
    """Move the lanes ``taken`` (none, some or all of the bundle) to ``target``."""
    n = int(count(taken))
    if n == 0:
        bundle.pc += 1
        return True
    if n == bundle.active:
        bundle.pc = target
        return True
    return machine.split(bundle, taken, target)


def _bra_vote(b: Build, target: int, every: bool) -> CtlFn:
    """A branch that the lanes of a warp take together: if the guard is true in any lane (.ALL: in every lane)."""
    who = condition(b)

    def run(machine: Machine, bundle: Bundle) -> bool:
        asked = who(bundle)
        act = bundle.mask()
        taken = act if asked is None else act & ~warp_any(act & ~asked) if every else act & warp_any(asked)
        return _branch(machine, bundle, taken, target)

    return run


def _bra_div(b: Build, target: int) -> CtlFn:
    registers = [o for o in b.s if isinstance(o, Reg)]
    want = b.u(registers[0]) if registers else None
    converged = "CONV" in b.mods
    who = condition(b)

    def run(machine: Machine, bundle: Bundle) -> bool:
        view = bundle.view
        act = bundle.mask()
        asked = who(bundle)
        if want is None:
            wanted = np.ones(view.n, np.bool_)
        else:
            wanted = spread(want(view)[::32])
        alive = ~view.P[EXITED]
        # ptxas tests with this branch whether all lanes have the same mask: the warp branches if some lane is not
        # active (otherwise groups with several masks would continue as one)
        if asked is not None and not converged:
            return _branch(machine, bundle, act & warp_any(wanted & alive & ~asked), target)
        divergent = warp_any(wanted & alive & ~act)
        if converged:
            divergent = ~divergent
        taken = act & divergent if asked is None else asked & divergent
        return _branch(machine, bundle, taken, target)

    return run


def _register_target(b: Build) -> Get:
    """Code addresses from a 64-bit register operand plus the encoded offset."""
    register = next((o for o in b.s if isinstance(o, Reg)), None)
    absolute = b.inst.op in ("RET", "CALL", "JMX", "JMXU") and "REL" not in b.mods
    offset = next((o.value for o in b.s if isinstance(o, Imm)), 0 if absolute else b.address + 16)
    if register is None:
        raise b.refuse("no register target")
    low, high = b.row(register, 0), b.row(register, 1)
    add = u64(offset & 0xFFFFFFFFFFFFFFFF)
    return lambda v: join64(v.U[low], v.U[high]) + add


def indirect(b: Build) -> CtlFn:
    """BRX, JMX, RET: every lane to the address in its register."""
    get = _register_target(b)
    code = b.ctx.code

    def jump(machine: Machine, bundle: Bundle) -> bool:
        return machine.scatter(bundle, code.indices(get(bundle.view), bundle.mask()))

    def some(machine: Machine, bundle: Bundle, mask: Arr) -> bool:
        targets = code.indices(get(bundle.view), mask)
        return machine.scatter(bundle, np.where(mask, targets, bundle.pc + 1))

    return guarded_ctl(b, jump, some)


def call(b: Build) -> CtlFn:
    """CALL. NOINC: the return address is already in a register, so only the jump remains. Driver functions run here."""
    registers = [o for o in b.s if isinstance(o, Reg)]
    if any(isinstance(o, Sym) for o in b.inst.srcs):
        raise b.refuse("unresolved symbol")
    if registers:
        return _call_register(b)
    value = next((o.value for o in b.inst.srcs if isinstance(o, Imm)), -1)
    stub = b.ctx.launch.stub(value)
    if stub is not None:
        return _call_stub(b, stub)
    target = target_of(b)

    def jump(machine: Machine, bundle: Bundle) -> bool:
        bundle.pc = target
        return True

    return guarded_ctl(b, jump, lambda machine, bundle, mask: machine.split(bundle, mask, target))


def _call_stub(b: Build, stub: Callable[[Machine, Bundle, Arr], None]) -> CtlFn:
    def run(machine: Machine, bundle: Bundle) -> bool:
        mask = who(bundle)
        machine.before_stub(bundle)
        stub(machine, bundle, bundle.mask() if mask is None else mask)
        bundle.pc += 1
        return True

    who = condition(b)
    return run


def _call_register(b: Build) -> CtlFn:
    get = _register_target(b)
    code, launch = b.ctx.code, b.ctx.launch

    def go(machine: Machine, bundle: Bundle, mask: Arr) -> bool:
        addresses = get(bundle.view)
        found = np.unique(addresses[mask])
        if len(found) == 1:
            stub = launch.stub(int(found[0]))
            if stub is not None:
                machine.before_stub(bundle)
                stub(machine, bundle, mask)
                bundle.pc += 1
                return True
        return machine.scatter(bundle, np.where(mask, code.indices(addresses, mask), bundle.pc + 1))

    return guarded_ctl(b, lambda machine, bundle: go(machine, bundle, bundle.mask()), go)


def exit_(b: Build) -> CtlFn:
    """End of the thread."""
    return guarded_ctl(
        b,
        lambda machine, bundle: machine.exit(bundle, bundle.mask()),
        lambda machine, bundle, mask: machine.exit(bundle, mask),
    )


def trap(b: Build) -> CtlFn:
    """A trap is an error of the launch."""

    def fail(machine: Machine, bundle: Bundle, mask: Arr) -> bool:
        raise Fault("trap executed", int(mask.argmax()))

    return guarded_ctl(b, lambda machine, bundle: fail(machine, bundle, bundle.mask()), fail)


# --- convergence -----------------------------------------------------------------------------------------------


def _barrier_number(b: Build) -> int:
    for op in (*b.inst.dsts, *b.inst.srcs):
        if isinstance(op, Reg) and op.file == "B":
            return op.num
    raise b.refuse("no convergence barrier")


def bssy(b: Build) -> InstFn:
    """The active lanes of each warp become the barrier's members."""
    k = _barrier_number(b)

    def run(v: View, m: Arr | None) -> None:
        if m is None:
            v.B[k][:] = 0xFFFFFFFF
        else:
            put(v.B[k], ballot(m).repeat(32), m)

    return run


def bsync(b: Build) -> CtlFn:
    """Wait for the members that have not exited."""
    k = _barrier_number(b)
    firm = "RECONVERGENT" in b.mods or "RELIABLE" in b.mods

    def some(machine: Machine, bundle: Bundle, mask: Arr) -> bool:
        machine.split(bundle, mask, bundle.pc)
        return False

    who = condition(b)

    def run(machine: Machine, bundle: Bundle) -> bool:
        mask = who(bundle)
        if mask is None:
            machine.firm[k, bundle.view.lo : bundle.view.hi][bundle.mask()] = firm
            return machine.converge(bundle, k)
        if not count(mask):
            bundle.pc += 1
            return True
        return some(machine, bundle, mask)

    return run


def break_(b: Build) -> CtlFn:
    """The lanes leave the barrier."""
    k = _barrier_number(b)
    who = condition(b)

    def run(machine: Machine, bundle: Bundle) -> bool:
        mask = who(bundle)
        view = bundle.view
        lanes = bundle.mask() if mask is None else mask
        leave(view, k, lanes)
        bundle.pc += 1
        if machine.waiting[k] and count(lanes):
            n = len(machine.ready)
            machine.release(k, view, warp_any(lanes))
            return len(machine.ready) == n
        return True

    return run


def bmov(b: Build) -> InstFn:
    """Convergence barrier to register or back; .CLEAR empties it."""
    b.only("32", "CLEAR")
    if any(isinstance(o, Name) for o in (*b.inst.dsts, *b.inst.srcs)):
        return _mask_move(b)
    destination = (*b.inst.dsts,)[0]
    k = _barrier_number(b)
    clear = "CLEAR" in b.mods
    if isinstance(destination, Reg) and destination.file == "B":
        source = next(o for o in b.inst.srcs if not (isinstance(o, Reg) and o.file == "B"))
        get = b.u(source)

        def to_barrier(v: View, m: Arr | None) -> None:
            put(v.B[k], get(v), m)

        return to_barrier
    d = b.out(destination) if isinstance(destination, Reg) else SINK

    def from_barrier(v: View, m: Arr | None) -> None:
        put(v.U[d], v.B[k], m)
        if clear:
            put(v.B[k], np.zeros_like(v.B[k]), m)

    return from_barrier


def _mask_move(b: Build) -> InstFn:
    """The warp's mask of lanes that are here (MACTIVE), or that have exited (MEXITED). What code writes there says whom
    its WARPSYNC need not wait for: ptxas has it around functions of the driver that textures of sm_107 call."""
    destination, source = b.inst.dsts[0], b.inst.srcs[0]
    if isinstance(destination, Name):
        if destination.name != "MEXITED":
            raise b.refuse("writes of that mask")
        get = b.u(source)
        return lambda v, m: put(v.B[B_EXITED], get(v), m)
    if not isinstance(source, Name) or source.name not in ("MACTIVE", "MEXITED"):
        raise b.refuse("reads of that mask")
    d = b.out(destination) if isinstance(destination, Reg) else SINK
    active = source.name == "MACTIVE"

    def read(v: View, m: Arr | None) -> None:
        if active:
            put(v.U[d], np.full(v.n, 0xFFFFFFFF, np.uint32) if m is None else ballot(m).repeat(32), m)
        else:
            put(v.U[d], v.B[B_EXITED] | ballot(v.P[EXITED]).repeat(32), m)

    return read


def yield_(b: Build) -> CtlFn:
    """A hint to switch warps. It guarantees progress of lanes that wait at a plain convergence barrier for this
    bundle."""

    def run(machine: Machine, bundle: Bundle) -> bool:
        bundle.pc += 1
        if not any(machine.waiting):
            return True
        bundle.yields += 1  # starts at 0 whenever lanes converge or diverge
        if bundle.yields % PATIENCE:
            return True
        return not machine.loosen(bundle)

    return run


def warpsync(b: Build) -> CtlFn:
    """Wait for the lanes of the mask; they continue as one group. .COLLECTIVE: the same, for one collective
    instruction. .EXCLUSIVE: lanes outside the mask that are here too are split off. (sm_80 to sm_89: ptxas puts it in
    front of REDUX with a mask in a register, where lanes with several masks may have converged.)"""
    b.only("ALL", "COLLECTIVE", "EXCLUSIVE")
    exclusive = "EXCLUSIVE" in b.mods or "COLLECTIVE" in b.mods
    values = [o for o in b.s if isinstance(o, (Reg, Imm))]
    want: Get | None = None if "ALL" in b.mods or not values else b.u(values[0])
    who = condition(b)

    def run(machine: Machine, bundle: Bundle) -> bool:
        mask = who(bundle)
        if mask is not None:
            if not count(mask):
                bundle.pc += 1
                return True
            return machine.split(bundle, mask, bundle.pc)
        view = bundle.view
        act = bundle.mask()
        if exclusive and want is not None:
            masks, here = want(view).reshape(-1, 32), act.reshape(-1, 32)
            first = masks[np.arange(len(masks)), here.argmax(1)]
            same = act & (masks == first[:, None]).reshape(-1)
            if count(same) != count(act):
                return machine.part(bundle, same)
        members = u32(0xFFFFFFFF) if want is None else want(view)
        np.copyto(view.B[B_WARPSYNC], members & ~view.B[B_EXITED], where=act)
        return machine.converge(bundle, 16)

    return run


# --- CTA barriers ----------------------------------------------------------------------------------------------


def _same_operand(get: Get, bundle: Bundle) -> Arr | None:
    """The lanes whose barrier operand equals the first lane's, if lanes of other warps have another value."""
    values, mask = get(bundle.view), bundle.mask()
    like = mask & (values == values[int(mask.argmax())])
    if count(like) == bundle.active:
        return None
    if count(warp_any(like) & mask & ~like):
        raise Fault("barrier operand differs between threads")
    return np.asarray(like)


def _uniform_value(get: Get, bundle: Bundle) -> int:
    return int(get(bundle.view)[int(bundle.mask().argmax())])


def _take(machine: Machine, bundle: Bundle, some: Arr) -> Bundle:
    """Split lanes ``some`` (not all) into a bundle of their own; the rest stays before the same instruction."""
    rest = bundle.mask() & ~some
    machine.retire(bundle)
    machine.inherit(machine.spawn(bundle.view.lo, rest, bundle.pc), bundle)
    taken = machine.spawn(bundle.view.lo, some, bundle.pc)
    machine.inherit(taken, bundle)
    assert taken is not None
    return taken


def bar(b: Build) -> CtlFn:
    """BAR.SYNC, .ARV, .RED with an optional thread count."""
    b.only("SYNC", "ARV", "RED", "DEFER_BLOCKING", "POPC", "AND", "OR", "SYNCALL")
    values = [o for o in b.s if isinstance(o, (Reg, Imm))]
    if not values and "SYNCALL" not in b.mods:
        raise b.refuse()
    number = b.u(values[0]) if values else None
    counts = [o for o in values[1:] if not (isinstance(o, Imm) and o.value == 0)]
    expected = b.u(counts[0]) if counts else None
    if (
        counts and isinstance(counts[0], Reg) and counts[0] == values[0]
    ):  # one register holds both: the number in the lower half, the count in the upper (measured)
        packed = b.u(counts[0])
        number, expected = (lambda v: packed(v) & u32(0xF)), (lambda v: packed(v) >> u32(16))
    waits = "ARV" not in b.mods
    reduces = "RED" in b.mods
    kind = b.pick("POPC", "AND", "OR", default="POPC")
    value = b.psrc(0, True)
    launch = b.ctx.launch
    guard = condition(b, own=False)

    def finish(machine: Machine, lo: int, mask: Arr, arrival: Arrival) -> None:
        result = {
            "POPC": arrival.true,
            "AND": 0xFFFFFFFF * (arrival.true == arrival.total),
            "OR": 0xFFFFFFFF * (arrival.true > 0),
        }[kind]
        launch.bar_result[lo : lo + len(mask)][mask] = result

    def run(machine: Machine, bundle: Bundle) -> bool:
        mask = guard(bundle)
        if mask is not None:
            if not count(mask):
                bundle.pc += 1
                return True
            return machine.split(bundle, mask, bundle.pc)
        for get in (number, expected):
            like = _same_operand(get, bundle) if get is not None else None
            if like is not None:  # these lanes now, the others at their turn
                some = _take(machine, bundle, like)
                return run(machine, some) and False
        which = _uniform_value(number, bundle) if number is not None else 0
        if not 0 <= which < 16:
            raise Fault(f"barrier {which} does not exist")
        threads = _uniform_value(expected, bundle) if expected is not None else 0
        if threads % 32:
            raise Fault(f"barrier thread count {threads} is not a multiple of 32")
        votes = value(bundle.view) if reduces else None
        return machine.barriers.arrive(bundle, which, threads, waits, finish if reduces else None, votes)

    return run


def cluster_barrier(b: Build) -> CtlFn:
    """UCGABAR_ARV and UCGABAR_WAIT: the barrier of a cluster's threads."""
    launch = b.ctx.launch
    arrive = b.inst.op == "UCGABAR_ARV"

    def run(machine: Machine, bundle: Bundle) -> bool:
        return bool(launch.cluster_barrier(machine, bundle, arrive))

    return run


def silent(b: Build) -> InstFn:
    """Scheduling hints."""
    return lambda v, m: None


def register_count(b: Build) -> InstFn:
    """USETMAXREG: a request for registers is granted at once; registers that are given away lose their values."""
    b.only("TRY_ALLOC", "DEALLOC", "CTAPOOL")
    if "DEALLOC" in b.mods:
        kept = b.inst.srcs[0]
        assert isinstance(kept, Imm)
        rows = range(kept.value, ZERO_REGISTER)

        def lose(v: View, m: Arr | None) -> None:
            for row in rows:
                put(v.U[row], v.U[row] ^ u32(0x5A5A5A5A), m)

        return lose
    got = b.pdst(0)
    return lambda v, m: put(v.P[got], np.ones(1, np.bool_), m)


CONTROL: Final[dict[str, CtlBuilder]] = {
    "BRA": bra, "BRX": indirect, "BRXU": indirect, "JMX": indirect, "JMXU": indirect, "JMP": bra, "RET": indirect,
    "CALL": call, "EXIT": exit_,
    "KILL": exit_, "BSYNC": bsync, "YIELD": yield_, "BREAK": break_, "WARPSYNC": warpsync, "BAR": bar, "BPT": trap,
    "UCGABAR_ARV": cluster_barrier,
    "UCGABAR_WAIT": cluster_barrier,
}  # fmt: skip
OPS: Final[dict[str, Builder]] = {
    "BSSY": bssy, "BMOV": bmov, "NANOSLEEP": silent, "ENDCOLLECTIVE": silent, "ACQBULK": silent,
    "PREEXIT": silent, "USETMAXREG": register_count,
}  # fmt: skip
