"""Starting a grid on a GPU: a call of its driver.

``run_on_gpu(call, buffer)`` gives the driver the grid, on the stream that is torch's current one of
the device; the arguments are in ``buffer``, a slot each. It returns 0, or what the driver or torch
said against it: Python then does it again and finds out why. The GIL is dropped meanwhile, as the
driver waits where a stream has much to do already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Module, V, const, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import WORD, Call, DLTensor, Entry, OnDevice, Process, Recent
from .writer import HostBuilder, begin

PYTHON = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_Clear")


def write(module: Module, target: Target) -> None:
    """Write ``run_on_gpu``."""
    b, (call, buffer) = begin(module, target, "run_on_gpu", i32, [(ptr, "call"), (ptr, "buffer")])
    process, entry = b.get(call, Call.PROCESS, ptr), b.get(call, Call.ENTRY, ptr)
    code = b.get(call, Call.RECORD, ptr)
    stream, strange = b.stack(WORD, "stream"), b.new("strange")
    launch = b.get(process, Process.LAUNCH_KERNEL, ptr)
    b.leave(b.null(launch), strange, rarely=True)
    number = b.trunc(b.sub(b.get(entry, Entry.PLACE), const(i64, 1)), i32)
    work_stream = b.get(process, Process.WORK_STREAM, ptr)
    unknown = b.call(work_stream, i32, (const(i32, DLTensor.CUDA), number, stream))
    b.leave(b.icmp("ne", unknown, const(i32, 0)), strange, rarely=True)
    parameters = _parameters(b, buffer, b.get(entry, Entry.SLOTS))
    _note(b, b.get(process, Process.RECENT, ptr), b.get(code, OnDevice.NUMBER))
    extents = [b.trunc(b.get(call, Call.EXTENTS + axis * WORD), i32) for axis in range(3)]
    threads, shared = (
        b.trunc(b.get(code, field), i32) for field in (OnDevice.THREADS, OnDevice.SHARED)
    )
    one, nothing = const(i32, 1), const(ptr, 0)
    function, handle = b.get(code, OnDevice.FUNCTION, ptr), b.get(stream, 0, ptr)
    block = (threads, one, one)
    state = b.call("PyEval_SaveThread", ptr, ())
    arguments = (function, *extents, *block, shared, handle, parameters, nothing)
    status = b.call(launch, i32, arguments)
    b.call("PyEval_RestoreThread", void, (state,))
    b.ret(status)
    b.goto(strange)
    b.call("PyErr_Clear", void, ())
    b.ret(const(i32, -1))


def _parameters(b: HostBuilder, buffer: V, count: V) -> V:
    """The addresses of the slots, as the driver wants them."""
    addresses = b.stack(Entry.MOST_SLOTS * WORD, "parameters")
    with b.loop(const(i64, 0), count) as loop:
        place = b.mul(loop.index, const(i64, WORD))
        b.store(b.gep(buffer, place), b.gep(addresses, place), align=WORD)
    return addresses


def _note(b: HostBuilder, recent: V, number: V) -> None:
    """Note the launch in ``Recent``."""
    count = b.get(recent, Recent.COUNT)
    place = b.and_(count, const(i64, Recent.MOST - 1))
    b.put(b.gep(recent, b.mul(place, const(i64, WORD))), Recent.NUMBERS, number)
    b.put(recent, Recent.COUNT, b.add(count, const(i64, 1)))
