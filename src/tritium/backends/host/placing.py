"""Keeping workers off the CPU of their caller.

Schedulers may well put a thread that is woken on the CPU of the one that wakes it, though others
are idle: where a virtual machine's idle CPU counts as not available, or where few CPUs are to be
kept awake. The worker then waits for milliseconds behind the very thread that wants its help. So a
caller that wakes workers allows them its own CPUs but the one that it runs on; where several
callers take turns, now and then only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Module, V, const, double, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import WORD, Pool, Worker
from .writer import HostBuilder, begin

_C = ("sched_getaffinity", "sched_getcpu", "pthread_setaffinity_np")
_SIZE = Pool.CPUS_SIZE
_WORDS = const(i64, _SIZE // WORD)


def write(module: Module, target: Target) -> tuple[str, ...]:
    """Write ``place(pool)``; returns the C functions that it calls."""
    b, (pool,) = begin(module, target, "place", void, [(ptr, "pool")])
    if "linux" not in target.triple:
        b.ret()
        return ()
    out, now = b.new("out"), b.now()
    since = b.sitofp(b.sub(now, b.get(pool, Pool.PLACED)), double)
    b.leave(b.fcmp("olt", since, b.get(pool, Pool.PLACING, double)), out)
    allowed, size = b.stack(_SIZE, "allowed"), const(i64, _SIZE)
    failed = b.call("sched_getaffinity", i32, (const(i32, 0), size, allowed))
    b.leave(b.icmp("ne", failed, const(i32, 0)), out, rarely=True)
    cpu = b.zext(b.call("sched_getcpu", i32, ()), i64)
    b.leave(b.icmp("uge", cpu, const(i64, 8 * _SIZE)), out, rarely=True)
    place = b.gep(allowed, b.mul(b.lshr(cpu, const(i64, 6)), const(i64, WORD)))
    bit = b.shl(const(i64, 1), b.and_(cpu, const(i64, 63)))
    b.put(place, 0, b.and_(b.get(place, 0), b.xor(bit, const(i64, -1))))
    before = b.gep(pool, Pool.CPUS)
    some, differ = b.variable(const(i64, 0), "some"), b.variable(const(i64, 0), "differ")
    with b.loop(const(i64, 0), _WORDS) as loop:
        word, then = (_word(b, base, loop.index) for base in (allowed, before))
        some.set(b.or_(some.get(), word))
        differ.set(b.or_(differ.get(), b.xor(word, then)))
    b.leave(b.icmp("eq", some.get(), const(i64, 0)), out, rarely=True)
    b.leave(b.icmp("eq", differ.get(), const(i64, 0)), out)
    # The end of the process waits with the workers' end for this.
    busy = b.atomic_rmw("xchg", b.gep(pool, Pool.GROWING), const(i32, 1), align=8)
    b.leave(b.icmp("ne", busy, const(i32, 0)), out, rarely=True)
    b.memcpy(before, allowed, size, align=WORD)
    b.put(pool, Pool.PLACED, now)
    first = b.gep(pool, Worker.FIRST)
    with b.loop(const(i64, 0), b.get_atomic(pool, Pool.WORKERS), name="w") as loop:
        worker = b.gep(first, b.mul(loop.index, const(i64, Worker.SIZE)))
        thread = b.get(worker, Worker.THREAD)
        b.call("pthread_setaffinity_np", i32, (thread, size, allowed))
    b.put_atomic(pool, Pool.GROWING, const(i32, 0))
    b.br(out)
    b.goto(out)
    b.ret()
    return _C


def _word(b: HostBuilder, base: V, index: V) -> V:
    return b.load(i64, b.gep(base, b.mul(index, const(i64, WORD))), align=WORD)
