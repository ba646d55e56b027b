"""Programs that wait for each other: each gets a thread where it must, so that all go on.

A loop that waits for memory to change calls ``wait_hook(waiter, again)`` each time round, and once
(``again`` is 0) when it ends; where that returns 1 the program is to end at once. A program that
has waited for a while counts as blocked. While all that were started are blocked, and others were
not started, there are made more threads, up to a number. Programs that still wait then, for others
that can't be started, end, and their launch fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Module, V, const, double, i1, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from . import waiting
from .layout import Launch, Pool, Slot, Waiter
from .writer import HostBuilder, begin

C = ("usleep",)
PYTHON = ("PyTuple_New", "PyObject_Call", "Py_DecRef")
HOOK = V("@wait_hook", ptr)
_PAUSES, _YIELDS = 64, 1 << 14
"""Looks at memory after which a thread offers its CPU to others, and after which it sleeps."""
_PERIOD = 256
"""How many looks there are from one check to the next; the first makes a program blocked."""
_NAP = 100
"""Microseconds."""
_LOW = (1 << 32) - 1


def write(module: Module, target: Target, most: int = Waiter.MOST) -> None:
    """Write ``wait_hook`` and what the launch of programs that wait calls.

    ``most`` threads run a grid at once; ``grow`` and ``wake`` are of ``pool``.
    """
    _signals(module, target)
    _relieve(module, target, most)
    _patience(module, target, most)
    _look(module, target)
    _hook(module, target)
    _join_waiting(module, target)
    _stuck(module, target)


def prepare(b: HostBuilder, pool: V, slot: V, scratch: V, caller: V) -> None:
    """Fill in the ``Waiter`` at the start of a thread's scratch memory."""
    zero = const(i64, 0)
    for field, value in (
        (Waiter.HOOK, HOOK),
        (Waiter.POOL, pool),
        (Waiter.SLOT, slot),
        (Waiter.LAUNCH, caller),
        (Waiter.LOOKS, zero),
        (Waiter.BLOCKED, zero),
        (Waiter.SINCE, b.now()),
        (Waiter.SEEN, const(i64, -1)),
    ):
        b.put(scratch, field, value)


def _signals(module: Module, target: Target) -> None:
    """``signals(pool, launch)``: look for signals if it is time; whether the launch is to end."""
    b, (pool, launch) = begin(module, target, "signals", i1, [(ptr, "pool"), (ptr, "launch")])
    since = b.sitofp(b.sub(b.now(), b.get(launch, Launch.CHECKED)), double)
    short = b.new("short")
    b.leave(b.fcmp("olt", since, b.get(pool, Pool.LONG, double)), short)
    b.call("PyEval_RestoreThread", void, (b.get(launch, Launch.STATE, ptr),))
    raised = b.icmp("ne", b.call("PyErr_CheckSignals", i32, ()), const(i32, 0))
    b.put(launch, Launch.STATE, b.call("PyEval_SaveThread", ptr, ()))
    b.put(launch, Launch.CHECKED, b.now())
    with b.when(raised):
        b.put(launch, Launch.INTERRUPTED, const(i64, 1))
    b.br(short)
    b.goto(short)
    b.ret(b.icmp("ne", b.get(launch, Launch.INTERRUPTED), const(i64, 0)))


def _counts(b: HostBuilder, slot: V) -> tuple[V, V, V]:
    """The next unit that nobody has claimed, how many run, how many of those are blocked."""
    following = b.and_(b.get_atomic(slot, Slot.TICKET), const(i64, _LOW))
    following = b.umin(following, b.get(slot, Slot.UNITS))
    done = b.zext(b.get_atomic(slot, Slot.DONE, i32), i64)
    blocked = b.zext(b.get_atomic(slot, Slot.BLOCKED, i32), i64)
    return following, b.sub(following, done), blocked


def _relieve(module: Module, target: Target, most: int) -> None:
    """``relieve(pool, slot)``: twice as many threads, if all wait and there is more to run."""
    b, (pool, slot) = begin(
        module, target, "relieve", void, [(ptr, "pool"), (ptr, "slot")], cold=True
    )
    out = b.new("out")
    following, running, blocked = _counts(b, slot)
    b.leave(b.icmp("uge", following, b.get(slot, Slot.UNITS)), out)
    b.leave(b.icmp("ult", blocked, running), out)
    helpers = b.get_atomic(slot, Slot.HELPERS)
    wanted = b.add(b.shl(helpers, const(i64, 1)), const(i64, 1))
    wanted = b.umax(b.umin(wanted, const(i64, most - 1)), helpers)
    b.put_atomic(slot, Slot.HELPERS, wanted)
    b.call("grow", void, (pool, wanted))
    sequence = b.gep(pool, Pool.SEQUENCE)
    b.atomic_rmw("add", sequence, const(i32, 1), align=8, ordering="seq_cst")
    b.call("wake", void, (pool, sequence, const(i32, waiting.EVERYBODY)))
    b.br(out)
    b.goto(out)
    b.ret()


def _patience(module: Module, target: Target, most: int) -> None:
    """``patience(pool, slot, waiter)``: whether nothing has gone on for long, nor can."""
    params = [(ptr, "pool"), (ptr, "slot"), (ptr, "waiter")]
    b, (pool, slot, waiter) = begin(module, target, "patience", i1, params, cold=True)
    going = b.new("going")
    following, running, blocked = _counts(b, slot)
    changes = b.zext(b.get_atomic(slot, Slot.CHANGES, i32), i64)
    seen = b.or_(b.shl(changes, const(i64, 32)), b.and_(following, const(i64, _LOW)))
    same = b.icmp("eq", seen, b.get(waiter, Waiter.SEEN))
    closed = b.icmp("ne", b.get_atomic(pool, Pool.CLOSED, i32), const(i32, 0))
    all_there = b.icmp("uge", b.get_atomic(slot, Slot.HELPERS), const(i64, most - 1))
    left = b.icmp("ult", following, b.get(slot, Slot.UNITS))
    stuck = b.and_(
        b.and_(same, left), b.and_(b.or_(closed, all_there), b.icmp("uge", blocked, running))
    )
    b.need(stuck, going)
    waited = b.sitofp(b.sub(b.now(), b.get(waiter, Waiter.SINCE)), double)
    b.ret(b.fcmp("oge", waited, b.get(pool, Pool.PATIENCE, double)))
    b.goto(going)
    b.put(waiter, Waiter.SEEN, seen)
    b.put(waiter, Waiter.SINCE, b.now())
    b.ret(const(i1, 0))


def _count(b: HostBuilder, slot: V, change: int) -> None:
    """One more thread is blocked, or one fewer."""
    for field, number in ((Slot.BLOCKED, change), (Slot.CHANGES, 1)):
        b.atomic_rmw("add", b.gep(slot, field), const(i32, number), align=8, ordering="seq_cst")


def _look(module: Module, target: Target) -> None:
    """``look(waiter, slot)``: what a blocked program does now and then."""
    b, (waiter, slot) = begin(
        module, target, "look", void, [(ptr, "waiter"), (ptr, "slot")], cold=True
    )
    out, pool = b.new("out"), b.get(waiter, Waiter.POOL, ptr)
    with b.when(b.icmp("eq", b.get(waiter, Waiter.BLOCKED), const(i64, 0))):
        b.put(waiter, Waiter.BLOCKED, const(i64, 1))
        _count(b, slot, 1)
    # At the end of the process nobody else comes to an end either.
    over = b.icmp("ne", b.get_atomic(pool, Pool.STOP, i32), const(i32, 0))
    with b.when(over, weights=(1, 2000)):
        b.put_atomic(slot, Slot.ABORT, const(i32, 1), "seq_cst")
    b.call("relieve", void, (pool, slot))
    launch = b.get(waiter, Waiter.LAUNCH, ptr)
    b.leave(b.null(launch), out)
    ends = b.new("ends")
    b.leave(b.call("signals", i1, (pool, launch)), ends, rarely=True)
    b.need(b.call("patience", i1, (pool, slot, waiter)), out)
    b.put(launch, Launch.STUCK, const(i64, 1))
    b.put(launch, Launch.INTERRUPTED, const(i64, 1))
    b.br(ends)
    b.goto(ends)
    b.put_atomic(slot, Slot.ABORT, const(i32, 1), "seq_cst")
    b.br(out)
    b.goto(out)
    b.ret()


def _hook(module: Module, target: Target) -> None:
    """See the module."""
    b, (waiter, again) = begin(module, target, "wait_hook", i32, [(ptr, "waiter"), (i32, "again")])
    over, short, on = b.new("over"), b.new("short"), b.new("on")
    slot = b.get(waiter, Waiter.SLOT, ptr)
    b.leave(b.icmp("eq", again, const(i32, 0)), over)
    looks = b.add(b.get(waiter, Waiter.LOOKS), const(i64, 1))
    b.put(waiter, Waiter.LOOKS, looks)
    b.leave(b.icmp("ult", looks, const(i64, _PAUSES)), short)
    b.call("sched_yield", i32, ())
    with b.when(b.icmp("ugt", looks, const(i64, _YIELDS))):
        b.call("usleep", i32, (const(i32, _NAP),))
    most = b.and_(looks, const(i64, _PERIOD - 1))
    b.leave(b.icmp("ne", most, const(i64, 0)), on)
    b.call("look", void, (waiter, slot))
    b.br(on)
    b.goto(on)
    b.ret(b.get_atomic(slot, Slot.ABORT, i32, "seq_cst"))
    b.goto(short)
    b.pause()
    b.ret(const(i32, 0))
    b.goto(over)
    b.put(waiter, Waiter.LOOKS, const(i64, 0))
    with b.when(b.icmp("ne", b.get(waiter, Waiter.BLOCKED), const(i64, 0))):
        b.put(waiter, Waiter.BLOCKED, const(i64, 0))
        _count(b, slot, -1)
    # What others wrote before what was waited for is read after it.
    b.fence("seq_cst")
    b.ret(const(i32, 0))


def _join_waiting(module: Module, target: Target) -> None:
    """``join_waiting(pool, slot, launch, total)``: wait for the others; they end if it is to."""
    params = [(ptr, "pool"), (ptr, "slot"), (ptr, "launch"), (i32, "total")]
    b, (pool, slot, launch, total) = begin(module, target, "join_waiting", void, params)
    looks = b.variable(const(i64, 0), "looks")
    with b.forever("looking") as (head, after):
        done = b.get_atomic(slot, Slot.DONE, i32, "seq_cst")
        b.leave(b.icmp("uge", done, total), after)
        looks.set(b.add(looks.get(), const(i64, 1)))
        b.call("sched_yield", i32, ())
        b.leave(b.icmp("ult", looks.get(), const(i64, _PERIOD)), head)
        b.call("usleep", i32, (const(i32, _NAP),))
        with b.when(b.call("signals", i1, (pool, launch)), weights=(1, 2000)):
            b.put_atomic(slot, Slot.ABORT, const(i32, 1), "seq_cst")
    b.ret()


def _stuck(module: Module, target: Target) -> None:
    """``stuck(pool)``: raise the error of programs that can't go on. With the GIL."""
    b, (pool,) = begin(module, target, "stuck", void, [(ptr, "pool")], cold=True)
    out = b.new("out")
    nothing = b.call("PyTuple_New", ptr, (const(i64, 0),))
    b.leave(b.null(nothing), out)
    raising = b.get(pool, Pool.STUCK, ptr)
    result = b.call("PyObject_Call", ptr, (raising, nothing, const(ptr, 0)))
    b.call("Py_DecRef", void, (nothing,))
    b.leave(b.null(result), out)
    b.call("Py_DecRef", void, (result,))
    b.br(out)
    b.goto(out)
    b.ret()
