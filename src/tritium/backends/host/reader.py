"""Reading an array for Python, as a launch by Python does with each of its own.

``read(self, object)`` is a builtin function whose self is the address of ``Process``, an int. It
returns the fields of a ``runtime.arrays.ArrayArgument`` as a tuple; None for what native code does
not look into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Module, V, const, i1, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import Array, Fact, Process
from .writer import HostBuilder, begin

PYTHON = (
    "PyLong_AsLongLong",
    "PyLong_FromUnsignedLongLong",
    "PyDict_GetItemWithError",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyErr_Clear",
    "Py_IncRef",
    "Py_DecRef",
)
_FIELDS = 7


def write(module: Module, target: Target) -> None:
    """Write ``read``; ``classify`` and ``storages`` are of ``facts``."""
    _element(module, target)
    b, (self, value) = begin(
        module, target, "read", ptr, [(ptr, "self"), (ptr, "object")], exported=True
    )
    unknown, failed, freed = b.new("unknown"), b.new("failed"), b.new("freed")
    process = b.inttoptr(b.call("PyLong_AsLongLong", i64, (self,)), ptr)
    fact, held, one = b.stack(Fact.SIZE, "fact"), b.variable(value, "held"), const(i64, 1)
    b.call("classify", void, (process, held.address, one, fact))
    kind = b.get(fact, Fact.KIND)
    is_tensor = b.icmp("eq", kind, const(i64, Fact.TENSOR))
    is_array = b.icmp("eq", kind, const(i64, Fact.ARRAY))
    b.need(b.or_(is_tensor, is_array), unknown)
    b.call("storages", void, (process, fact, one))
    b.need(b.icmp("ne", b.get(fact, Fact.END), const(i64, 0)), unknown)
    element = b.call("element", ptr, (process, fact, is_tensor))
    b.need(b.not_(b.null(element)), unknown)
    made = b.call("PyTuple_New", ptr, (const(i64, _FIELDS),))
    b.leave(b.null(made), failed, rarely=True)
    device, writable = b.get(process, Process.CPU, ptr), _writable(b, process, value, is_tensor)
    for place, item in ((0, element), (2, device), (3, writable), (6, value)):
        b.call("Py_IncRef", void, (item,))
        b.call("PyTuple_SetItem", i32, (made, const(i64, place), item))
    for place, field in ((1, Fact.VALUE), (4, Fact.FIRST), (5, Fact.END)):
        number = b.call("PyLong_FromUnsignedLongLong", ptr, (b.get(fact, field),))
        b.leave(b.null(number), freed, rarely=True)
        b.call("PyTuple_SetItem", i32, (made, const(i64, place), number))
    b.ret(made)
    b.goto(unknown)
    none = b.get(process, Process.NONE, ptr)
    b.call("Py_IncRef", void, (none,))
    b.ret(none)
    b.goto(freed)
    b.call("Py_DecRef", void, (made,))
    b.br(failed)
    b.goto(failed)
    b.ret(const(ptr, 0))


def _element(module: Module, target: Target) -> None:
    """``element(process, fact, is_tensor)``: the type of the elements; null where it has none."""
    params = [(ptr, "process"), (ptr, "fact"), (i1, "is_tensor")]
    b, (process, fact, is_tensor) = begin(module, target, "element", ptr, params)
    tensor, unknown = b.new("tensor"), b.new("unknown")
    tag = b.get(fact, Fact.TAG)
    b.leave(is_tensor, tensor)
    dtypes = b.get(process, Process.DTYPES, ptr)
    found = b.call("PyDict_GetItemWithError", ptr, (dtypes, b.inttoptr(tag, ptr)))
    b.leave(b.null(found), unknown, rarely=True)
    b.ret(found)
    b.goto(tensor)
    code = b.call("PyLong_FromUnsignedLongLong", ptr, (tag,))
    b.leave(b.null(code), unknown, rarely=True)
    codes = b.get(process, Process.CODES, ptr)
    found = b.call("PyDict_GetItemWithError", ptr, (codes, code))
    b.call("Py_DecRef", void, (code,))
    b.ret(found)
    b.goto(unknown)
    # Python will find it again.
    b.call("PyErr_Clear", void, ())
    b.ret(const(ptr, 0))


def _writable(b: HostBuilder, process: V, value: V, is_tensor: V) -> V:
    """True or False: tensors are, arrays say so."""
    result = b.variable(b.get(process, Process.TRUE, ptr), "writable")
    with b.when(b.not_(is_tensor)):
        flags = b.load(i32, b.gep(value, Array.FLAGS), align=8)
        fixed = b.icmp("eq", b.and_(flags, const(i32, Array.WRITEABLE)), const(i32, 0))
        result.set(b.select(fixed, b.get(process, Process.FALSE, ptr), result.get()))
    return result.get()
