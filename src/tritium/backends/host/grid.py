"""Running a grid from its caller: alone, or with the pool's threads.

``run_grid(pool, record, arguments, programs, threads)`` is called with the GIL and returns 0, or 1
with an exception set. A grid that is reckoned to take no time runs at once. Otherwise the GIL is
dropped, and the caller runs programs alone until what is left seems worth the help of others; the
time that programs take is measured all along and kept for the next launch. Where a launch takes
long, signals are looked at now and then: Ctrl-C ends it between two programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Module, V, const, double, i1, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from . import waiting
from .layout import Launch, Pool, Record, Slot
from .writer import HostBuilder, begin

PYTHON = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_CheckSignals", "PyErr_NoMemory")
"""The functions of CPython that are called."""
ALL_TAKEN = (1 << 32) - 1
"""The low half of a ticket where nothing can be claimed."""
GROWTH = 8
"""How many times as much a thread runs at once as the time before, at most."""
_MOST_UNITS = 1 << 31
_PAUSES = 200
"""How often a caller looks for the end of a grid before it offers its CPU to others."""


def write(module: Module, target: Target) -> None:
    """Write ``run_grid`` and what it needs; ``arena``, ``drain`` and ``grow`` are ``pool``'s."""
    _timed(module, target)
    _remember(module, target)
    _acquire(module, target)
    _alone(module, target)
    _join(module, target)
    _together(module, target)
    _work(module, target)
    _run_grid(module, target)


def chunk(b: HostBuilder, pool: V, slot: V, scratch: V, caller: V, units: tuple[V, V]) -> V:
    """Run claimed units of a slot; whether the caller (null: a worker) was interrupted."""
    first, last = _programs(b, slot, Slot.UNIT, Slot.PROGRAMS, units)
    worker, joint = b.new("worker"), b.new("joint")
    done = b.gep(slot, Slot.DONE)
    count = b.trunc(b.sub(units[1], units[0]), i32)
    stop = b.variable(const(i1, 0), "stop")
    b.leave(b.null(caller), worker)
    stop.set(b.call("timed", i1, (pool, caller, first, last)))
    b.atomic_rmw("add", done, count, align=8, ordering="seq_cst")
    b.br(joint)
    b.goto(worker)
    entry, arguments = b.get(slot, Slot.ENTRY, ptr), b.get(slot, Slot.ARGUMENTS, ptr)
    b.call(entry, void, (arguments, first, last, scratch))
    b.atomic_rmw("add", done, count, align=8, ordering="seq_cst")
    waited = b.icmp("ne", b.get_atomic(slot, Slot.WAITING, i32, "seq_cst"), const(i32, 0))
    with b.when(waited):
        b.call("wake", void, (pool, done, const(i32, waiting.EVERYBODY)))
    b.br(joint)
    b.goto(joint)
    return stop.get()


def _programs(
    b: HostBuilder, base: V, unit_field: int, programs_field: int, units: tuple[V, V]
) -> tuple[V, V]:
    """The programs of a range of units."""
    unit, programs = b.get(base, unit_field), b.get(base, programs_field)
    return b.mul(units[0], unit), b.umin(b.mul(units[1], unit), programs)


def _timed(module: Module, target: Target) -> None:
    """``timed(pool, launch, first, last)``: run programs on the caller; whether to stop then."""
    params = [(ptr, "pool"), (ptr, "launch"), (i64, "first"), (i64, "last")]
    b, (pool, launch, first, last) = begin(module, target, "timed", i1, params)
    entry, arguments = b.get(launch, Launch.ENTRY, ptr), b.get(launch, Launch.ARGUMENTS, ptr)
    start = b.now()
    b.call(entry, void, (arguments, first, last, b.get(launch, Launch.SCRATCH, ptr)))
    end = b.now()
    # A clock that differs between CPUs may run backwards.
    taken = b.sitofp(b.smax(b.sub(end, start), const(i64, 1)), double)
    b.put(launch, Launch.TIME, b.fadd(b.get(launch, Launch.TIME, double), taken))
    b.put(launch, Launch.RAN, b.add(b.get(launch, Launch.RAN), b.sub(last, first)))
    time, ran = b.get(launch, Launch.TIME, double), b.get(launch, Launch.RAN)
    b.put(launch, Launch.COST, b.fdiv(time, b.sitofp(ran, double)))
    b.ret(b.call("signals", i1, (pool, launch)))


def _remember(module: Module, target: Target) -> None:
    """``remember(record, time, ran)``: how long programs take, for the next launch.

    Less than before counts at once, more counts half: a thread may have been interrupted.
    """
    params = [(ptr, "record"), (double, "time"), (i64, "ran")]
    b, (record, time, ran) = begin(module, target, "remember", void, params)
    now = b.fdiv(time, b.sitofp(ran, double))
    before = b.get(record, Record.COST, double)
    average = b.fmul(b.fadd(now, before), const(double, 0.5))
    known = b.fcmp("ogt", before, const(double, 0.0))
    more = b.and_(known, b.fcmp("ogt", now, before))
    b.put(record, Record.COST, b.select(more, average, now))
    b.ret()


def _acquire(module: Module, target: Target) -> None:
    """``acquire(pool)``: a free slot, which is the caller's then; null where there is none."""
    b, (pool,) = begin(module, target, "acquire", ptr, [(ptr, "pool")])
    first = b.gep(pool, Pool.SLOTS)
    with b.loop(const(i64, 0), const(i64, Slot.COUNT)) as loop:
        slot = b.gep(first, b.mul(loop.index, const(i64, Slot.SIZE)))
        taken = b.new("taken")
        b.leave(b.icmp("ne", b.get_atomic(slot, Slot.BUSY, i32), const(i32, 0)), taken)
        flag = b.gep(slot, Slot.BUSY)
        _, won = b.cmpxchg(flag, const(i32, 0), const(i32, 1), align=8)
        lost = b.new("lost")
        b.leave(b.not_(won), lost)
        b.ret(slot)
        b.goto(lost)
        b.br(taken)
        b.goto(taken)
    b.ret(const(ptr, 0))


# ---- alone ---------------------------------------------------------------------------------------


def _alone(module: Module, target: Target) -> None:
    """``alone(pool, launch, next)``: run units until sharing the others pays; the next unit."""
    params = [(ptr, "pool"), (ptr, "launch"), (i64, "next")]
    b, (pool, launch, start) = begin(module, target, "alone", i64, params)
    following = b.variable(start, "following")
    allowed = b.variable(const(i64, 1), "allowed")
    units, unit = b.get(launch, Launch.UNITS), b.get(launch, Launch.UNIT)
    threads, slot = b.get(launch, Launch.THREADS), b.get(launch, Launch.SLOT, ptr)
    more = b.icmp("sgt", threads, const(i64, 1))
    several = b.and_(more, b.not_(b.null(slot)))
    with b.forever("piece") as (_, after):
        first = following.get()
        left = b.sub(units, first)
        b.leave(b.icmp("eq", left, const(i64, 0)), after)
        cost = b.fmul(b.get(launch, Launch.COST, double), b.uitofp(unit, double))
        sharing = b.and_(several, b.icmp("ugt", left, const(i64, 1)))
        sharing = b.and_(sharing, _has_workers(b, pool))
        worth = b.fcmp("oge", b.fmul(cost, b.uitofp(left, double)), _worth(b, pool))
        b.leave(b.and_(sharing, worth), after)
        waking, long = (b.get(pool, each, double) for each in (Pool.WORTH_WAKING, Pool.LONG))
        count = b.umin(count_for(b, b.select(sharing, waking, long), cost), left)
        count = b.umin(count, allowed.get())
        allowed.set(b.mul(count, const(i64, GROWTH)))
        last = b.add(first, count)
        programs = _programs(b, launch, Launch.UNIT, Launch.PROGRAMS, (first, last))
        stop = b.call("timed", i1, (pool, launch, *programs))
        following.set(last)
        b.leave(stop, after, rarely=True)
    b.ret(following.get())


def count_for(b: HostBuilder, time: V, cost: V) -> V:
    """How many units of a cost take some time, at least 1; any number for a cost of 0."""
    most = const(double, float(_MOST_UNITS))
    quotient = b.fdiv(time, cost)
    bounded = b.select(b.fcmp("olt", quotient, most), quotient, most)
    return b.umax(b.fptoui(bounded, i64), const(i64, 1))


def _has_workers(b: HostBuilder, pool: V) -> V:
    """Whether there are workers, or may be some."""
    closed = b.icmp("ne", b.get_atomic(pool, Pool.CLOSED, i32), const(i32, 0))
    some = b.icmp("sgt", b.get_atomic(pool, Pool.WORKERS), const(i64, 0))
    return b.or_(some, b.not_(closed))


def _worth(b: HostBuilder, pool: V) -> V:
    """From how much work on sharing pays: less where a worker is awake."""
    asleep = b.zext(b.get_atomic(pool, Pool.SLEEPERS, i32), i64)
    awake = b.icmp("slt", asleep, b.get_atomic(pool, Pool.WORKERS))
    sharing, waking = Pool.WORTH_SHARING, Pool.WORTH_WAKING
    return b.select(awake, b.get(pool, sharing, double), b.get(pool, waking, double))


# ---- together ------------------------------------------------------------------------------------


def wake_children(b: HostBuilder, pool: V, index: V, helpers: V) -> None:
    """Wake the two workers 2 index + 2 and 2 index + 3, if they are to help; the caller is -1.

    Each thread that joins calls this, so all are awake after the logarithm of their number.
    """
    first = b.add(b.mul(index, const(i64, 2)), const(i64, 2))
    bits: V = const(i32, 0)
    for each in (first, b.add(first, const(i64, 1))):
        bit = b.shl(const(i32, 1), b.trunc(b.and_(each, const(i64, 31)), i32))
        wanted = b.icmp("slt", each, helpers)
        bits = b.or_(bits, b.select(wanted, bit, const(i32, 0)))
    asleep = b.get_atomic(pool, Pool.SLEEPERS, i32, "seq_cst")
    some = b.and_(b.icmp("ne", asleep, const(i32, 0)), b.icmp("ne", bits, const(i32, 0)))
    with b.when(some):
        b.call("wake", void, (pool, b.gep(pool, Pool.SEQUENCE), bits))


def _open(b: HostBuilder, pool: V, launch: V, start: V, helpers: V, waking: V) -> tuple[V, V]:
    """Write a grid into the slot and open it; its generation << 32, and its bit in ``OPEN``."""
    slot = b.get(launch, Launch.SLOT, ptr)
    before = b.lshr(b.get_atomic(slot, Slot.TICKET), const(i64, 32))
    generation = b.shl(b.add(before, const(i64, 1)), const(i64, 32))
    # Nobody can claim anything while the rest is written.
    b.put_atomic(slot, Slot.TICKET, b.or_(generation, const(i64, ALL_TAKEN)), "seq_cst")
    for field, source in (
        (Slot.ENTRY, Launch.ENTRY),
        (Slot.ARGUMENTS, Launch.ARGUMENTS),
        (Slot.PROGRAMS, Launch.PROGRAMS),
        (Slot.UNIT, Launch.UNIT),
        (Slot.UNITS, Launch.UNITS),
    ):
        b.put(slot, field, b.get(launch, source))
    b.put(slot, Slot.HELPERS, helpers)
    b.put(slot, Slot.WAKING, b.zext(waking, i64))
    b.put(slot, Slot.CONTROL, b.control_register())
    cost = b.fmul(b.get(launch, Launch.COST, double), b.uitofp(b.get(launch, Launch.UNIT), double))
    waits = b.get(launch, Launch.WAITS)
    one_by_one = b.icmp("ne", waits, const(i64, 0))
    least = count_for(b, b.get(pool, Pool.SHORT, double), cost)
    share = b.shl(b.get(launch, Launch.THREADS), const(i64, 1))
    b.put(slot, Slot.LEAST, b.select(one_by_one, const(i64, 1), least))
    b.put(slot, Slot.SHARE, b.select(one_by_one, const(i64, _MOST_UNITS), share))
    b.put(slot, Slot.WAITS, waits)
    for field in (Slot.BLOCKED, Slot.CHANGES, Slot.ABORT):
        b.put_atomic(slot, field, const(i32, 0))
    b.put_atomic(slot, Slot.WAITING, const(i32, 0))
    b.put_atomic(slot, Slot.DONE, b.trunc(start, i32))
    b.put_atomic(slot, Slot.TICKET, b.or_(generation, start))
    gap = b.sitofp(b.sub(b.now(), b.get_atomic(pool, Pool.LAST)), double)
    train = b.fcmp("olt", gap, b.get(pool, Pool.SPIN, double))
    b.put_atomic(pool, Pool.TRAIN, b.zext(train, i32))
    offset = b.sub(b.ptrtoint(slot, i64), b.ptrtoint(b.gep(pool, Pool.SLOTS), i64))
    number = b.trunc(b.udiv(offset, const(i64, Slot.SIZE)), i32)
    bit = b.shl(const(i32, 1), number)
    b.atomic_rmw("or", b.gep(pool, Pool.OPEN), bit, align=8, ordering="seq_cst")
    sequence = b.gep(pool, Pool.SEQUENCE)
    b.atomic_rmw("add", sequence, const(i32, 1), align=8, ordering="seq_cst")
    return b.lshr(generation, const(i64, 32)), bit


def _together(module: Module, target: Target) -> None:
    """``together(pool, launch, next, size)``: run the other units with the workers' help.

    ``size`` is that of scratch memory.
    """
    params = [(ptr, "pool"), (ptr, "launch"), (i64, "next"), (i64, "size")]
    b, (pool, launch, start, size) = begin(module, target, "together", void, params)
    helpers = b.sub(b.get(launch, Launch.THREADS), const(i64, 1))
    lacking = b.icmp("slt", b.get_atomic(pool, Pool.WORKERS), helpers)
    open_ = b.icmp("eq", b.get_atomic(pool, Pool.CLOSED, i32), const(i32, 0))
    with b.when(b.and_(lacking, open_), weights=(1, 2000)):
        b.call("grow", void, (pool, helpers))
    slot = b.get(launch, Launch.SLOT, ptr)
    b.put(slot, Slot.SCRATCH, size)
    left = b.uitofp(b.sub(b.get(launch, Launch.PROGRAMS), start), double)
    work = b.fmul(b.get(launch, Launch.COST, double), left)
    waits = b.icmp("ne", b.get(launch, Launch.WAITS), const(i64, 0))
    waking = b.or_(waits, b.fcmp("oge", work, b.get(pool, Pool.WORTH_WAKING, double)))
    generation, bit = _open(b, pool, launch, start, helpers, waking)
    with b.when(waking):
        asleep = b.icmp("ne", b.get_atomic(pool, Pool.SLEEPERS, i32), const(i32, 0))
        with b.when(b.or_(lacking, asleep), name="asleep"):
            b.call("place", void, (pool,))
        wake_children(b, pool, const(i64, -1), helpers)
    scratch = b.get(launch, Launch.SCRATCH, ptr)
    b.call("drain", void, (pool, slot, generation, scratch, launch))
    total = b.variable(b.get(launch, Launch.UNITS), "total")
    stopped = b.icmp("ne", b.get(launch, Launch.INTERRUPTED), const(i64, 0))
    ended = b.icmp("ne", b.get_atomic(slot, Slot.ABORT, i32, "seq_cst"), const(i32, 0))
    with b.when(b.or_(stopped, ended), weights=(1, 2000)):
        closed = b.or_(b.shl(generation, const(i64, 32)), const(i64, ALL_TAKEN))
        ticket = b.gep(slot, Slot.TICKET)
        held = b.atomic_rmw("xchg", ticket, closed, align=8, ordering="seq_cst")
        total.set(b.umin(b.and_(held, const(i64, ALL_TAKEN)), total.get()))
    number = b.trunc(total.get(), i32)
    with b.when(waits):
        b.call("join_waiting", void, (pool, slot, launch, number))
    b.call("join", void, (pool, slot, number))
    mask = b.xor(bit, const(i32, -1))
    b.atomic_rmw("and", b.gep(pool, Pool.OPEN), mask, align=8, ordering="seq_cst")
    b.put_atomic(pool, Pool.LAST, b.now())
    b.ret()


def _join(module: Module, target: Target) -> None:
    """``join(pool, slot, total)``: wait for the units that others have claimed."""
    params = [(ptr, "pool"), (ptr, "slot"), (i32, "total")]
    b, (pool, slot, total) = begin(module, target, "join", void, params)
    out = b.new("out")

    def look() -> V:
        done = b.get_atomic(slot, Slot.DONE, i32, "seq_cst")
        b.leave(b.icmp("eq", done, total), out)
        return done

    looks = b.variable(const(i64, 0), "looks")
    with b.forever("looking") as (_, yielding):
        look()
        b.pause()
        looks.set(b.add(looks.get(), const(i64, 1)))
        b.leave(b.icmp("sgt", looks.get(), const(i64, _PAUSES)), yielding)
    start = b.now()
    with b.forever("yielding") as (_, sleeping):
        # A worker may need this very CPU.
        b.call("sched_yield", i32, ())
        look()
        waited = b.sitofp(b.sub(b.now(), start), double)
        b.leave(b.fcmp("oge", waited, b.get(pool, Pool.SPIN, double)), sleeping)
    b.put_atomic(slot, Slot.WAITING, const(i32, 1), "seq_cst")
    with b.forever("sleeping") as (_, _after):
        done = look()
        everybody = const(i32, waiting.EVERYBODY)
        b.call("wait", void, (pool, b.gep(slot, Slot.DONE), done, everybody))
    b.unreachable()
    b.goto(out)
    b.ret()


# ---- a launch ------------------------------------------------------------------------------------


def _work(module: Module, target: Target) -> None:
    """``work(pool, record, launch, next)``: a grid that may take some time, from a unit on."""
    params = [(ptr, "pool"), (ptr, "record"), (ptr, "launch"), (i64, "next")]
    b, (pool, record, launch, start) = begin(module, target, "work", i32, params)
    waits = b.icmp("ne", b.get(launch, Launch.WAITS), const(i64, 0))
    b.put(launch, Launch.STATE, b.call("PyEval_SaveThread", ptr, ()))
    with b.forever("acquiring") as (_, acquired):
        slot = b.call("acquire", ptr, (pool,))
        b.put(launch, Launch.SLOT, slot)
        # Programs that wait for each other can't do without.
        b.need(b.and_(waits, b.null(slot)), acquired)
        b.call("sched_yield", i32, ())
    slot = b.get(launch, Launch.SLOT, ptr)
    b.put(launch, Launch.CHECKED, b.now())
    own = b.gep(launch, Launch.HOLDER)
    b.put(own, 0, const(ptr, 0))
    b.put(own, 8, const(i64, 0))
    none = b.null(slot)
    holder = b.select(none, own, b.gep(slot, Slot.ARENA))
    size = b.get(record, Record.SCRATCH)
    failed = b.variable(const(i1, 0), "failed")
    end = b.new("end")
    with b.when(b.icmp("sgt", size, const(i64, 0))):
        scratch = b.call("arena", ptr, (holder, size))
        b.put(launch, Launch.SCRATCH, scratch)
        failed.set(b.null(scratch))
    b.leave(failed.get(), end, rarely=True)
    following = b.variable(start, "following")
    with b.when(b.not_(waits)):
        following.set(b.call("alone", i64, (pool, launch, start)))
    left = b.icmp("ult", following.get(), b.get(launch, Launch.UNITS))
    going = b.icmp("eq", b.get(launch, Launch.INTERRUPTED), const(i64, 0))
    with b.when(b.and_(left, going)):
        b.call("together", void, (pool, launch, following.get(), size))
    b.br(end)
    b.goto(end)
    with b.when(none):
        b.call("free", void, (b.get(own, 0, ptr),))
    with b.when(b.not_(none)):
        b.put_atomic(slot, Slot.BUSY, const(i32, 0))
    ran = b.get(launch, Launch.RAN)
    with b.when(b.icmp("sgt", ran, const(i64, 0))):
        b.call("remember", void, (record, b.get(launch, Launch.TIME, double), ran))
    b.call("PyEval_RestoreThread", void, (b.get(launch, Launch.STATE, ptr),))
    with b.when(failed.get(), weights=(1, 2000)):
        b.call("PyErr_NoMemory", ptr, ())
    with b.when(b.icmp("ne", b.get(launch, Launch.STUCK), const(i64, 0)), weights=(1, 2000)):
        b.call("stuck", void, (pool,))
    stopped = b.icmp("ne", b.get(launch, Launch.INTERRUPTED), const(i64, 0))
    b.ret(b.zext(b.or_(failed.get(), stopped), i32))


def _run_grid(module: Module, target: Target) -> None:
    """See the module."""
    params = [(ptr, "pool"), (ptr, "record"), (ptr, "arguments"), (i64, "programs")]
    b, (pool, record, arguments, programs, threads) = begin(
        module, target, "run_grid", i32, [*params, (i64, "threads")], exported=True
    )
    entry = b.get(record, Record.ENTRY, ptr)
    launch = b.stack(Launch.SIZE, "launch")
    cost = b.get(record, Record.COST, double)
    tiny = b.get(pool, Pool.TINY, double)
    time = b.variable(const(double, 0.0), "time")
    start = b.variable(const(i64, 0), "start")
    full = b.new("full")
    work = b.fmul(cost, b.sitofp(programs, double))
    quick = b.and_(b.fcmp("ogt", cost, const(double, 0.0)), b.fcmp("olt", work, tiny))
    quick = b.and_(quick, b.icmp("eq", b.get(record, Record.SCRATCH), const(i64, 0)))
    quick = b.and_(quick, b.icmp("ne", b.get(record, Record.STEADY), const(i64, 0)))
    quick = b.and_(quick, b.icmp("ult", programs, const(i64, _MOST_UNITS)))
    b.need(quick, full)
    # The arguments may be other ones than before: one program is tried first.
    some = const(i64, 1)
    began = b.now()
    b.call(entry, void, (arguments, const(i64, 0), some, const(ptr, 0)))
    taken = b.sitofp(b.smax(b.sub(b.now(), began), const(i64, 1)), double)
    time.set(taken)
    start.set(some)
    projected = b.fmul(taken, b.sitofp(programs, double))
    allowed = b.fmul(b.fmul(tiny, const(double, 4.0)), b.sitofp(some, double))
    one = b.icmp("eq", programs, const(i64, 1))
    b.need(b.or_(one, b.fcmp("ole", projected, allowed)), full)
    with b.when(b.not_(one)):
        b.call(entry, void, (arguments, some, programs, const(ptr, 0)))
        time.set(b.sitofp(b.smax(b.sub(b.now(), began), const(i64, 1)), double))
    b.call("remember", void, (record, time.get(), programs))
    b.ret(const(i32, 0))

    b.goto(full)
    ran = start.get()
    unit = b.add(b.lshr(programs, const(i64, 31)), const(i64, 1))
    units = b.udiv(b.add(programs, b.sub(unit, const(i64, 1))), unit)
    measured = b.fdiv(time.get(), b.sitofp(b.umax(ran, const(i64, 1)), double))
    known = b.select(b.icmp("eq", ran, const(i64, 0)), cost, measured)
    nothing = const(i64, 0)
    for field, value in (
        (Launch.ENTRY, entry),
        (Launch.ARGUMENTS, arguments),
        (Launch.PROGRAMS, programs),
        (Launch.UNIT, unit),
        (Launch.UNITS, units),
        (Launch.THREADS, threads),
        (Launch.TIME, time.get()),
        (Launch.RAN, ran),
        (Launch.COST, known),
        (Launch.SCRATCH, nothing),
        (Launch.INTERRUPTED, nothing),
        (Launch.STUCK, nothing),
        (Launch.WAITS, b.get(record, Record.WAITS)),
    ):
        b.put(launch, field, value)
    b.ret(b.call("work", i32, (pool, record, launch, ran)))
