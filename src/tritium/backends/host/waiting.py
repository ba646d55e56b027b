"""Sleeping until a word of memory changes, as the platform has it.

``wait(pool, word, seen, mask)`` returns once the 4-byte ``word`` isn't ``seen`` any more, or at any
time before; ``wake(pool, word, mask)`` ends the waits that share a bit with ``mask``. Linux has the
futex; elsewhere one mutex and one condition of the pool serve all words, and a wake ends all waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Module, V, const, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import Pool
from .writer import HostBuilder, begin

EVERYBODY = -1
"""The mask of all threads."""

# By architecture: the number of Linux's system call.
_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98}
_PRIVATE = 128
_WAIT_BITSET, _WAKE_BITSET = 9 | _PRIVATE, 10 | _PRIVATE
_ALL = (1 << 31) - 1


def has_futex(target: Target) -> bool:
    """Whether threads can wait by Linux's futex."""
    return "linux" in target.triple and target.architecture in _FUTEX


def write(module: Module, target: Target, *, condition: bool = False) -> tuple[str, ...]:
    """Write ``prepare(pool)``, ``wait`` and ``wake``; returns the C functions they call.

    ``condition``: not by the futex, even where there is one.
    """
    if has_futex(target) and not condition:
        return _by_futex(module, target)
    return _by_condition(module, target)


def _begin(module: Module, target: Target, name: str, *more: str) -> tuple[HostBuilder, list[V]]:
    params = [(ptr, "pool"), (ptr, "word"), *((i32, each) for each in more)]
    return begin(module, target, name, void, params, cold=True)


def _by_futex(module: Module, target: Target) -> tuple[str, ...]:
    call = const(i64, _FUTEX[target.architecture])
    nothing = const(ptr, 0)
    b, _ = begin(module, target, "prepare", void, [(ptr, "pool")], exported=True)
    b.ret()
    b, (_, word, seen, mask) = _begin(module, target, "wait", "seen", "mask")
    operation = const(i32, _WAIT_BITSET)
    b.call("syscall", i64, (call, word, operation, seen, nothing, nothing, mask))
    b.ret()
    b, (_, word, mask) = _begin(module, target, "wake", "mask")
    operation = const(i32, _WAKE_BITSET)
    b.call("syscall", i64, (call, word, operation, const(i32, _ALL), nothing, nothing, mask))
    b.ret()
    return ("syscall",)


def _by_condition(module: Module, target: Target) -> tuple[str, ...]:
    b, (pool,) = begin(module, target, "prepare", void, [(ptr, "pool")], exported=True)
    for kind, offset in (("mutex", Pool.MUTEX), ("cond", Pool.CONDITION)):
        b.call(f"pthread_{kind}_init", i32, (b.gep(pool, offset), const(ptr, 0)))
    b.ret()

    b, (pool, word, seen, _) = _begin(module, target, "wait", "seen", "mask")
    mutex, condition = b.gep(pool, Pool.MUTEX), b.gep(pool, Pool.CONDITION)
    b.call("pthread_mutex_lock", i32, (mutex,))
    with b.forever() as (_, after):
        now = b.load(i32, word, align=8, ordering="seq_cst")
        b.leave(b.icmp("ne", now, seen), after)
        b.call("pthread_cond_wait", i32, (condition, mutex))
    b.call("pthread_mutex_unlock", i32, (mutex,))
    b.ret()

    b, (pool, _, _) = _begin(module, target, "wake", "mask")
    mutex, condition = b.gep(pool, Pool.MUTEX), b.gep(pool, Pool.CONDITION)
    b.call("pthread_mutex_lock", i32, (mutex,))
    b.call("pthread_cond_broadcast", i32, (condition,))
    b.call("pthread_mutex_unlock", i32, (mutex,))
    b.ret()
    mutexes = ("init", "lock", "unlock")
    conditions = ("init", "wait", "broadcast")
    return (
        *(f"pthread_mutex_{name}" for name in mutexes),
        *(f"pthread_cond_{name}" for name in conditions),
    )
