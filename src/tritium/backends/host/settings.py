"""Whether the settings are those that the code was compiled under: knobs, variables, hooks.

``settled(process)`` compares what is recorded in ``Process`` with what there is. Where something
differs, Python records anew, once; launches go the long way while it finds them to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Block, Module, V, const, double, i1, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import WORD, Process
from .writer import HostBuilder, begin

PYTHON = (
    "PyContextVar_Get",
    "PyDict_GetItemWithError",
    "PyList_Size",
    "PyObject_Call",
    "PyErr_Clear",
    "Py_DecRef",
)


def write(module: Module, target: Target) -> None:
    """Write ``settled``."""
    _recorded(module, target)
    _settled(module, target)


def _recorded(module: Module, target: Target) -> None:
    """``recorded(process)``: whether all is as it was recorded."""
    b, (process,) = begin(module, target, "recorded", i1, [(ptr, "process")])
    no = b.new("no")
    revision = b.get(b.get(process, Process.REVISION, ptr), 0)
    b.need(b.icmp("eq", revision, b.get(process, Process.REVISED)), no)
    found = b.variable(const(ptr, 0), "found")
    scopes = b.get(process, Process.SCOPES, ptr)
    failed = b.call("PyContextVar_Get", i32, (scopes, const(ptr, 0), found.address))
    b.need(b.icmp("eq", failed, const(i32, 0)), no)
    scope = found.get()
    b.call("Py_DecRef", void, (scope,))
    b.need(b.icmp("eq", scope, b.get(process, Process.SCOPE, ptr)), no)
    module_ = b.get(process, Process.MODULE, ptr)
    name = b.get(process, Process.ENVIRON_NAME, ptr)
    environ = b.call("PyDict_GetItemWithError", ptr, (module_, name))
    b.need(b.icmp("eq", environ, b.get(process, Process.ENVIRON, ptr)), no)
    _variables(b, process, no)
    age = b.sitofp(b.sub(b.now(), b.get(process, Process.SETTLED)), double)
    b.need(b.fcmp("olt", age, b.get(process, Process.PERIOD, double)), no)
    b.ret(const(i1, 1))
    b.goto(no)
    b.ret(const(i1, 0))


def _variables(b: HostBuilder, process: V, no: Block) -> None:
    """Go on where the variables are the same: a version of them all tells it soonest."""
    variables, offset = b.get(process, Process.VARIABLES, ptr), b.get(process, Process.VERSION)
    each, same = b.new("each"), b.new("same")
    now = b.variable(const(i64, 0), "now")
    b.leave(b.icmp("eq", offset, const(i64, 0)), each, rarely=True)
    now.set(b.load(i64, b.gep(variables, offset), align=WORD))
    b.leave(b.icmp("eq", now.get(), b.get(process, Process.VERSION_SEEN)), same)
    b.br(each)
    b.goto(each)
    pairs = b.get(process, Process.WATCHED, ptr)
    with b.loop(const(i64, 0), b.get(process, Process.WATCHES)) as loop:
        pair = b.gep(pairs, b.mul(loop.index, const(i64, 2 * WORD)))
        value = b.call("PyDict_GetItemWithError", ptr, (variables, b.get(pair, 0, ptr)))
        b.need(b.icmp("eq", value, b.get(pair, WORD, ptr)), no)
    b.put(process, Process.VERSION_SEEN, now.get())
    b.br(same)
    b.goto(same)


def _settled(module: Module, target: Target) -> None:
    """See the module."""
    b, (process,) = begin(module, target, "settled", i1, [(ptr, "process")])
    anew, active, no = b.new("anew"), b.new("active"), b.new("no")
    b.need(b.call("recorded", i1, (process,)), anew)
    b.br(active)
    b.goto(anew)
    settle, nothing = (b.get(process, each, ptr) for each in (Process.SETTLE, Process.NOTHING))
    result = b.call("PyObject_Call", ptr, (settle, nothing, const(ptr, 0)))
    failed = b.new("failed")
    b.leave(b.null(result), failed, rarely=True)
    b.call("Py_DecRef", void, (result,))
    b.br(active)
    b.goto(active)
    b.need(b.icmp("ne", b.get(process, Process.ACTIVE), const(i64, 0)), no)
    b.need(_is_empty(b, process, Process.ENTER), no)
    b.need(_is_empty(b, process, Process.EXIT), no)
    b.ret(const(i1, 1))
    b.goto(failed)
    # The launch by Python will say what is wrong.
    b.call("PyErr_Clear", void, ())
    b.br(no)
    b.goto(no)
    b.ret(const(i1, 0))


def _is_empty(b: HostBuilder, process: V, field: int) -> V:
    size = b.call("PyList_Size", i64, (b.get(process, field, ptr),))
    return b.icmp("eq", size, const(i64, 0))
