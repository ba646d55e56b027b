"""The threads that run the programs of a grid, as native code.

A caller opens a grid in a slot: it writes what is to be run and a ticket, the next program that
nobody has claimed. Threads claim runs of programs by moving the ticket on, larger ones while much
is left, so programs start in ascending order and each thread ascends. The caller takes part, and
waits in the end for what others have claimed: never for a thread that came too late. A claim
carries the slot's generation, so a thread that still reads of an earlier grid gets nothing.

Exported: ``prepare(pool)``; ``run_grid``, called with the GIL, and ``call``, the same as a builtin
function of Python; ``close(pool)``; ``ticks()``, the time that costs and limits are counted in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Block, Module, V, const, double, i1, i8, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from . import blocking, grid, placing, waiting
from .layout import WORD, Pool, Slot, Waiter, Worker
from .writer import HostBuilder, Variable, begin

_SIGNAL_SET = 256
"""Bytes for a set of signals, on any platform."""


def write(
    module: Module,
    target: Target,
    *,
    block: int,
    faults: tuple[int, ...],
    condition: bool = False,
    most: int = Waiter.MOST,
) -> tuple[str, ...]:
    """Write the pool's module; returns the functions of the C library and Python that it calls.

    ``block`` is the platform's SIG_BLOCK, ``faults`` the signals that workers don't block.
    ``condition``: see ``waiting.write``; ``most``: see ``blocking.write``.
    """
    needed = waiting.write(module, target, condition=condition)
    needed += placing.write(module, target)
    blocking.write(module, target, most)
    _arena(module, target)
    drain(module, target)
    _help(module, target)
    _worker(module, target)
    _grow(module, target, block, faults)
    _close(module, target)
    _ticks(module, target)
    grid.write(module, target)
    _call(module, target)
    return (
        *needed,
        *("pthread_create", "pthread_join", "pthread_sigmask", "sigfillset", "sigdelset"),
        *("posix_memalign", "free", "sched_yield"),
        *blocking.C,
        *{*blocking.PYTHON, *grid.PYTHON, *_PYTHON},
    )


def _arena(module: Module, target: Target) -> None:
    """``arena(holder, size)``: scratch memory kept in a holder (address, size); null if none."""
    b, (holder, size) = begin(module, target, "arena", ptr, [(ptr, "holder"), (i64, "size")])
    enough = b.new("enough")
    b.leave(b.icmp("sge", b.get(holder, 8), size), enough)
    b.call("free", void, (b.get(holder, 0, ptr),))
    b.put(holder, 0, const(ptr, 0))
    b.put(holder, 8, const(i64, 0))
    failed = b.call("posix_memalign", i32, (holder, const(i64, 64), size))
    with b.when(b.icmp("eq", failed, const(i32, 0))):
        b.put(holder, 8, size)
    b.br(enough)
    b.goto(enough)
    b.ret(b.get(holder, 0, ptr))


# ---- claiming ------------------------------------------------------------------------------------


def drain(module: Module, target: Target) -> None:
    """``drain(pool, slot, generation, scratch, caller)``: run what can be claimed.

    ``caller`` is its ``Launch``, null for a worker. Nothing is claimed of a grid that is to end. A
    thread starts with one unit and claims more and more, as the time that they take allows: what
    programs took before may not hold any longer.
    """
    params = [(ptr, "pool"), (ptr, "slot"), (i64, "generation"), (ptr, "scratch"), (ptr, "caller")]
    b, (pool, slot, generation, scratch, caller) = begin(module, target, "drain", void, params)
    held = b.variable(b.get_atomic(slot, Slot.TICKET), "ticket")
    allowed = b.variable(const(i64, 1), "allowed")
    units = b.get(slot, Slot.UNITS)
    waits = b.icmp("ne", b.get(slot, Slot.WAITS), const(i64, 0))
    with b.when(waits, weights=(1, 2000)):
        blocking.prepare(b, pool, slot, scratch, caller)
    with b.forever("claim") as (head, after):
        ended = b.icmp("ne", b.get_atomic(slot, Slot.ABORT, i32, "seq_cst"), const(i32, 0))
        b.leave(b.and_(waits, ended), after, rarely=True)
        ticket = held.get()
        mine = b.icmp("eq", b.lshr(ticket, const(i64, 32)), generation)
        b.leave(b.not_(mine), after)
        first = b.and_(ticket, const(i64, grid.ALL_TAKEN))
        b.leave(b.icmp("uge", first, units), after)
        count = b.umin(_share(b, slot, b.sub(units, first)), allowed.get())
        last = b.add(first, count)
        moved = b.or_(b.shl(generation, const(i64, 32)), last)
        seen, won = b.cmpxchg(b.gep(slot, Slot.TICKET), ticket, moved, align=8)
        held.set(seen)
        b.leave(b.not_(won), head)
        start = b.now()
        stop = grid.chunk(b, pool, slot, scratch, caller, (first, last))
        with b.when(waits, weights=(1, 2000)):
            # One that was made to end has not told.
            b.call(blocking.HOOK, i32, (scratch, const(i32, 0)))
        taken = b.sitofp(b.smax(b.sub(b.now(), start), const(i64, 1)), double)
        cost = b.fdiv(taken, b.sitofp(count, double))
        most = grid.count_for(b, b.get(pool, Pool.LONG, double), cost)
        allowed.set(b.umin(b.mul(count, const(i64, grid.GROWTH)), most))
        held.set(b.get_atomic(slot, Slot.TICKET))
        b.leave(stop, after)
    b.ret()


def _share(b: HostBuilder, slot: V, left: V) -> V:
    """How many units to claim of those left: fewer towards the end, so that all end together."""
    part = b.udiv(left, b.get(slot, Slot.SHARE))
    return b.umin(b.umax(part, b.get(slot, Slot.LEAST)), left)


# ---- the workers ---------------------------------------------------------------------------------


def _help(module: Module, target: Target) -> None:
    """``help(pool, worker)``: take part in the open grids."""
    params = [(ptr, "pool"), (ptr, "worker")]
    b, (pool, worker) = begin(module, target, "help", void, params)
    index = b.get(worker, Worker.INDEX)
    left = b.variable(b.get_atomic(pool, Pool.OPEN, i32), "left")
    with b.forever("slots") as (head, after):
        open_ = left.get()
        b.leave(b.icmp("eq", open_, const(i32, 0)), after)
        left.set(b.and_(open_, b.sub(open_, const(i32, 1))))
        number = b.zext(b.intrinsic("cttz", (open_, const(i1, 1)), i32, (i32,)), i64)
        offset = b.mul(number, const(i64, Slot.SIZE))
        slot = b.gep(b.gep(pool, Pool.SLOTS), offset)
        ticket = b.get_atomic(slot, Slot.TICKET)
        helpers = b.get_atomic(slot, Slot.HELPERS)
        b.need(b.icmp("ult", index, helpers), head)
        taken = b.icmp("uge", b.and_(ticket, const(i64, grid.ALL_TAKEN)), b.get(slot, Slot.UNITS))
        b.leave(taken, head)
        with b.when(b.icmp("ne", b.get(slot, Slot.WAKING), const(i64, 0))):
            grid.wake_children(b, pool, index, helpers)
        b.set_control_register(b.get(slot, Slot.CONTROL))
        # The slot may have its next grid by now, of which nothing will be claimed: there is always
        # room for what is written before a claim.
        size = b.umax(b.get(slot, Slot.SCRATCH), const(i64, Waiter.SIZE))
        scratch = b.call("arena", ptr, (b.gep(worker, Worker.ARENA), size))
        b.leave(b.null(scratch), head, rarely=True)
        generation = b.lshr(ticket, const(i64, 32))
        b.call("drain", void, (pool, slot, generation, scratch, const(ptr, 0)))
    b.ret()


def _worker(module: Module, target: Target) -> None:
    """``worker(self)``: the life of a thread. It helps, spins within trains of grids, sleeps."""
    b, (self,) = begin(module, target, "worker", ptr, [(ptr, "self")])
    pool = b.get(self, Worker.POOL, ptr)
    index = b.trunc(b.and_(b.get(self, Worker.INDEX), const(i64, 31)), i32)
    bit = b.shl(const(i32, 1), index)
    seen = b.variable(b.get_atomic(pool, Pool.SEQUENCE, i32), "seen")
    end = b.new("end")
    with b.forever("life") as (life, _):
        b.call("help", void, (pool, self))
        stop = b.get_atomic(pool, Pool.STOP, i32, "seq_cst")
        b.leave(b.icmp("ne", stop, const(i32, 0)), end)
        changed = _changed(b, pool, seen)
        b.leave(changed, life)
        train = b.icmp("ne", b.get_atomic(pool, Pool.TRAIN, i32), const(i32, 0))
        with b.when(train):
            _spin(b, pool, seen, life)
        sleepers = b.gep(pool, Pool.SLEEPERS)
        b.atomic_rmw("add", sleepers, const(i32, 1), align=8, ordering="seq_cst")
        sequence = b.gep(pool, Pool.SEQUENCE)
        b.call("wait", void, (pool, sequence, seen.get(), bit))
        b.atomic_rmw("sub", sleepers, const(i32, 1), align=8, ordering="seq_cst")
        _changed(b, pool, seen)
    b.unreachable()
    b.goto(end)
    b.call("free", void, (b.get(self, Worker.ARENA, ptr),))
    b.ret(const(ptr, 0))


def _changed(b: HostBuilder, pool: V, seen: Variable) -> V:
    """Whether a grid was opened since ``seen``, which is brought up to date."""
    now = b.get_atomic(pool, Pool.SEQUENCE, i32, "seq_cst")
    changed = b.icmp("ne", now, seen.get())
    seen.set(now)
    return changed


def _spin(b: HostBuilder, pool: V, seen: Variable, life: Block) -> None:
    """Wait for a change for the time that a train lasts."""
    start = b.now()
    with b.forever("spin") as (_, after):
        b.pause()
        b.leave(_changed(b, pool, seen), life)
        waited = b.uitofp(b.sub(b.now(), start), double)
        b.leave(b.fcmp("oge", waited, b.get(pool, Pool.SPIN, double)), after)


# ---- starting and ending them --------------------------------------------------------------------


def _grow(module: Module, target: Target, block: int, faults: tuple[int, ...]) -> None:
    """``grow(pool, wanted)``: have so many workers, unless another thread is at it."""
    b, (pool, wanted) = begin(
        module, target, "grow", void, [(ptr, "pool"), (i64, "wanted")], cold=True
    )
    busy = b.atomic_rmw("xchg", b.gep(pool, Pool.GROWING), const(i32, 1), align=8)
    quit_ = b.new("quit")
    b.leave(b.icmp("ne", busy, const(i32, 0)), quit_)
    # Signals are for the threads of the program; those of faults are for whoever has them.
    signals, before = b.stack(_SIGNAL_SET, "signals"), b.stack(_SIGNAL_SET, "before")
    b.call("sigfillset", i32, (signals,))
    for number in faults:
        b.call("sigdelset", i32, (signals, const(i32, number)))
    b.call("pthread_sigmask", i32, (const(i32, block), signals, before))
    with b.forever("more") as (_, after):
        count = b.get(pool, Pool.WORKERS)
        b.leave(b.icmp("sge", count, b.umin(wanted, const(i64, Worker.MOST))), after)
        b.leave(b.icmp("ne", b.get_atomic(pool, Pool.CLOSED, i32), const(i32, 0)), after)
        worker = b.gep(b.gep(pool, Worker.FIRST), b.mul(count, const(i64, Worker.SIZE)))
        b.put(worker, Worker.POOL, pool)
        b.put(worker, Worker.INDEX, count)
        thread = b.gep(worker, Worker.THREAD)
        start = V("@worker", ptr)
        failed = b.call("pthread_create", i32, (thread, const(ptr, 0), start, worker))
        with b.when(b.icmp("ne", failed, const(i32, 0))):
            # The system has no more threads: do with those that there are.
            b.put_atomic(pool, Pool.CLOSED, const(i32, 1))
        b.leave(b.icmp("ne", failed, const(i32, 0)), after)
        b.put_atomic(pool, Pool.WORKERS, b.add(count, const(i64, 1)))
    how = {0: 2, 1: 3}[block]
    b.call("pthread_sigmask", i32, (const(i32, how), before, const(ptr, 0)))
    b.memset(b.gep(pool, Pool.CPUS), const(i8, 0), const(i64, Pool.CPUS_SIZE), align=WORD)
    b.put(pool, Pool.PLACED, const(i64, 0))
    b.put_atomic(pool, Pool.GROWING, const(i32, 0))
    b.br(quit_)
    b.goto(quit_)
    b.ret()


def _close(module: Module, target: Target) -> None:
    """``close(pool)``: end the workers and wait for them; the pool starts none any more."""
    b, (pool,) = begin(module, target, "close", void, [(ptr, "pool")], exported=True, cold=True)
    b.put_atomic(pool, Pool.CLOSED, const(i32, 1), "seq_cst")
    with b.forever("busy") as (_, after):
        busy = b.atomic_rmw("xchg", b.gep(pool, Pool.GROWING), const(i32, 1), align=8)
        b.leave(b.icmp("eq", busy, const(i32, 0)), after)
        b.call("sched_yield", i32, ())
    b.put_atomic(pool, Pool.STOP, const(i32, 1), "seq_cst")
    sequence = b.gep(pool, Pool.SEQUENCE)
    b.atomic_rmw("add", sequence, const(i32, 1), align=8, ordering="seq_cst")
    b.call("wake", void, (pool, sequence, const(i32, waiting.EVERYBODY)))
    left = b.variable(b.get(pool, Pool.WORKERS), "left")
    b.put_atomic(pool, Pool.WORKERS, const(i64, 0))
    with b.forever("join") as (_, after):
        b.leave(b.icmp("eq", left.get(), const(i64, 0)), after)
        left.set(b.sub(left.get(), const(i64, 1)))
        worker = b.gep(b.gep(pool, Worker.FIRST), b.mul(left.get(), const(i64, Worker.SIZE)))
        b.call("pthread_join", i32, (b.get(worker, Worker.THREAD), const(ptr, 0)))
    b.put_atomic(pool, Pool.GROWING, const(i32, 0))
    b.ret()


def _ticks(module: Module, target: Target) -> None:
    b, _ = begin(module, target, "ticks", i64, [], exported=True)
    b.ret(b.now())


_PYTHON = ("PyLong_AsLongLong", "PyBytes_AsString", "PyErr_Occurred", "Py_IncRef")


def _call(module: Module, target: Target) -> None:
    """``call(record, arguments, programs, threads)``: the builtin, whose self is the pool.

    It returns its first argument. The arguments of the code are bytes, the others ints.
    """
    params = [(ptr, "self"), (ptr, "given"), (i64, "count")]
    b, (self, given, _) = begin(module, target, "call", ptr, params, exported=True)
    failed, first = b.new("failed"), b.get(given, 0, ptr)

    def number(value: V) -> V:
        found = b.call("PyLong_AsLongLong", i64, (value,))
        with b.when(b.icmp("eq", found, const(i64, -1)), weights=(1, 2000)):
            b.leave(b.not_(b.null(b.call("PyErr_Occurred", ptr, ()))), failed)
        return found

    pool, record = (b.inttoptr(number(each), ptr) for each in (self, first))
    programs, threads = (number(b.get(given, place, ptr)) for place in (16, 24))
    arguments = b.call("PyBytes_AsString", ptr, (b.get(given, 8, ptr),))
    b.leave(b.null(arguments), failed, rarely=True)
    status = b.call("run_grid", i32, (pool, record, arguments, programs, threads))
    b.leave(b.icmp("ne", status, const(i32, 0)), failed, rarely=True)
    b.call("Py_IncRef", void, (first,))
    b.ret(first)
    b.goto(failed)
    b.ret(const(ptr, 0))
