"""A GPU in software: kernels written for NVPTX, run on the host's CPU, thread by thread.

    gpu = Emulator(writer.module.text(), "kernel", num_warps=4)
    gpu.launch([x.ctypes.data, y.ctypes.data, 1000], grid=(8, 1, 1), seed=3)

``text`` is the LLVM IR that would go to the NVPTX code generator, unoptimised. Its instructions run
as they are, compiled for the host; ``llvm.nvvm`` intrinsics are replaced by the definitions in
``emulated``. Arguments are given in the order of the kernel's parameters: addresses for pointers,
Python numbers for the others (an int for i1 to i64, half as its bits or a float).

Every thread of a block has a stack of its own and runs until it waits for others: at a barrier, a
shuffle, a vote. Warps and lanes are taken in an order that ``seed`` determines, each as far as it
can go, so that missing barriers show. Beyond that every access of shared memory is recorded, and
``launch`` raises ``RaceError`` where two threads meet in a byte, one of them storing, without a
barrier between; of global memory too with ``global_races``, when elements of one store must have
addresses of their own. Shared memory holds garbage when a block starts. ``Deadlock`` is raised
where not all threads of a warp or block come to a barrier, or to the same one.

``barriers`` counts the block's barriers of the last launch that its first thread passed,
``warp_barriers`` those of its warp, ``shuffles`` its shuffles.

It works where there is glibc: ``unsupported()`` says why not.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
import random
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from tests.backends.nvptx import emulated, emulated_asm
from tests.backends.nvptx.emulated import (
    BARRIER,
    DONE,
    REDUCE,
    REDUCTIONS,
    SHUFFLE,
    SHUFFLES,
    SPECIAL,
    VOTE,
    VOTES,
    WARP_BARRIER,
)

from tritium.backends import llvm
from tritium.backends.emit import Module

LANES = 32
SHARED_BYTES = 232448
STACK_BYTES = 256 * 1024
CONTEXT_BYTES = 8192
LOG_ENTRIES = 1 << 20
GARBAGE = 0xA7
SHARED_SPACE, GLOBAL_SPACE = 0, 1

_RUNTIME = """
@emu.main = global [8192 x i8] zeroinitializer, align 64
@emu.self = global ptr null
@emu.event = global [6 x i64] zeroinitializer, align 64
@emu.special = global [16 x i32] zeroinitializer, align 64
@emu.epoch = global i64 0
@emu.log = global ptr null
@emu.logged = global i64 0
@emu.parameters = global [1024 x i64] zeroinitializer, align 64
declare i32 @swapcontext(ptr, ptr)
define internal i64 @emu.yield(i64 %kind, i64 %a, i64 %b, i64 %c, i64 %d) noinline {
  store volatile i64 %kind, ptr @emu.event
  store volatile i64 %a, ptr getelementptr (i8, ptr @emu.event, i64 8)
  store volatile i64 %b, ptr getelementptr (i8, ptr @emu.event, i64 16)
  store volatile i64 %c, ptr getelementptr (i8, ptr @emu.event, i64 24)
  store volatile i64 %d, ptr getelementptr (i8, ptr @emu.event, i64 32)
  %self = load volatile ptr, ptr @emu.self
  %status = call i32 @swapcontext(ptr %self, ptr @emu.main)
  %result = load volatile i64, ptr getelementptr (i8, ptr @emu.event, i64 40)
  ret i64 %result
}
define internal void @emu.access3(ptr addrspace(3) %address, i64 %what) noinline {
  %base = ptrtoint ptr addrspace(3) @smem to i64
  %number = ptrtoint ptr addrspace(3) %address to i64
  %offset = sub i64 %number, %base
  call void @emu.note(i64 %offset, i64 %what)
  ret void
}
define internal void @emu.access1(ptr addrspace(1) %address, i64 %what) noinline {
  %number = ptrtoint ptr addrspace(1) %address to i64
  %marked = or i64 %what, 131072
  call void @emu.note(i64 %number, i64 %marked)
  ret void
}
define internal void @emu.note(i64 %offset, i64 %what) noinline {
  %log = load volatile ptr, ptr @emu.log
  %count = load volatile i64, ptr @emu.logged
  %full = icmp uge i64 %count, LIMIT
  br i1 %full, label %done, label %note
note:
  %next = add i64 %count, 1
  store volatile i64 %next, ptr @emu.logged
  %place = getelementptr { i64, i64, i64, i64 }, ptr %log, i64 %count
  store i64 %offset, ptr %place
  %second = getelementptr i8, ptr %place, i64 8
  store i64 %what, ptr %second
  %third = getelementptr i8, ptr %place, i64 16
  %epoch = load volatile i64, ptr @emu.epoch
  store i64 %epoch, ptr %third
  %fourth = getelementptr i8, ptr %place, i64 24
  %thread = load volatile i32, ptr @emu.special
  %wide = zext i32 %thread to i64
  store i64 %wide, ptr %fourth
  br label %done
done:
  ret void
}
""".replace("LIMIT", str(LOG_ENTRIES))

_EXPORTS = ("start", "main", "self", "event", "special", "epoch", "log", "logged", "parameters")


class EmulatorError(AssertionError):
    """The kernel did what no GPU would let pass."""


class RaceError(EmulatorError):
    """Two threads met in shared memory without a barrier between."""


class Deadlock(EmulatorError):
    """Threads wait for others that never come."""


@cache
def unsupported() -> str | None:
    """Why nothing can be emulated here, None if it can."""
    if platform.libc_ver()[0] != "glibc":
        return "the emulator needs glibc's contexts"
    return None


# ---- translation ---------------------------------------------------------------------------------

_ACCESS = re.compile(
    r"^  (?:%\S+ = )?(?P<kind>load|store) (?:volatile )?(?P<type><[^>]*>|\S+?)"
    r"(?:,| (?P<value>.+),) ptr addrspace\((?P<space>[13])\) (?P<address>[^\s,]+)",
    re.M,
)
_SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}


def _size(type_: str) -> int:
    found = re.fullmatch(r"<(\d+) x (.+)>", type_)
    if found:
        return int(found[1]) * _size(found[2])
    if type_ in _SIZES:
        return _SIZES[type_]
    return max(1, int(type_[1:]) // 8)


def _logged(match: re.Match[str]) -> str:
    what = _size(match["type"]) | (1 << 16 if match["kind"] == "store" else 0)
    space, address = match["space"], match["address"]
    note = f"  call void @emu.access{space}(ptr addrspace({space}) {address}, i64 {what})"
    return f"{note}\n{match[0]}"


def _split(text: str) -> list[str]:
    """A parameter list at its commas."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "(<[{") - (character in ")>]}")
        if character == "," and not depth:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def parameter_types(text: str, entry: str) -> list[str]:
    """The LLVM types of a kernel's parameters."""
    found = re.search(rf"^define [^\n]*?@{re.escape(entry)}\(", text, re.M)
    assert found, f"no kernel {entry} in the module"
    depth, end = 1, found.end()
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    kinds = [re.match(r"ptr addrspace\(\d+\)|\S+", p) for p in _split(text[found.end() : end - 1])]
    return [kind[0] for kind in kinds if kind]


def _start(text: str, entry: str) -> str:
    lines, arguments = [], []
    for number, type_ in enumerate(parameter_types(text, entry)):
        place = f"getelementptr (i8, ptr @emu.parameters, i64 {8 * number})"
        lines.append(f"  %p{number} = load {type_}, ptr {place}")
        arguments.append(f"{type_} %p{number}")
    call = f"  call void @{entry}({', '.join(arguments)})"
    done = f"  call i64 @emu.yield(i64 {DONE}, i64 0, i64 0, i64 0, i64 0)"
    return "\n".join(["define void @emu.start() {", *lines, call, done, "  unreachable", "}", ""])


def _without_locations(text: str) -> str:
    """Of no use here, and they take time."""
    return re.sub(r",? !dbg !\d+|^!llvm\.dbg\.cu.*\n", "", text, flags=re.M)


def for_host(text: str) -> str:
    """Any module with its ``llvm.nvvm`` intrinsics replaced by definitions for the host.

    Raises AssertionError for an intrinsic that isn't defined.
    """
    text = emulated_asm.replaced(text)
    names = set(re.findall(r"@llvm\.([\w.]+)\(", text))
    defined = emulated.definitions()
    replaced = sorted(name for name in names if name in defined)
    unknown = [name for name in names if name.startswith("nvvm.") and name not in defined]
    assert not unknown, f"no emulation of {', '.join(sorted(unknown))}"
    for name in replaced:
        text = re.sub(rf"^declare .*@llvm\.{re.escape(name)}\(.*\n", "", text, flags=re.M)
        text = text.replace(f"@llvm.{name}(", f"@gpu.{name}(")
    module = Module("emulated")
    emulated.write(module, replaced)
    return _without_doubles(f"{module.text()}\n{text}")


def translate(text: str, entry: str) -> str:
    """The module of a kernel for the host, with what runs it."""
    text = _without_locations(text)
    text = re.sub(r"^define ptx_kernel void", "define void", text, flags=re.M)
    shared = f"@smem = addrspace(3) global [{SHARED_BYTES} x i8] zeroinitializer, align 1024"
    text, found = re.subn(r"^@smem = .*$", shared, text, flags=re.M)
    text = _ACCESS.sub(_logged, emulated_asm.replaced(text))
    parts = [for_host(text), _start(text, entry)]
    return _without_doubles("\n".join([*([] if found else [shared]), _RUNTIME, *parts]))


def _without_doubles(text: str) -> str:
    """Each function declared once, and not where it is defined."""
    seen = set(re.findall(r"^define [^\n]*?@([\w.]+)\(", text, re.M))

    def once(match: re.Match[str]) -> str:
        if match[1] in seen:
            return ""
        seen.add(match[1])
        return match[0]

    return re.sub(r"^declare [^\n]*?@([\w.]+)\(.*\n", once, text, flags=re.M)


# ---- running -------------------------------------------------------------------------------------


@dataclass
class Thread:
    """One thread of the running block."""

    number: int
    context: int
    event: tuple[int, ...] | None = None
    """What it waits for; None while it can go on."""
    answer: int = 0

    @property
    def done(self) -> bool:
        return self.event is not None and self.event[0] == DONE


@dataclass
class Warp:
    """Threads that shuffle with each other."""

    threads: list[Thread]
    epoch: int = 0

    def ready(self) -> list[Thread]:
        return [thread for thread in self.threads if thread.event is None]


@dataclass
class Counts:
    """What the first thread of a block did."""

    barriers: int = 0
    warp_barriers: int = 0
    shuffles: int = 0


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None)
    for name in ("swapcontext", "getcontext", "makecontext"):
        getattr(libc, name).restype = ctypes.c_int
    libc.swapcontext.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    libc.getcontext.argtypes = [ctypes.c_void_p]
    libc.makecontext.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return libc


def _packed(type_: str, value: Any) -> bytes:
    """A kernel's argument in its 8 bytes."""
    if type_ == "float":
        return struct.pack("<f4x", value)
    if type_ == "double":
        return struct.pack("<d", value)
    if type_ == "half" and isinstance(value, float):
        return struct.pack("<e6x", value)
    return (int(value) & (2**64 - 1)).to_bytes(8, "little")


@dataclass
class Emulator:
    """One kernel of a module, ready to be launched on the host."""

    text: str
    entry: str
    num_warps: int
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self.host_text = translate(self.text, self.entry)
        imports = {"swapcontext": ctypes.cast(_libc().swapcontext, ctypes.c_void_p).value or 0}
        exports = [*(f"emu.{name}" for name in _EXPORTS), "smem"]
        target = llvm.host_target()
        self.library = llvm.compile_and_link(self.host_text, target, exports, imports)
        self.types = parameter_types(self.text, self.entry)
        self._at = {name: self.library.address(f"emu.{name}") for name in _EXPORTS}
        self._shared = self.library.address("smem")
        count = self.num_warps * LANES
        self._stacks = np.empty(count * STACK_BYTES, np.uint8)
        self._contexts = np.zeros(count * CONTEXT_BYTES + 64, np.uint8)
        self._log = np.zeros((LOG_ENTRIES, 4), np.int64)
        self._event = (ctypes.c_int64 * 6).from_address(self._at["event"])
        self._special = (ctypes.c_int32 * 16).from_address(self._at["special"])
        self._self = ctypes.c_void_p.from_address(self._at["self"])
        self._epoch = ctypes.c_int64.from_address(self._at["epoch"])
        self._logged = ctypes.c_int64.from_address(self._at["logged"])
        ctypes.c_void_p.from_address(self._at["log"]).value = self._log.ctypes.data

    @property
    def barriers(self) -> int:
        return self.counts.barriers

    @property
    def warp_barriers(self) -> int:
        return self.counts.warp_barriers

    @property
    def shuffles(self) -> int:
        return self.counts.shuffles

    def launch(
        self,
        arguments: Sequence[Any],
        grid: Sequence[int] = (1, 1, 1),
        *,
        seed: int = 0,
        races: bool = True,
        global_races: bool = False,
    ) -> None:
        """Run every block of the grid, one after the other. Raises as the module's text says."""
        assert len(arguments) == len(self.types), f"{len(self.types)} arguments are needed"
        packed = b"".join(map(_packed, self.types, arguments))
        ctypes.memmove(self._at["parameters"], packed, len(packed))
        grid = (*grid, 1, 1)[:3]
        random_order = random.Random(seed)
        for index in itertools.product(*map(range, reversed(grid))):
            self._run(tuple(reversed(index)), tuple(grid), random_order)
            if races:
                self._check_shared()
            if global_races:
                _check_bytes(self.accesses(GLOBAL_SPACE))

    def _run(
        self,
        block: tuple[int, ...],
        grid: tuple[int, ...],
        order: random.Random,
    ) -> None:
        count = self.num_warps * LANES
        ctypes.memset(self._shared, GARBAGE, SHARED_BYTES)
        for name, value in zip(SPECIAL[1:], (count, *block, *grid), strict=True):
            self._special[SPECIAL.index(name)] = value
        self._logged.value = 0
        self.counts = Counts()
        threads = [self._fresh(number) for number in range(count)]
        warps = [Warp(threads[at : at + LANES]) for at in range(0, count, LANES)]
        epoch = 0
        while not all(thread.done for thread in threads):
            for warp in order.sample(warps, len(warps)):
                self._advance(warp, epoch, order)
            self._pass_barrier(threads)
            epoch += 1

    def _fresh(self, number: int) -> Thread:
        libc = _libc()
        base = self._contexts.ctypes.data
        context = (base + 63) // 64 * 64 + number * CONTEXT_BYTES
        libc.getcontext(context)
        # uc_link, then uc_stack: its address, flags, size.
        stack = self._stacks.ctypes.data + number * STACK_BYTES
        fields = struct.pack("<QQQQ", 0, stack, 0, STACK_BYTES)
        ctypes.memmove(context + 8, fields, len(fields))
        libc.makecontext(context, self._at["start"], 0)
        return Thread(number, context)

    def _resume(self, thread: Thread, epoch: int) -> None:
        self._special[0] = thread.number
        self._epoch.value = epoch
        self._self.value = thread.context
        self._event[5] = thread.answer
        _libc().swapcontext(self._at["main"], thread.context)
        thread.event = tuple(self._event[:5])
        if thread.number == 0:
            kind = thread.event[0]
            self.counts.barriers += kind == BARRIER
            self.counts.warp_barriers += kind == WARP_BARRIER
            self.counts.shuffles += kind == SHUFFLE

    def _advance(self, warp: Warp, epoch: int, order: random.Random) -> None:
        """Run a warp until all its threads are done or wait for the block."""
        while True:
            for thread in order.sample(warp.threads, len(warp.threads)):
                if thread.event is None:
                    self._resume(thread, epoch << 32 | warp.epoch)
            waiting = [thread for thread in warp.threads if not thread.done]
            kinds = {thread.event[0] for thread in waiting if thread.event}
            if not kinds or kinds == {BARRIER}:
                return
            if len(kinds) > 1 or len(waiting) < len(warp.threads):
                raise Deadlock(f"threads of a warp wait for different things: {kinds}")
            self._exchange(warp, kinds.pop())

    def _exchange(self, warp: Warp, kind: int) -> None:
        events = [thread.event for thread in warp.threads]
        assert all(event is not None for event in events)
        masks = {event[1] & 0xFFFFFFFF for event in events if event}
        if masks != {0xFFFFFFFF}:
            raise Deadlock(f"masks {masks} leave out threads of a warp")
        values = [event[2] for event in events if event]
        whats = [event[3] for event in events if event]
        if kind == WARP_BARRIER:
            warp.epoch += 1
            answers = [0] * LANES
        elif kind == SHUFFLE:
            answers = [_shuffled(lane, whats[lane], values) for lane in range(LANES)]
        else:
            if len(set(whats)) > 1:
                raise Deadlock("threads of a warp reduce by different operations")
            names = REDUCTIONS if kind == REDUCE else VOTES
            assert kind in (REDUCE, VOTE)
            answers = [_reduced(names[whats[0]], values)] * LANES
        for thread, answer in zip(warp.threads, answers, strict=True):
            thread.event, thread.answer = None, answer

    def _pass_barrier(self, threads: list[Thread]) -> None:
        waiting = [thread for thread in threads if not thread.done]
        if not waiting:
            return
        if len(waiting) < len(threads):
            raise Deadlock(f"{len(threads) - len(waiting)} threads left before a barrier")
        if len({thread.event for thread in threads}) > 1:
            raise Deadlock("threads wait at different barriers")
        for thread in threads:
            thread.event = None

    # Races.

    def accesses(self, space: int = SHARED_SPACE) -> np.ndarray:
        """What the last block did in a kind of memory: offset (in global memory the address), bytes
        (65536 added for a store), epoch (barriers of the block above bit 32, of the warp below),
        thread; in the order of the run."""
        assert self._logged.value < LOG_ENTRIES, "too many accesses to record"
        log = self._log[: self._logged.value]
        log = log[log[:, 1] >> 17 == space]
        log[:, 1] &= 0x1FFFF
        return log

    def _check_shared(self) -> None:
        log = self.accesses()
        sizes = log[:, 1] & 0xFFFF
        if (log[:, 0] < 0).any() or (log[:, 0] + sizes > SHARED_BYTES).any():
            raise EmulatorError("an access outside shared memory")
        if (log[:, 0] % sizes).any():
            raise EmulatorError("an access of shared memory that is not aligned to its size")
        _check_bytes(log)


def _check_bytes(log: np.ndarray) -> None:
    """Raises RaceError where accesses of a block meet."""
    if not len(log):
        return
    sizes = log[:, 1] & 0xFFFF
    rows = np.repeat(np.arange(len(log)), sizes)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    byte, stores = log[rows, 0] + within, log[rows, 1] >> 16
    epochs, threads = log[rows, 2], log[rows, 3]
    _check_groups([epochs >> 32, byte], threads // LANES, stores, "warps")
    keys = [epochs >> 32, byte, threads // LANES, epochs & 0xFFFFFFFF]
    _check_groups(keys, threads, stores, "threads of a warp")


def _check_groups(keys: list[np.ndarray], who: np.ndarray, stores: np.ndarray, what: str) -> None:
    """Raises RaceError where a group of equal keys has a store and more than one of ``who``."""
    order = np.lexsort(keys)
    sorted_keys = np.stack([key[order] for key in keys])
    starts = np.flatnonzero(
        np.concatenate([[True], (sorted_keys[:, 1:] != sorted_keys[:, :-1]).any(axis=0)])
    )
    lowest = np.minimum.reduceat(who[order], starts)
    highest = np.maximum.reduceat(who[order], starts)
    stored = np.maximum.reduceat(stores[order], starts)
    bad = np.flatnonzero((lowest != highest) & (stored > 0))
    if len(bad):
        first = bad[0]
        byte = sorted_keys[1, starts[first]]
        raise RaceError(
            f"{what} {lowest[first]} and {highest[first]} meet at byte {byte} without waiting, "
            f"{len(bad)} bytes in all"
        )


def _shuffled(lane: int, what: int, values: Sequence[int]) -> int:
    """What a lane gets from a shuffle of width 32."""
    mode = SHUFFLES[what >> 60 & 3]
    operand, clamp = what >> 32 & 0xFFFFFFF, what & 0xFFFFFFFF
    assert clamp == (0 if mode == "up" else 31), "a shuffle of fewer than 32 lanes"
    reads = {
        "bfly": lane ^ operand,
        "idx": operand & 31,
        "up": lane - operand,
        "down": lane + operand,
    }[mode]
    return values[reads if 0 <= reads < LANES else lane]


def _reduced(name: str, values: Sequence[int]) -> int:
    unsigned = [value & 0xFFFFFFFF for value in values]
    signed = [value - (value >> 31 << 32) for value in unsigned]
    total = 0
    if name in ("umin", "umax"):
        return {"umin": min, "umax": max}[name](unsigned)
    if name in ("min", "max"):
        return {"min": min, "max": max}[name](signed) & 0xFFFFFFFF
    if name == "add":
        return sum(unsigned) & 0xFFFFFFFF
    if name == "ballot":
        return sum((value & 1) << lane for lane, value in enumerate(values))
    if name in ("any", "all"):
        return int({"any": any, "all": all}[name](value & 1 for value in values))
    total = unsigned[0]
    for value in unsigned[1:]:
        total = {"and": total & value, "or": total | value, "xor": total ^ value}[name]
    return total
