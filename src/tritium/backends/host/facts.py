"""What the arguments of a launch are: native code that looks at Python's objects.

``classify(process, arguments, count, facts)`` fills a ``Fact`` for each. Objects of exactly the
types that it knows are looked into, all others are ``OTHER``. ``storages(process, facts, count)``
finds the memory that arrays are views of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Module, V, const, double, i1, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import TYPE, WORD, Array, DLTensor, Fact, Process
from .writer import HostBuilder, begin

PYTHON = (
    "PyLong_AsLongLongAndOverflow",
    "PyLong_AsUnsignedLongLong",
    "PyFloat_AsDouble",
    "PyErr_Occurred",
    "PyErr_Clear",
)


def write(module: Module, target: Target) -> None:
    """Write ``classify`` and ``storages``."""
    _integer(module, target)
    _tensor(module, target)
    _classify(module, target)
    _extent(module, target)
    _array_storage(module, target)
    _tensor_storage(module, target)
    _storages(module, target)


def _integer(module: Module, target: Target) -> None:
    """``integer(object, fact)``: an int of at most 64 bits."""
    b, (value, fact) = begin(module, target, "integer", void, [(ptr, "object"), (ptr, "fact")])
    overflow = b.stack(WORD, "overflow")
    number = b.call("PyLong_AsLongLongAndOverflow", i64, (value, overflow))
    over = b.load(i32, overflow, align=WORD)
    large = b.new("large")
    b.leave(b.icmp("ne", over, const(i32, 0)), large, rarely=True)
    short = b.icmp("eq", number, b.sext(b.trunc(number, i32), i64))
    b.put(fact, Fact.KIND, b.select(short, const(i64, Fact.INT32), const(i64, Fact.INT64)))
    b.put(fact, Fact.VALUE, number)
    b.ret()
    b.goto(large)
    out = b.new("out")
    b.leave(b.icmp("slt", over, const(i32, 0)), out)
    unsigned = b.call("PyLong_AsUnsignedLongLong", i64, (value,))
    failed = b.not_(b.null(b.call("PyErr_Occurred", ptr, ())))
    b.put(fact, Fact.VALUE, unsigned)
    kind = b.select(failed, const(i64, Fact.OTHER), const(i64, Fact.UINT64))
    b.put(fact, Fact.KIND, kind)
    with b.when(failed):
        b.call("PyErr_Clear", void, ())
    b.br(out)
    b.goto(out)
    b.ret()


def _tensor(module: Module, target: Target) -> None:
    """``tensor(process, object, fact)``: a tensor whose elements are as they are in memory."""
    params = [(ptr, "process"), (ptr, "object"), (ptr, "fact")]
    b, (process, value, fact) = begin(module, target, "tensor", void, params)
    described = b.stack(DLTensor.SIZE, "described")
    exchange = b.get(process, Process.EXCHANGE, ptr)
    refused = b.call(exchange, i32, (value, described))
    failed, out = b.new("failed"), b.new("out")
    b.leave(b.icmp("ne", refused, const(i32, 0)), failed, rarely=True)
    # The kind of device and, above that, its number.
    device = b.get(described, DLTensor.DEVICE)
    kind = b.trunc(device, i32)
    on_cpu = b.icmp("eq", kind, const(i32, DLTensor.CPU))
    b.need(b.or_(on_cpu, b.icmp("eq", kind, const(i32, DLTensor.CUDA))), out)
    number = b.add(b.lshr(device, const(i64, 32)), const(i64, 1))
    place = b.shl(b.select(on_cpu, const(i64, 0), number), const(i64, Fact.PLACE))
    address = b.add(b.get(described, DLTensor.DATA), b.get(described, DLTensor.BYTE_OFFSET))
    # Empty, or its memory was freed.
    b.leave(b.icmp("eq", address, const(i64, 0)), out, rarely=True)
    implementation = b.load(ptr, b.gep(value, b.get(process, Process.IMPLEMENTATION)), align=WORD)
    keys = b.load(i64, b.gep(implementation, b.get(process, Process.KEYS)), align=WORD)
    negated = b.and_(keys, b.get(process, Process.NEGATED))
    b.leave(b.icmp("ne", negated, const(i64, 0)), out, rarely=True)
    dtype = b.load(i32, b.gep(described, DLTensor.DTYPE), align=4)
    b.put(fact, Fact.VALUE, address)
    b.put(fact, Fact.TAG, b.or_(b.zext(dtype, i64), place))
    b.put(fact, Fact.KIND, const(i64, Fact.TENSOR))
    b.ret()
    b.goto(failed)
    b.call("PyErr_Clear", void, ())
    b.br(out)
    b.goto(out)
    b.ret()


def _classify(module: Module, target: Target) -> None:
    """See the module."""
    params = [(ptr, "process"), (ptr, "arguments"), (i64, "count"), (ptr, "facts")]
    b, (process, arguments, count, facts) = begin(module, target, "classify", void, params)
    with b.loop(const(i64, 0), count) as loop:
        value = b.load(ptr, b.gep(arguments, b.mul(loop.index, const(i64, WORD))), align=WORD)
        fact = b.gep(facts, b.mul(loop.index, const(i64, Fact.SIZE)))
        b.put(fact, Fact.OBJECT, value)
        b.put(fact, Fact.KIND, const(i64, Fact.OTHER))
        kind = b.get(value, TYPE, ptr)
        done = b.new("done")

        def is_of(*fields: int, kind: V = kind) -> V:
            matches: V = const(i1, 0)
            for field in fields:
                matches = b.or_(matches, b.icmp("eq", kind, b.get(process, field, ptr)))
            return matches

        with b.case(is_of(Process.TENSOR, Process.PARAMETER), done):
            b.call("tensor", void, (process, value, fact))
        with b.case(is_of(Process.ARRAY), done):
            b.put(fact, Fact.VALUE, b.get(value, Array.DATA))
            b.put(fact, Fact.TAG, b.get(value, Array.DTYPE))
            b.put(fact, Fact.KIND, const(i64, Fact.ARRAY))
        with b.case(is_of(Process.INT), done):
            b.call("integer", void, (value, fact))
        with b.case(is_of(Process.FLOAT), done):
            b.put(fact, Fact.VALUE, b.bitcast(b.call("PyFloat_AsDouble", double, (value,)), i64))
            b.put(fact, Fact.KIND, const(i64, Fact.FLOAT))
        true, false, none = (
            b.icmp("eq", value, b.get(process, field, ptr))
            for field in (Process.TRUE, Process.FALSE, Process.NONE)
        )
        with b.case(b.or_(true, false), done):
            b.put(fact, Fact.VALUE, b.zext(true, i64))
            b.put(fact, Fact.KIND, const(i64, Fact.BOOL))
        with b.case(none, done):
            b.put(fact, Fact.KIND, const(i64, Fact.NONE))
        b.br(done)
        b.goto(done)
    b.ret()


# ---- the memory of arrays ------------------------------------------------------------------------


def _element_size(b: HostBuilder, process: V, array: V) -> V:
    """The bytes of an element of an array."""
    dtype = b.get(array, Array.DTYPE, ptr)
    # Older versions have 4 bytes for it, newer ones 8: no element has more than fit 4.
    field = b.gep(dtype, b.get(process, Process.ELEMENT_SIZE))
    return b.zext(b.load(i32, field, align=4), i64)


def _extent(module: Module, target: Target) -> None:
    """``extent(process, array, range)``: widen a range to the bytes of an array's elements."""
    params = [(ptr, "process"), (ptr, "array"), (ptr, "range")]
    b, (process, array, span) = begin(module, target, "extent", void, params)
    address = b.get(array, Array.DATA)
    low, high = b.variable(address, "low"), b.variable(address, "high")
    empty = b.new("empty")
    shape, strides = b.get(array, Array.SHAPE, ptr), b.get(array, Array.STRIDES, ptr)
    dimensions = b.zext(b.load(i32, b.gep(array, Array.DIMENSIONS), align=WORD), i64)
    with b.loop(const(i64, 0), dimensions) as loop:
        place = b.mul(loop.index, const(i64, WORD))
        length = b.load(i64, b.gep(shape, place), align=WORD)
        b.leave(b.icmp("eq", length, const(i64, 0)), empty)
        stride = b.load(i64, b.gep(strides, place), align=WORD)
        reach = b.mul(stride, b.sub(length, const(i64, 1)))
        down = b.icmp("slt", reach, const(i64, 0))
        zero = const(i64, 0)
        low.set(b.add(low.get(), b.select(down, reach, zero)))
        high.set(b.add(high.get(), b.select(down, zero, reach)))
    high.set(b.add(high.get(), _element_size(b, process, array)))
    _widen(b, span, low.get(), high.get())
    b.ret()
    b.goto(empty)
    _widen(b, span, address, address)
    b.ret()


def _widen(b: HostBuilder, span: V, low: V, high: V) -> None:
    b.put(span, 0, b.umin(b.get(span, 0), low))
    b.put(span, WORD, b.umax(b.get(span, WORD), high))


def _tensor_storage(module: Module, target: Target) -> None:
    """``tensor_storage(process, tensor, range)``: widen a range to a tensor's storage.

    Returns whether that is known.
    """
    params = [(ptr, "process"), (ptr, "tensor"), (ptr, "range")]
    b, (process, tensor, span) = begin(module, target, "tensor_storage", i1, params)
    unknown = b.new("unknown")
    offset = b.get(process, Process.IMPLEMENTATION)

    def follow(base: V, field: int) -> V:
        return b.load(i64, b.gep(base, b.get(process, field)), align=WORD)

    implementation = b.load(ptr, b.gep(tensor, offset), align=WORD)
    storage = b.inttoptr(follow(implementation, Process.STORAGE), ptr)
    b.leave(b.null(storage), unknown, rarely=True)
    low, size = follow(storage, Process.STORAGE_DATA), follow(storage, Process.STORAGE_SIZE)
    b.leave(b.icmp("slt", size, const(i64, 0)), unknown, rarely=True)
    _widen(b, span, low, b.add(low, size))
    b.ret(const(i1, 1))
    b.goto(unknown)
    b.ret(const(i1, 0))


def _array_storage(module: Module, target: Target) -> None:
    """``array_storage(process, array, range)``: widen a range to all that an array is a view of.

    Returns whether that is known: its base may be an object that says nothing here.
    """
    params = [(ptr, "process"), (ptr, "array"), (ptr, "range")]
    b, (process, array, span) = begin(module, target, "array_storage", i1, params)
    held = b.variable(array, "held")
    with b.forever("base") as (_, unknown):
        b.call("extent", void, (process, held.get(), span))
        base = b.get(held.get(), Array.BASE, ptr)
        whole = b.new("whole")
        b.leave(b.null(base), whole)
        kind = b.get(base, TYPE, ptr)
        tensor = b.new("tensor")
        b.leave(b.icmp("eq", kind, b.get(process, Process.TENSOR, ptr)), tensor)
        b.need(b.icmp("eq", kind, b.get(process, Process.ARRAY, ptr)), unknown)
        held.set(base)
    b.ret(const(i1, 0))
    b.goto(whole)
    b.ret(const(i1, 1))
    b.goto(tensor)
    b.ret(b.call("tensor_storage", i1, (process, base, span)))


def _storages(module: Module, target: Target) -> None:
    """See the module."""
    params = [(ptr, "process"), (ptr, "facts"), (i64, "count")]
    b, (process, facts, count) = begin(module, target, "storages", void, params)
    with b.loop(const(i64, 0), count) as loop:
        fact = b.gep(facts, b.mul(loop.index, const(i64, Fact.SIZE)))
        kind, value = b.get(fact, Fact.KIND), b.get(fact, Fact.OBJECT, ptr)
        done = b.new("done")
        span = b.gep(fact, Fact.FIRST)
        b.put(span, 0, const(i64, -1))
        b.put(span, WORD, const(i64, 0))
        known = b.variable(const(i1, 1), "known")
        for each, function in (
            (Fact.TENSOR, "tensor_storage"),
            (Fact.ARRAY, "array_storage"),
        ):
            with b.when(b.icmp("eq", kind, const(i64, each))):
                known.set(b.call(function, i1, (process, value, span)))
        address = b.get(fact, Fact.VALUE)
        inside = b.and_(
            b.icmp("ule", b.get(span, 0), address), b.icmp("ule", address, b.get(span, WORD))
        )
        b.leave(b.and_(known.get(), inside), done)
        b.put(span, 0, const(i64, 0))
        b.put(span, WORD, const(i64, 0))
        b.br(done)
        b.goto(done)
    b.ret()
