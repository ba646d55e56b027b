"""Whether code that is there already serves a launch.

``find(kernel, process, facts, positional, names, keywords)`` gives the kernel's ``Entry`` whose
arguments are given in the same way and are of the same kinds, null if there is none.
``unchanged(entry)`` says whether what its compilation has read is still the same. ``record_for``
picks the version of the code: by whether arrays overlap in memory; null where that isn't known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tritium.backends.emit import Block, Module, V, const, i1, i32, i64, ptr, void

if TYPE_CHECKING:
    from tritium.backends.llvm import Target

from .layout import TYPE, WORD, Argument, Array, Entry, Fact, Guard, Kernel, Process
from .writer import HostBuilder, begin

PYTHON = (
    "PyUnicode_Compare",
    "PyTuple_GetItem",
    "PyObject_GetAttr",
    "PyDict_GetItemWithError",
    "PyCell_Get",
    "PyErr_Clear",
    "Py_DecRef",
)


def write(module: Module, target: Target) -> None:
    """Write ``find``, ``unchanged`` and ``record_for``; ``storages`` is of ``facts``."""
    _same_text(module, target)
    _is_attribute(module, target)
    _fits(module, target)
    _named(module, target)
    _find(module, target)
    _unchanged(module, target)
    _record_for(module, target)


def _same_text(module: Module, target: Target) -> None:
    """``same_text(process, one, other)``: whether an object is a str equal to another."""
    params = [(ptr, "process"), (ptr, "one"), (ptr, "other")]
    b, (process, one, other) = begin(module, target, "same_text", i1, params)
    same, different = b.new("same"), b.new("different")
    b.leave(b.icmp("eq", one, other), same)
    is_text = b.icmp("eq", b.get(one, TYPE, ptr), b.get(process, Process.STR, ptr))
    b.need(is_text, different)
    order = b.call("PyUnicode_Compare", i32, (one, other))
    b.ret(b.icmp("eq", order, const(i32, 0)))
    b.goto(same)
    b.ret(const(i1, 1))
    b.goto(different)
    b.ret(const(i1, 0))


def _is_attribute(module: Module, target: Target) -> None:
    """``is_attribute(owner, name, value)``: whether an attribute is that object (null: none)."""
    params = [(ptr, "owner"), (ptr, "name"), (ptr, "value")]
    b, (owner, name, value) = begin(module, target, "is_attribute", i1, params)
    found = b.call("PyObject_GetAttr", ptr, (owner, name))
    missing = b.new("missing")
    b.leave(b.null(found), missing, rarely=True)
    b.call("Py_DecRef", void, (found,))
    b.ret(b.icmp("eq", found, value))
    b.goto(missing)
    b.call("PyErr_Clear", void, ())
    b.ret(b.null(value))


# ---- arguments -----------------------------------------------------------------------------------


class _Fit:
    """Writes the tests of one argument; each ends at ``yes`` or at ``no``."""

    def __init__(self, b: HostBuilder, process: V, argument: V, fact: V) -> None:
        self.b, self.process, self.argument, self.fact = b, process, argument, fact
        self.yes, self.no = b.new("yes"), b.new("no")

    def expected(self, field: int) -> V:
        return self.b.get(self.argument, field)

    def kind_is(self, *kinds: int) -> V:
        kind: V = self.b.get(self.fact, Fact.KIND)
        found: V = const(i1, 0)
        for each in kinds:
            found = self.b.or_(found, self.b.icmp("eq", kind, const(i64, each)))
        return found

    def value(self) -> V:
        return self.b.get(self.fact, Fact.VALUE)

    def rule(self, bit: int) -> V:
        rules = self.b.and_(self.expected(Argument.RULES), const(i64, bit))
        return self.b.icmp("ne", rules, const(i64, 0))

    def end(self, fits: V) -> None:
        self.b.cbr(fits, self.yes, self.no)

    def multiple(self) -> V:
        """Whether the value is a multiple of 16 as it must be."""
        b = self.b
        low = b.and_(self.value(), const(i64, 15))
        wrong = b.xor(b.icmp("eq", low, const(i64, 0)), self.rule(Argument.MULTIPLE))
        return b.not_(b.and_(wrong, self.rule(Argument.BY_16)))

    # By mode.

    def same(self) -> None:
        b = self.b
        self.end(b.icmp("eq", b.get(self.fact, Fact.OBJECT), self.expected(Argument.TAG)))

    def integer(self) -> None:
        b = self.b
        kind = b.icmp("eq", b.get(self.fact, Fact.KIND), self.expected(Argument.LOW))
        self.end(b.and_(kind, b.icmp("eq", self.value(), self.expected(Argument.TAG))))

    def number(self) -> None:
        b = self.b
        equal = b.icmp("eq", self.value(), self.expected(Argument.TAG))
        self.end(b.and_(self.kind_is(Fact.FLOAT), equal))

    def text(self) -> None:
        b = self.b
        tag = b.get(self.argument, Argument.TAG, ptr)
        arguments = (self.process, b.get(self.fact, Fact.OBJECT, ptr), tag)
        self.end(b.call("same_text", i1, arguments))

    def natural(self) -> None:
        b = self.b
        kind = b.icmp("eq", b.get(self.fact, Fact.KIND), self.expected(Argument.LOW))
        one = b.icmp("eq", self.value(), const(i64, 1))
        one = b.and_(one, self.rule(Argument.NOT_ONE))
        self.end(b.and_(b.and_(kind, self.multiple()), b.not_(one)))

    def fixed(self) -> None:
        b = self.b
        low = b.icmp("sge", self.value(), self.expected(Argument.LOW))
        high = b.icmp("sle", self.value(), self.expected(Argument.HIGH))
        kind = self.kind_is(Fact.INT32, Fact.INT64, Fact.BOOL)
        unsigned = self.rule(Argument.UNSIGNED)
        large = b.and_(self.kind_is(Fact.UINT64), unsigned)
        # What fits uint64 only has its top bit set.
        inside = b.or_(large, b.and_(kind, b.and_(low, b.or_(high, unsigned))))
        self.end(b.and_(inside, self.multiple()))

    def truth(self) -> None:
        self.end(self.kind_is(Fact.BOOL))

    def real(self) -> None:
        self.end(self.kind_is(Fact.FLOAT))

    def single(self) -> None:
        kinds = (Fact.FLOAT, Fact.INT32, Fact.INT64, Fact.UINT64, Fact.BOOL)
        self.end(self.kind_is(*kinds))

    double = single

    def _address(self, kind: int) -> None:
        b = self.b
        b.need(self.kind_is(kind), self.no)
        tag = b.icmp("eq", b.get(self.fact, Fact.TAG), self.expected(Argument.TAG))
        b.need(tag, self.no)
        loose = b.and_(self.value(), self.expected(Argument.HIGH))
        b.need(b.icmp("eq", loose, const(i64, 0)), self.no)
        b.need(self.multiple(), self.no)

    def tensor(self) -> None:
        b = self.b
        self._address(Fact.TENSOR)
        dtype = b.get(self.argument, Argument.LOW, ptr)
        b.leave(b.null(dtype), self.yes)
        name = b.get(self.process, Process.DTYPE, ptr)
        owner = b.get(self.fact, Fact.OBJECT, ptr)
        self.end(b.call("is_attribute", i1, (owner, name, dtype)))

    def array(self) -> None:
        b = self.b
        self._address(Fact.ARRAY)
        owner = b.get(self.fact, Fact.OBJECT, ptr)
        flags = b.zext(b.load(i32, b.gep(owner, Array.FLAGS), align=WORD), i64)
        wanted = self.expected(Argument.LOW)
        self.end(b.icmp("eq", b.and_(flags, wanted), wanted))


def _fits(module: Module, target: Target) -> None:
    """``fits(process, argument, fact)``: whether an argument is what the entry is for."""
    params = [(ptr, "process"), (ptr, "argument"), (ptr, "fact")]
    b, (process, argument, fact) = begin(module, target, "fits", i1, params)
    fit = _Fit(b, process, argument, fact)
    cases: list[tuple[int, Block]] = []
    modes = {
        Argument.SAME: fit.same,
        Argument.INTEGER: fit.integer,
        Argument.NUMBER: fit.number,
        Argument.TEXT: fit.text,
        Argument.NATURAL: fit.natural,
        Argument.FIXED: fit.fixed,
        Argument.TRUTH: fit.truth,
        Argument.REAL: fit.real,
        Argument.SINGLE: fit.single,
        Argument.DOUBLE: fit.double,
        Argument.TENSOR: fit.tensor,
        Argument.ARRAY: fit.array,
    }
    for mode, test in modes.items():
        block = b.new("mode")
        cases.append((mode, block))
        with b.at(block):
            test()
    b.switch(b.get(argument, Argument.MODE), fit.no, cases)
    b.goto(fit.yes)
    b.ret(const(i1, 1))
    b.goto(fit.no)
    b.ret(const(i1, 0))


def _named(module: Module, target: Target) -> None:
    """``named(process, entry, names, count)``: whether the keywords are those of the entry."""
    params = [(ptr, "process"), (ptr, "entry"), (ptr, "names"), (i64, "count")]
    b, (process, entry, names, count) = begin(module, target, "named", i1, params)
    wanted, no = b.get(entry, Entry.NAMES, ptr), b.new("no")
    with b.loop(const(i64, 0), count) as loop:
        name = b.call("PyTuple_GetItem", ptr, (names, loop.index))
        place = b.mul(loop.index, const(i64, WORD))
        own = b.load(ptr, b.gep(wanted, place), align=WORD)
        # Names are interned, nearly always.
        same = b.new("same")
        b.leave(b.icmp("eq", name, own), same)
        b.need(b.call("same_text", i1, (process, name, own)), no)
        b.br(same)
        b.goto(same)
    b.ret(const(i1, 1))
    b.goto(no)
    b.ret(const(i1, 0))


def _find(module: Module, target: Target) -> None:
    """See the module. An entry that is found moves up one place."""
    params = [(ptr, "kernel"), (ptr, "process"), (ptr, "facts"), (i64, "positional")]
    b, (kernel, process, facts, positional, names, keywords) = begin(
        module, target, "find", ptr, [*params, (ptr, "names"), (i64, "keywords")]
    )
    table = b.get(kernel, Kernel.TABLE, ptr)
    serial = b.get(process, Process.SERIAL)
    count = b.add(positional, keywords)
    with b.loop(const(i64, 0), b.get(kernel, Kernel.ENTRIES)) as loop:
        place = b.gep(table, b.mul(loop.index, const(i64, 2 * WORD)))
        entry = b.get(place, WORD, ptr)
        other = b.new("other")
        for field, value in (
            (Entry.SERIAL, serial),
            (Entry.POSITIONAL, positional),
            (Entry.KEYWORDS, keywords),
        ):
            b.need(b.icmp("eq", b.get(entry, field), value), other)
        b.need(b.call("named", i1, (process, entry, names, keywords)), other)
        arguments = b.get(entry, Entry.ARGUMENTS, ptr)
        with b.loop(const(i64, 0), count, name="k") as inner:
            argument = b.gep(arguments, b.mul(inner.index, const(i64, Argument.SIZE)))
            fact = b.gep(facts, b.mul(inner.index, const(i64, Fact.SIZE)))
            b.need(b.call("fits", i1, (process, argument, fact)), other)
        with b.when(b.icmp("ne", loop.index, const(i64, 0)), weights=(1, 100)):
            _swap(b, place)
        b.ret(entry)
        b.goto(other)
    b.ret(const(ptr, 0))


def _swap(b: HostBuilder, place: V) -> None:
    """Exchange a pair of the table with the one before it."""
    before = b.gep(place, -2 * WORD)
    pairs = [[b.get(each, offset) for offset in (0, WORD)] for each in (before, place)]
    for base, values in ((place, pairs[0]), (before, pairs[1])):
        for offset, value in zip((0, WORD), values):
            b.put(base, offset, value)


# ---- what the compilation has read ---------------------------------------------------------------


def _unchanged(module: Module, target: Target) -> None:
    """See the module: the same objects; those that are equal only are for Python to compare."""
    b, (entry,) = begin(module, target, "unchanged", i1, [(ptr, "entry")])
    guards, no = b.get(entry, Entry.GUARDS, ptr), b.new("no")
    with b.loop(const(i64, 0), b.get(entry, Entry.GUARD_COUNT)) as loop:
        guard = b.gep(guards, b.mul(loop.index, const(i64, Guard.SIZE)))
        kind = b.get(guard, Guard.KIND)
        owner, name, value = (
            b.get(guard, field, ptr) for field in (Guard.OWNER, Guard.NAME, Guard.VALUE)
        )
        following = b.new("following")
        cell, attribute = b.new("cell"), b.new("attribute")
        b.leave(b.icmp("eq", kind, const(i64, Guard.CELL)), cell)
        b.leave(b.icmp("eq", kind, const(i64, Guard.ATTRIBUTE)), attribute)
        item = b.call("PyDict_GetItemWithError", ptr, (owner, name))
        b.cbr(b.icmp("eq", item, value), following, no)
        b.goto(cell)
        content = b.call("PyCell_Get", ptr, (owner,))
        with b.when(b.not_(b.null(content))):
            b.call("Py_DecRef", void, (content,))
        b.cbr(b.icmp("eq", content, value), following, no)
        b.goto(attribute)
        b.cbr(b.call("is_attribute", i1, (owner, name, value)), following, no)
        b.goto(following)
    b.ret(const(i1, 1))
    b.goto(no)
    b.ret(const(i1, 0))


def _record_for(module: Module, target: Target) -> None:
    """See the module: ``record_for(process, entry, facts, count)``."""
    params = [(ptr, "process"), (ptr, "entry"), (ptr, "facts"), (i64, "count")]
    b, (process, entry, facts, count) = begin(module, target, "record_for", ptr, params)
    number, apart = b.get(entry, Entry.PAIR_COUNT), b.new("apart")
    unknown, touching = b.new("unknown"), b.new("touching")
    b.leave(b.icmp("eq", number, const(i64, 0)), apart)
    b.call("storages", void, (process, facts, count))
    pairs = b.get(entry, Entry.PAIRS, ptr)
    overlaps = b.variable(const(i1, 0), "overlaps")
    with b.loop(const(i64, 0), number) as loop:
        pair = b.gep(pairs, b.mul(loop.index, const(i64, 2 * WORD)))
        one, other = (
            b.gep(facts, b.mul(b.get(pair, offset), const(i64, Fact.SIZE))) for offset in (0, WORD)
        )
        (first, end), (other_first, other_end) = (
            (b.get(each, Fact.FIRST), b.get(each, Fact.END)) for each in (one, other)
        )
        nothing = const(i64, 0)
        b.leave(b.icmp("eq", end, nothing), unknown, rarely=True)
        b.leave(b.icmp("eq", other_end, nothing), unknown, rarely=True)
        crossing = b.and_(b.icmp("ult", first, other_end), b.icmp("ult", other_first, end))
        overlaps.set(b.or_(overlaps.get(), crossing))
    b.cbr(overlaps.get(), touching, apart)
    b.goto(apart)
    b.ret(b.get(entry, Entry.DISJOINT, ptr))
    b.goto(touching)
    b.ret(b.get(entry, Entry.OVERLAPPING, ptr))
    b.goto(unknown)
    b.ret(const(ptr, 0))
