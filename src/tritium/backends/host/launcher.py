"""Launching a kernel from Python, as native code.

``make`` is a builtin function of one argument, a grid: it returns a builtin function that launches
a kernel over that grid. Both have a tuple for their self: that of ``make`` starts with the bytes of
a ``Kernel`` and a list of two, that of the launch with the tuple of ``make`` and the grid.

A launch looks at its arguments and at everything that could have changed since the code that it
would run was compiled. Where all is as before it runs that code; otherwise Python does it all
again, with the same meaning, and raises the errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Module, V, const, double, float_, i1, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from . import facts, gpu, match, reader, settings
from .layout import TYPE, WORD, Argument, Call, Entry, Fact, Kernel, Parameter, Process
from .writer import HostBuilder, begin

RUN_GRID = "run_grid"
"""What is imported beside the functions of CPython: see ``pool``."""
_PYTHON = (
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_Size",
    "PyList_SetItem",
    "PyList_Size",
    "PyDict_New",
    "PyDict_SetItem",
    "PyByteArray_AsString",
    "PyCFunction_NewEx",
    "PyCallable_Check",
    "PyObject_Call",
    "PyLong_AsLongLongAndOverflow",
    "Py_IncRef",
    "Py_DecRef",
)
_LARGEST_AXIS = (1 << 31) - 1


def write(module: Module, target: Target) -> tuple[str, ...]:
    """Write the launch; returns the functions of CPython that it calls."""
    facts.write(module, target)
    match.write(module, target)
    settings.write(module, target)
    reader.write(module, target)
    _extent_of(module, target)
    _extents(module, target)
    _slow(module, target)
    _evaluate(module, target)
    _fill(module, target)
    gpu.write(module, target)
    _run(module, target)
    _by_function(module, target)
    _locate(module, target)
    _attempt(module, target)
    _launch(module, target)
    _make(module, target)
    return tuple(
        {*_PYTHON, *facts.PYTHON, *match.PYTHON, *settings.PYTHON, *reader.PYTHON, *gpu.PYTHON}
    )


# ---- the grid ------------------------------------------------------------------------------------


def _extent_of(module: Module, target: Target) -> None:
    """``extent_of(process, object)``: a number of programs along an axis; -1 for anything else."""
    params = [(ptr, "process"), (ptr, "object")]
    b, (process, value) = begin(module, target, "extent_of", i64, params)
    no = b.new("no")
    is_int = b.icmp("eq", b.get(value, TYPE, ptr), b.get(process, Process.INT, ptr))
    b.need(is_int, no)
    overflow = b.stack(WORD, "overflow")
    number = b.call("PyLong_AsLongLongAndOverflow", i64, (value, overflow))
    # What overflows gives -1.
    b.need(b.icmp("ule", number, const(i64, _LARGEST_AXIS)), no)
    b.ret(number)
    b.goto(no)
    b.ret(const(i64, -1))


def _extents(module: Module, target: Target) -> None:
    """``extents(process, grid, extents)``: their product; -1 for a grid that isn't plain.

    A plain one is an int, or a tuple of one to three.
    """
    params = [(ptr, "process"), (ptr, "grid"), (ptr, "extents")]
    b, (process, grid, extents) = begin(module, target, "extents", i64, params)
    single, no = b.new("single"), b.new("no")
    for axis in (1, 2):
        b.put(extents, axis * WORD, const(i64, 1))
    is_tuple = b.icmp("eq", b.get(grid, TYPE, ptr), b.get(process, Process.TUPLE, ptr))
    b.need(is_tuple, single)
    count = b.call("PyTuple_Size", i64, (grid,))
    number = b.sub(count, const(i64, 1))
    b.need(b.icmp("ule", number, const(i64, 2)), no)
    with b.loop(const(i64, 0), count) as loop:
        item = b.call("PyTuple_GetItem", ptr, (grid, loop.index))
        extent = b.call("extent_of", i64, (process, item))
        b.need(b.icmp("sge", extent, const(i64, 0)), no)
        b.store(extent, b.gep(extents, b.mul(loop.index, const(i64, WORD))), align=WORD)
    x, y, z = (b.get(extents, axis * WORD) for axis in range(3))
    plane = b.mul(x, y)
    # Below that no product with z overflows.
    b.need(b.icmp("ult", plane, const(i64, 1 << 32)), no)
    b.ret(b.mul(plane, z))
    b.goto(single)
    extent = b.call("extent_of", i64, (process, grid))
    b.put(extents, 0, extent)
    b.ret(extent)
    b.goto(no)
    b.ret(const(i64, -1))


def _evaluate(module: Module, target: Target) -> None:
    """``evaluate(entry, arguments, grid)``: call a grid's function; null with an exception."""
    params = [(ptr, "entry"), (ptr, "arguments"), (ptr, "grid")]
    b, (entry, arguments, grid) = begin(module, target, "evaluate", ptr, params)
    failed, freed = b.new("failed"), b.new("freed")
    named = b.call("PyDict_New", ptr, ())
    b.leave(b.null(named), failed, rarely=True)
    first = b.get(entry, Entry.PARAMETERS, ptr)
    with b.loop(const(i64, 0), b.get(entry, Entry.PARAMETER_COUNT)) as loop:
        parameter = b.gep(first, b.mul(loop.index, const(i64, Parameter.SIZE)))
        index = b.get(parameter, Parameter.ARGUMENT)
        value = b.variable(b.get(parameter, Parameter.VALUE, ptr), "value")
        with b.when(b.icmp("sge", index, const(i64, 0))):
            place = b.gep(arguments, b.mul(index, const(i64, WORD)))
            value.set(b.load(ptr, place, align=WORD))
        name = b.get(parameter, Parameter.NAME, ptr)
        bad = b.call("PyDict_SetItem", i32, (named, name, value.get()))
        b.leave(b.icmp("ne", bad, const(i32, 0)), freed, rarely=True)
    given = b.call("PyTuple_New", ptr, (const(i64, 1),))
    b.leave(b.null(given), freed, rarely=True)
    b.call("PyTuple_SetItem", i32, (given, const(i64, 0), named))
    result = b.call("PyObject_Call", ptr, (grid, given, const(ptr, 0)))
    b.call("Py_DecRef", void, (given,))
    b.ret(result)
    b.goto(freed)
    b.call("Py_DecRef", void, (named,))
    b.br(failed)
    b.goto(failed)
    b.ret(const(ptr, 0))


# ---- the other way -------------------------------------------------------------------------------


def _slow(module: Module, target: Target) -> None:
    """``slow(call, function, grid)``: launch by a function of Python."""
    params = [(ptr, "call"), (ptr, "function"), (ptr, "grid")]
    b, (call, function, grid) = begin(module, target, "slow", ptr, params, cold=True)
    arguments, names = b.get(call, Call.ARGUMENTS, ptr), b.get(call, Call.NAMES, ptr)
    positional, keywords = b.get(call, Call.POSITIONAL), b.get(call, Call.KEYWORDS)
    failed, free_given, free_named = b.new("failed"), b.new("given"), b.new("named")
    given = b.call("PyTuple_New", ptr, (positional,))
    b.leave(b.null(given), failed)
    with b.loop(const(i64, 0), positional) as loop:
        value = b.load(ptr, b.gep(arguments, b.mul(loop.index, const(i64, WORD))), align=WORD)
        b.call("Py_IncRef", void, (value,))
        b.call("PyTuple_SetItem", i32, (given, loop.index, value))
    named = b.call("PyDict_New", ptr, ())
    b.leave(b.null(named), free_given)
    with b.loop(const(i64, 0), keywords, name="k") as loop:
        place = b.mul(b.add(positional, loop.index), const(i64, WORD))
        value = b.load(ptr, b.gep(arguments, place), align=WORD)
        name = b.call("PyTuple_GetItem", ptr, (names, loop.index))
        bad = b.call("PyDict_SetItem", i32, (named, name, value))
        b.leave(b.icmp("ne", bad, const(i32, 0)), free_named)
    three = b.call("PyTuple_New", ptr, (const(i64, 3),))
    b.leave(b.null(three), free_named)
    b.call("Py_IncRef", void, (grid,))
    for number, each in enumerate((grid, given, named)):
        b.call("PyTuple_SetItem", i32, (three, const(i64, number), each))
    result = b.call("PyObject_Call", ptr, (function, three, const(ptr, 0)))
    b.call("Py_DecRef", void, (three,))
    b.ret(result)
    b.goto(free_named)
    b.call("Py_DecRef", void, (named,))
    b.br(free_given)
    b.goto(free_given)
    b.call("Py_DecRef", void, (given,))
    b.br(failed)
    b.goto(failed)
    b.ret(const(ptr, 0))


# ---- this way ------------------------------------------------------------------------------------


def _fill(module: Module, target: Target) -> None:
    """``fill(entry, facts, count, extents, buffer)``: what the compiled code is given."""
    params = [(ptr, "entry"), (ptr, "facts"), (i64, "count"), (ptr, "extents"), (ptr, "buffer")]
    b, (entry, facts_, count, extents, buffer) = begin(module, target, "fill", void, params)
    size = b.mul(b.get(entry, Entry.SLOTS), const(i64, WORD))
    b.memcpy(buffer, b.get(entry, Entry.TEMPLATE, ptr), size, align=WORD)
    arguments = b.get(entry, Entry.ARGUMENTS, ptr)
    with b.loop(const(i64, 0), count) as loop:
        argument = b.gep(arguments, b.mul(loop.index, const(i64, Argument.SIZE)))
        fact = b.gep(facts_, b.mul(loop.index, const(i64, Fact.SIZE)))
        slot, done = b.get(argument, Argument.SLOT), b.new("done")
        b.leave(b.icmp("slt", slot, const(i64, 0)), done)
        bits = b.variable(b.get(fact, Fact.VALUE), "bits")
        mode = b.get(argument, Argument.MODE)
        stored = b.new("stored")
        plain = b.icmp("slt", mode, const(i64, Argument.REAL))
        b.leave(b.or_(plain, b.icmp("sgt", mode, const(i64, Argument.DOUBLE))), stored)
        number = _number(b, fact)
        wide = b.bitcast(number, i64)
        narrow = b.zext(b.bitcast(b.fptrunc(number, float_), i32), i64)
        is_double = b.icmp("eq", mode, const(i64, Argument.DOUBLE))
        bits.set(b.select(is_double, wide, narrow))
        b.br(stored)
        b.goto(stored)
        b.store(bits.get(), b.gep(buffer, slot), align=WORD)
        b.br(done)
        b.goto(done)
    grid = b.gep(buffer, size)
    for axis in range(3):
        b.put(grid, axis * WORD, b.get(extents, axis * WORD))
    b.ret()


def _number(b: HostBuilder, fact: V) -> V:
    """The value of a number as a double."""
    value, kind = b.get(fact, Fact.VALUE), b.get(fact, Fact.KIND)
    is_float = b.icmp("eq", kind, const(i64, Fact.FLOAT))
    is_large = b.icmp("eq", kind, const(i64, Fact.UINT64))
    integer = b.select(is_large, b.uitofp(value, double), b.sitofp(value, double))
    return b.select(is_float, b.bitcast(value, double), integer)


def _run(module: Module, target: Target) -> None:
    """``run(call)``: run the grid with the record that was chosen; returns the compiled kernel."""
    b, (call,) = begin(module, target, "run", ptr, [(ptr, "call")])
    process, entry = b.get(call, Call.PROCESS, ptr), b.get(call, Call.ENTRY, ptr)
    compiled = b.get(entry, Entry.COMPILED, ptr)
    failed, done = b.new("failed"), b.new("done")
    programs = b.get(call, Call.PROGRAMS)
    b.leave(b.icmp("eq", programs, const(i64, 0)), done, rarely=True)
    buffer = b.stack((Entry.MOST_SLOTS + 3) * WORD, "buffer", align=64)
    facts_, extents = b.gep(call, Call.FACTS), b.gep(call, Call.EXTENTS)
    b.call("fill", void, (entry, facts_, b.get(call, Call.COUNT), extents, buffer))
    on_gpu = b.new("gpu")
    b.leave(b.icmp("ne", b.get(entry, Entry.PLACE), const(i64, 0)), on_gpu)
    threads = b.umin(b.get(process, Process.THREADS), programs)
    pool, record = b.get(process, Process.POOL, ptr), b.get(call, Call.RECORD, ptr)
    # Another thread may do away with the entry while this one doesn't hold the GIL.
    b.call("Py_IncRef", void, (compiled,))
    status = b.call(RUN_GRID, i32, (pool, record, buffer, programs, threads))
    b.leave(b.icmp("ne", status, const(i32, 0)), failed, rarely=True)
    b.ret(compiled)
    b.goto(done)
    b.call("Py_IncRef", void, (compiled,))
    b.ret(compiled)
    b.goto(failed)
    b.call("Py_DecRef", void, (compiled,))
    b.ret(const(ptr, 0))
    b.goto(on_gpu)
    b.call("Py_IncRef", void, (compiled,))
    refused = b.new("refused")
    started = b.call("run_on_gpu", i32, (call, buffer))
    b.leave(b.icmp("ne", started, const(i32, 0)), refused, rarely=True)
    b.ret(compiled)
    b.goto(refused)
    b.call("Py_DecRef", void, (compiled,))
    again = (b.get(call, Call.FALLBACK, ptr), b.get(call, Call.FALLBACK_GRID, ptr))
    b.ret(b.call("slow", ptr, (call, *again)))


def _by_function(module: Module, target: Target) -> None:
    """``by_function(call)``: launch over what the function of the grid returns."""
    b, (call,) = begin(module, target, "by_function", ptr, [(ptr, "call")])
    kernel, grid = b.get(call, Call.KERNEL, ptr), b.get(call, Call.GRID, ptr)
    python, failed, strange = b.new("python"), b.new("failed"), b.new("strange")
    callable_ = b.call("PyCallable_Check", i32, (grid,))
    b.need(b.icmp("ne", callable_, const(i32, 0)), python)
    entry = b.get(call, Call.ENTRY, ptr)
    # The bytes of an entry don't keep the kernel alive.
    compiled = b.get(entry, Entry.COMPILED, ptr)
    b.call("Py_IncRef", void, (compiled,))
    found = b.call("evaluate", ptr, (entry, b.get(call, Call.ARGUMENTS, ptr), grid))
    result = b.variable(const(ptr, 0), "result")
    ended = b.new("ended")
    b.leave(b.null(found), ended, rarely=True)
    extents = (b.get(call, Call.PROCESS, ptr), found, b.gep(call, Call.EXTENTS))
    programs = b.call("extents", i64, extents)
    b.put(call, Call.PROGRAMS, programs)
    b.need(b.icmp("sge", programs, const(i64, 0)), strange)
    # It must not be called again.
    b.put(call, Call.FALLBACK, b.get(kernel, Kernel.RESOLVED, ptr))
    b.put(call, Call.FALLBACK_GRID, found)
    result.set(b.call("run", ptr, (call,)))
    b.br(failed)
    b.goto(strange)
    result.set(b.call("slow", ptr, (call, b.get(kernel, Kernel.RESOLVED, ptr), found)))
    b.br(failed)
    b.goto(failed)
    b.call("Py_DecRef", void, (found,))
    b.br(ended)
    b.goto(ended)
    b.call("Py_DecRef", void, (compiled,))
    b.ret(result.get())
    b.goto(python)
    b.ret(b.call("slow", ptr, (call, b.get(kernel, Kernel.SLOW, ptr), grid)))


def _locate(module: Module, target: Target) -> None:
    """``locate(call)``: the entry for the arguments, null where Python must look at them."""
    b, (call,) = begin(module, target, "locate", ptr, [(ptr, "call")])
    kernel, process = b.get(call, Call.KERNEL, ptr), b.get(call, Call.PROCESS, ptr)
    no, count = b.new("no"), b.get(call, Call.COUNT)
    b.need(b.icmp("sle", count, const(i64, Entry.MOST_ARGUMENTS)), no)
    b.need(b.call("settled", i1, (process,)), no)
    hooks = b.call("PyList_Size", i64, (b.get(kernel, Kernel.HOOKS, ptr),))
    b.need(b.icmp("eq", hooks, const(i64, 0)), no)
    known = b.gep(call, Call.FACTS)
    b.call("classify", void, (process, b.get(call, Call.ARGUMENTS, ptr), count, known))
    names = (b.get(call, Call.POSITIONAL), b.get(call, Call.NAMES, ptr))
    keywords = b.get(call, Call.KEYWORDS)
    b.ret(b.call("find", ptr, (kernel, process, known, *names, keywords)))
    b.goto(no)
    b.ret(const(ptr, 0))


def _attempt(module: Module, target: Target) -> None:
    """``attempt(call)``: launch by the entry that was found, if what it depends on is the same."""
    b, (call,) = begin(module, target, "attempt", ptr, [(ptr, "call")])
    kernel, process = b.get(call, Call.KERNEL, ptr), b.get(call, Call.PROCESS, ptr)
    entry, grid = b.get(call, Call.ENTRY, ptr), b.get(call, Call.GRID, ptr)
    slow, function = b.new("slow"), b.new("function")
    b.need(b.call("unchanged", i1, (entry,)), slow)
    known = (b.gep(call, Call.FACTS), b.get(call, Call.COUNT))
    record = b.call("record_for", ptr, (process, entry, *known))
    b.need(b.not_(b.null(record)), slow)
    b.put(call, Call.RECORD, record)
    programs = b.call("extents", i64, (process, grid, b.gep(call, Call.EXTENTS)))
    b.put(call, Call.PROGRAMS, programs)
    b.put(call, Call.FALLBACK, b.get(kernel, Kernel.SLOW, ptr))
    b.put(call, Call.FALLBACK_GRID, grid)
    b.need(b.icmp("sge", programs, const(i64, 0)), function)
    b.ret(b.call("run", ptr, (call,)))
    b.goto(function)
    b.ret(b.call("by_function", ptr, (call,)))
    b.goto(slow)
    b.ret(b.call("slow", ptr, (call, b.get(kernel, Kernel.SLOW, ptr), grid)))


def _launch(module: Module, target: Target) -> None:
    """``launch(self, arguments, positional, names)``: see the module."""
    params = [(ptr, "self"), (ptr, "arguments"), (i64, "positional"), (ptr, "names")]
    b, (self, arguments, positional, names) = begin(
        module, target, "launch", ptr, params, exported=True
    )
    made = b.call("PyTuple_GetItem", ptr, (self, const(i64, 0)))
    grid = b.call("PyTuple_GetItem", ptr, (self, const(i64, 1)))
    kernel = _kernel(b, made)
    process = b.get(kernel, Kernel.PROCESS, ptr)
    keywords = b.variable(const(i64, 0), "keywords")
    with b.when(b.not_(b.null(names))):
        keywords.set(b.call("PyTuple_Size", i64, (names,)))
    call = b.stack(Call.SIZE, "call")
    for field, value in (
        (Call.KERNEL, kernel),
        (Call.PROCESS, process),
        (Call.GRID, grid),
        (Call.ARGUMENTS, arguments),
        (Call.POSITIONAL, positional),
        (Call.NAMES, names),
        (Call.KEYWORDS, keywords.get()),
        (Call.COUNT, b.add(positional, keywords.get())),
    ):
        b.put(call, field, value)
    slow, entry = b.new("slow"), b.call("locate", ptr, (call,))
    b.need(b.not_(b.null(entry)), slow)
    b.put(call, Call.ENTRY, entry)
    # Whatever runs meanwhile, this thread's Python or another's, may do away with the entry.
    held = b.get(entry, Entry.OBJECT, ptr)
    b.call("Py_IncRef", void, (held,))
    result = b.call("attempt", ptr, (call,))
    b.call("Py_DecRef", void, (held,))
    b.ret(result)
    b.goto(slow)
    b.ret(b.call("slow", ptr, (call, b.get(kernel, Kernel.SLOW, ptr), grid)))


def _kernel(b: HostBuilder, made: V) -> V:
    """The ``Kernel`` in the self of ``make``."""
    held = b.call("PyTuple_GetItem", ptr, (made, const(i64, 0)))
    return b.call("PyByteArray_AsString", ptr, (held,))


def _make(module: Module, target: Target) -> None:
    """``make(self, grid)``: the launch over a grid; that over the last tuple is kept."""
    params = [(ptr, "self"), (ptr, "grid")]
    b, (self, grid) = begin(module, target, "make", ptr, params, exported=True)
    kernel = _kernel(b, self)
    process = b.get(kernel, Kernel.PROCESS, ptr)
    known, failed = b.new("known"), b.new("failed")
    b.leave(b.icmp("eq", grid, b.get(kernel, Kernel.LAST_GRID, ptr)), known)
    pair = b.call("PyTuple_New", ptr, (const(i64, 2),))
    b.leave(b.null(pair), failed, rarely=True)
    for number, each in enumerate((self, grid)):
        b.call("Py_IncRef", void, (each,))
        b.call("PyTuple_SetItem", i32, (pair, const(i64, number), each))
    method = b.get(process, Process.METHOD, ptr)
    made = b.call("PyCFunction_NewEx", ptr, (method, pair, const(ptr, 0)))
    b.call("Py_DecRef", void, (pair,))
    b.leave(b.null(made), failed, rarely=True)
    is_tuple = b.icmp("eq", b.get(grid, TYPE, ptr), b.get(process, Process.TUPLE, ptr))
    with b.when(is_tuple):
        kept = b.call("PyTuple_GetItem", ptr, (self, const(i64, 1)))
        b.put(kernel, Kernel.LAST_GRID, grid)
        b.put(kernel, Kernel.LAST_LAUNCH, made)
        for number, each in enumerate((grid, made)):
            b.call("Py_IncRef", void, (each,))
            b.call("PyList_SetItem", i32, (kept, const(i64, number), each))
    b.ret(made)
    b.goto(known)
    again = b.get(kernel, Kernel.LAST_LAUNCH, ptr)
    b.call("Py_IncRef", void, (again,))
    b.ret(again)
    b.goto(failed)
    b.ret(const(ptr, 0))
