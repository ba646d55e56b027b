"""Reading arguments for Python, as a launch by Python does with its own.

Builtin functions whose self is the address of ``Process``, an int. ``read(object)`` returns a
``runtime.arrays.ArrayArgument``. ``scan(given, ways)`` goes through the arguments of a launch; for
each there is a way: a rule, a dictionary of the specs of plain values, by type and value (of
floats: by their type), and one of the specs of arrays, by the type of elements, each a list by the
address modulo 16. It returns a tuple of the specs, of the arguments with their arrays read, and
of the device of those.

Both return None for what native code does not look into, or doesn't find: Python will.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Block, Module, V, const, i1, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import TYPE, WORD, Array, Fact, Process
from .writer import HostBuilder, begin

PYTHON = (
    "PyLong_AsLongLong",
    "PyLong_FromUnsignedLongLong",
    "PyDict_GetItemWithError",
    "PyList_GetItem",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_Size",
    "PyType_GenericAlloc",
    "PyErr_Clear",
    "Py_IncRef",
    "Py_DecRef",
)
_FIELDS = 7
_RULES, _PLAIN, _POINTERS = range(3)


def write(module: Module, target: Target) -> None:
    """Write ``read`` and ``scan``; ``classify`` and ``storages`` are of ``facts``."""
    _element(module, target)
    _array(module, target)
    _plain(module, target)
    _pointer(module, target)
    _read(module, target)
    _scan(module, target)


# ---- an array ------------------------------------------------------------------------------------


def _element(module: Module, target: Target) -> None:
    """``element(process, fact)``: the type of an array's elements; null where it has none."""
    b, (process, fact) = begin(module, target, "element", ptr, [(ptr, "process"), (ptr, "fact")])
    tensor, unknown = b.new("tensor"), b.new("unknown")
    tag = b.get(fact, Fact.TAG)
    b.leave(b.icmp("eq", b.get(fact, Fact.KIND), const(i64, Fact.TENSOR)), tensor)
    dtypes = b.get(process, Process.DTYPES, ptr)
    b.ret(b.call("PyDict_GetItemWithError", ptr, (dtypes, b.inttoptr(tag, ptr))))
    b.goto(tensor)
    code = b.call("PyLong_FromUnsignedLongLong", ptr, (tag,))
    b.leave(b.null(code), unknown, rarely=True)
    codes = b.get(process, Process.CODES, ptr)
    found = b.call("PyDict_GetItemWithError", ptr, (codes, code))
    b.call("Py_DecRef", void, (code,))
    b.ret(found)
    b.goto(unknown)
    b.ret(const(ptr, 0))


def _array(module: Module, target: Target) -> None:
    """``array(process, object)``: an ``ArrayArgument``; null, maybe with an exception, if not."""
    b, (process, value) = begin(module, target, "array", ptr, [(ptr, "process"), (ptr, "object")])
    unknown, freed = b.new("unknown"), b.new("freed")
    fact, held, one = b.stack(Fact.SIZE, "fact"), b.variable(value, "held"), const(i64, 1)
    b.call("classify", void, (process, held.address, one, fact))
    # Both kinds of arrays are the last ones.
    is_array = b.icmp("uge", b.get(fact, Fact.KIND), const(i64, Fact.TENSOR))
    b.need(is_array, unknown)
    b.call("storages", void, (process, fact, one))
    b.need(b.icmp("ne", b.get(fact, Fact.END), const(i64, 0)), unknown)
    element = b.call("element", ptr, (process, fact))
    b.leave(b.null(element), unknown, rarely=True)
    kind = b.get(process, Process.ARGUMENT, ptr)
    made = b.call("PyType_GenericAlloc", ptr, (kind, const(i64, _FIELDS)))
    b.leave(b.null(made), unknown, rarely=True)
    device, writable = b.get(process, Process.CPU, ptr), _writable(b, process, fact)
    for place, item in ((0, element), (2, device), (3, writable), (6, value)):
        b.call("Py_IncRef", void, (item,))
        b.call("PyTuple_SetItem", i32, (made, const(i64, place), item))
    for place, field in ((1, Fact.VALUE), (4, Fact.FIRST), (5, Fact.END)):
        number = b.call("PyLong_FromUnsignedLongLong", ptr, (b.get(fact, field),))
        b.leave(b.null(number), freed, rarely=True)
        b.call("PyTuple_SetItem", i32, (made, const(i64, place), number))
    b.ret(made)
    b.goto(freed)
    b.call("Py_DecRef", void, (made,))
    b.br(unknown)
    b.goto(unknown)
    b.ret(const(ptr, 0))


def _writable(b: HostBuilder, process: V, fact: V) -> V:
    """True or False: tensors are, arrays say so."""
    result = b.variable(b.get(process, Process.TRUE, ptr), "writable")
    with b.when(b.icmp("eq", b.get(fact, Fact.KIND), const(i64, Fact.ARRAY))):
        owner = b.get(fact, Fact.OBJECT, ptr)
        flags = b.load(i32, b.gep(owner, Array.FLAGS), align=WORD)
        fixed = b.icmp("eq", b.and_(flags, const(i32, Array.WRITEABLE)), const(i32, 0))
        result.set(b.select(fixed, b.get(process, Process.FALSE, ptr), result.get()))
    return result.get()


def _process(b: HostBuilder, self: V) -> V:
    return b.inttoptr(b.call("PyLong_AsLongLong", i64, (self,)), ptr)


def _none(b: HostBuilder, process: V) -> None:
    """Return None, whatever exception there is."""
    b.call("PyErr_Clear", void, ())
    none = b.get(process, Process.NONE, ptr)
    b.call("Py_IncRef", void, (none,))
    b.ret(none)


def _read(module: Module, target: Target) -> None:
    """``read(self, object)``: see the module."""
    b, (self, value) = begin(
        module, target, "read", ptr, [(ptr, "self"), (ptr, "object")], exported=True
    )
    process, unknown = _process(b, self), b.new("unknown")
    made = b.call("array", ptr, (process, value))
    b.need(b.not_(b.null(made)), unknown)
    b.ret(made)
    b.goto(unknown)
    _none(b, process)


# ---- the arguments of a launch -------------------------------------------------------------------


def _plain(module: Module, target: Target) -> None:
    """``plain(process, way, object)``: the spec of a value that is no array; null if not known."""
    params = [(ptr, "process"), (ptr, "way"), (ptr, "object")]
    b, (process, way, value) = begin(module, target, "plain", ptr, params)
    specs = b.call("PyTuple_GetItem", ptr, (way, const(i64, _PLAIN)))
    kind, number, unknown = b.get(value, TYPE, ptr), b.new("number"), b.new("unknown")
    b.leave(b.icmp("eq", kind, b.get(process, Process.FLOAT, ptr)), number)
    known: V = const(i1, 0)
    for what, field in (
        (kind, Process.INT),
        (kind, Process.STR),
        (value, Process.TRUE),
        (value, Process.FALSE),
        (value, Process.NONE),
    ):
        known = b.or_(known, b.icmp("eq", what, b.get(process, field, ptr)))
    b.need(known, unknown)
    pair = b.call("PyTuple_New", ptr, (const(i64, 2),))
    b.leave(b.null(pair), unknown, rarely=True)
    for place, item in enumerate((kind, value)):
        b.call("Py_IncRef", void, (item,))
        b.call("PyTuple_SetItem", i32, (pair, const(i64, place), item))
    found = b.call("PyDict_GetItemWithError", ptr, (specs, pair))
    b.call("Py_DecRef", void, (pair,))
    b.ret(found)
    b.goto(number)
    b.ret(b.call("PyDict_GetItemWithError", ptr, (specs, kind)))
    b.goto(unknown)
    b.ret(const(ptr, 0))


def _pointer(module: Module, target: Target) -> None:
    """``pointer(process, way, argument)``: the spec of an array; null if not known."""
    params = [(ptr, "process"), (ptr, "way"), (ptr, "argument")]
    b, (process, way, argument) = begin(module, target, "pointer", ptr, params)
    unknown = b.new("unknown")
    specs = b.call("PyTuple_GetItem", ptr, (way, const(i64, _POINTERS)))
    element, address = (
        b.call("PyTuple_GetItem", ptr, (argument, const(i64, place))) for place in (0, 1)
    )
    row = b.call("PyDict_GetItemWithError", ptr, (specs, element))
    b.leave(b.null(row), unknown, rarely=True)
    low = b.and_(b.call("PyLong_AsLongLong", i64, (address,)), const(i64, 15))
    spec = b.call("PyList_GetItem", ptr, (row, low))
    b.leave(b.icmp("eq", spec, b.get(process, Process.NONE, ptr)), unknown, rarely=True)
    b.ret(spec)
    b.goto(unknown)
    b.ret(const(ptr, 0))


def _scan(module: Module, target: Target) -> None:
    """``scan(self, arguments, count)``: see the module."""
    params = [(ptr, "self"), (ptr, "arguments"), (i64, "count")]
    b, (self, arguments, _) = begin(module, target, "scan", ptr, params, exported=True)
    process, unknown, freed = _process(b, self), b.new("unknown"), b.new("freed")
    given, ways = b.get(arguments, 0, ptr), b.get(arguments, WORD, ptr)
    count = b.call("PyTuple_Size", i64, (given,))
    result = b.call("PyTuple_New", ptr, (const(i64, 3),))
    b.leave(b.null(result), unknown, rarely=True)
    parts = []
    for place in range(2):
        part = b.call("PyTuple_New", ptr, (count,))
        b.leave(b.null(part), freed, rarely=True)
        b.call("PyTuple_SetItem", i32, (result, const(i64, place), part))
        parts.append(part)
    device = b.variable(b.get(process, Process.ANYWHERE, ptr), "device")
    with b.loop(const(i64, 0), count) as loop:
        value = b.call("PyTuple_GetItem", ptr, (given, loop.index))
        way = b.call("PyTuple_GetItem", ptr, (ways, loop.index))
        is_array = _one(b, process, way, value, [(part, loop.index) for part in parts], freed)
        device.set(b.select(is_array, b.get(process, Process.CPU, ptr), device.get()))
    b.call("Py_IncRef", void, (device.get(),))
    b.call("PyTuple_SetItem", i32, (result, const(i64, 2), device.get()))
    b.ret(result)
    b.goto(freed)
    b.call("Py_DecRef", void, (result,))
    b.br(unknown)
    b.goto(unknown)
    _none(b, process)


def _one(
    b: HostBuilder, process: V, way: V, value: V, places: list[tuple[V, V]], unknown: Block
) -> V:
    """Put the spec of an argument and what is seen of it into their places; if it is an array."""
    array, joint = b.new("array"), b.new("joint")
    kind = b.get(value, TYPE, ptr)
    is_array: V = const(i1, 0)
    for field in (Process.TENSOR, Process.PARAMETER, Process.ARRAY):
        is_array = b.or_(is_array, b.icmp("eq", kind, b.get(process, field, ptr)))
    seen, spec = b.variable(value, "seen"), b.variable(value, "spec")
    b.leave(is_array, array)
    spec.set(b.call("plain", ptr, (process, way, value)))
    b.leave(b.null(spec.get()), unknown, rarely=True)
    b.call("Py_IncRef", void, (value,))
    b.br(joint)
    b.goto(array)
    seen.set(b.call("array", ptr, (process, value)))
    b.leave(b.null(seen.get()), unknown, rarely=True)
    spec.set(b.call("pointer", ptr, (process, way, seen.get())))
    lost = b.new("lost")
    b.need(b.not_(b.null(spec.get())), lost)
    b.br(joint)
    b.goto(lost)
    b.call("Py_DecRef", void, (seen.get(),))
    b.br(unknown)
    b.goto(joint)
    b.call("Py_IncRef", void, (spec.get(),))
    for (part, index), item in zip(places, (spec, seen)):
        b.call("PyTuple_SetItem", i32, (part, index, item.get()))
    return is_array
