"""Prints and checks at run time.

What is printed stands here once, as text from arrays: the interpreter has them at hand, compiled
code tells the process where they lie. A line is printed for each element::

    pid (0, 0, 0) idx (2, 1) prefix: 3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tritium.diagnostics import Loc, TritiumError, error
from tritium.ir.core import ORDERED, Op, Value, attribute, op, operand, operands, optional
from tritium.ir.dtypes import Array, DType, Type, float32, int1, int8, int32, uint64
from tritium.ir.types import shaped

from .codecs import decode
from .constants import to_tile
from .constexpr import unwrap
from .create import full, static_flag
from .emit import emit, surface, tracer_of
from .shape import broadcast_tiles
from .spec import Case, Operands, Reject, Sample, given

_LATER: Mapping[str, str] = {"nvptx": "prints and checks run on the CPU and in the interpreter"}

Program = tuple[int, int, int]


def printed(
    program: Program, prefix: str, hex: bool, types: Sequence[Type], arrays: Sequence[Array]
) -> str:
    """The lines that one program prints, each with its end; ``arrays`` in storage form."""
    place = f"pid {program}"
    if not arrays:
        return f"{place} {prefix}\n"
    lines: list[str] = []
    for number, (type, array) in enumerate(zip(types, arrays)):
        which = f"(operand {number}) " if len(arrays) > 1 else ""
        width = [len(str(extent - 1)) for extent in array.shape]
        for index in np.ndindex(array.shape):
            at = ", ".join(f"{i:{w}}" for i, w in zip(index, width))
            text = _element(type.scalar, array[index], hex)
            lines.append(f"{place} idx ({at}) {prefix}{which}{text}\n")
    return "".join(lines)


def _element(scalar: Type, element: Any, hex: bool) -> str:
    """One element as C's printf writes it: %d, %f, or as hexadecimal digits of its bits."""
    stored = np.asarray(element)
    if hex or not isinstance(scalar, DType):
        bits = int(stored.view(f"u{stored.itemsize}")) if stored.dtype != bool else int(stored)
        return f"0x{bits:0{2 * stored.itemsize}x}"
    if scalar.is_floating():
        return f"{float(decode(stored, scalar)):f}"
    return str(int(stored))


def failure(
    program: Program, message: str, condition: Array, mask: Array | None, loc: Loc | None = None
) -> TritiumError | None:
    """The error of a check that fails in some lane; None where it holds."""
    failing = ~np.asarray(condition, bool)
    if mask is not None:
        failing &= np.asarray(mask, bool)
    if not failing.any():
        return None
    lane = tuple(int(index) for index in np.argwhere(failing)[0])
    return error(
        "E0703",
        program=program,
        lane=f", lane {lane}" if lane else "",
        text=f": {message}" if message else "",
        loc=loc,
    )


def _sample(scalar: DType, elements: Any) -> Sample:
    data = np.asarray(elements, scalar.numpy)
    return Sample(shaped(scalar, data.shape), data)


def _case(
    cls: type[Op],
    label: str,
    operands: Operands,
    attributes: Mapping[str, Any],
    told: str,
    row: DType | None = None,
) -> Case:
    """A case without results: only what it tells can be right or wrong."""
    return Case(cls, label, operands, attributes, oracle=lambda *x: (), told=told, row=row)


@op("report.print", effects=ORDERED)
class Print(Op):
    """Prints ``prefix`` and the elements of each value, a line for each, with their places.

    The lines of one program stand together; the order of programs is open.
    """

    unsupported: ClassVar[Mapping[str, str]] = _LATER
    args: tuple[Value, ...] = operands()
    prefix: str = attribute("")
    hex: bool = attribute(False)

    def infer(self) -> None:
        return None

    def evaluate(self, machine: Any, args: Any) -> None:
        types = [value.type for value in self.args]
        arrays = [np.asarray(each) for each in args]
        machine.print(printed(machine.program, self.prefix, self.hex, types, arrays))

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Elements of several types, several values, none."""
        for dtype, elements, words in (
            (int1, (True, False, True), ("1", "0", "1")),
            (int8, (-128, 0, 127), ("-128", "0", "127")),
            (int32, (-7, 1 << 30, 5), ("-7", "1073741824", "5")),
            (uint64, (0, 1 << 63, 9), ("0", "9223372036854775808", "9")),
            (float32, (1.5, -0.25, np.inf), ("1.500000", "-0.250000", "inf")),
        ):
            lines = [f"pid (0, 0, 0) idx ({at}) x: {word}\n" for at, word in enumerate(words)]
            given = {"args": (_sample(dtype, elements),)}
            yield _case(cls, str(dtype), given, {"prefix": "x: "}, "".join(lines), dtype)
        both = (_sample(int32, [[1, -1], [255, 16]]), _sample(float32, 1.0))
        told = """\
pid (0, 0, 0) idx (0, 0) both: (operand 0) 0x00000001
pid (0, 0, 0) idx (0, 1) both: (operand 0) 0xffffffff
pid (0, 0, 0) idx (1, 0) both: (operand 0) 0x000000ff
pid (0, 0, 0) idx (1, 1) both: (operand 0) 0x00000010
pid (0, 0, 0) idx () both: (operand 1) 0x3f800000
"""
        yield _case(cls, "several", {"args": both}, {"prefix": "both: ", "hex": True}, told, int32)
        yield _case(cls, "none", {"args": ()}, {"prefix": "here"}, "pid (0, 0, 0) here\n", int32)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Prefixes that are no constant printable text."""
        yield Reject("no text", "E0204", lambda: device_print(given(int32)), "prefix")
        yield Reject("a line's end", "E0206", lambda: device_print("a\n"), "prefix")
        yield Reject("no value", "E0210", lambda: device_print("x", None), "args")
        digits = lambda: device_print("x", 1, hex=given(int1))  # noqa: E731
        yield Reject("a runtime notation", "E0205", digits, "hex")


@op("report.assert", effects=ORDERED)
class Assert(Op):
    """Ends the launch with an error unless ``condition`` holds in every lane of ``mask``.

    ``file``, ``line`` and ``function`` say where it stands, where that is known in advance.
    """

    unsupported: ClassVar[Mapping[str, str]] = _LATER
    condition: Value = operand()
    mask: Value | None = optional()
    message: str = attribute("")
    file: str = attribute("")
    line: int = attribute(0)
    function: str = attribute("")

    @property
    def place(self) -> Loc | None:
        """Where it stands."""
        return Loc(self.file, self.line, function=self.function) if self.file else self.loc

    def infer(self) -> None:
        self.check(self.condition.type, None if self.mask is None else self.mask.type)

    @staticmethod
    def check(condition: Type, mask: Type | None) -> None:
        """Raises E0204 for what isn't int1, E0202 for a mask of another shape."""
        for name, kind in (("cond", condition), ("mask", mask)):
            if kind is not None and kind.scalar is not int1:
                raise error(
                    "E0204",
                    op="device_assert",
                    expected=f"{name} of int1",
                    got=kind,
                    hint="compare: x != 0",
                    argument=name,
                )
        if mask is not None and mask.shape != condition.shape:
            raise error("E0202", op="device_assert", left=condition.shape, right=mask.shape)

    def evaluate(self, machine: Any, condition: Any, mask: Any) -> None:
        problem = failure(machine.program, self.message, condition, mask, self.place)
        if problem is not None:
            raise problem

    @classmethod
    def cases(cls) -> Iterator[Case]:
        """Conditions that hold, in every lane or in those of the mask, and some that don't."""
        options = {"message": "text"}
        holds, all_but = np.arange(48) != 7, np.arange(48) != 8
        failed = "the assertion fails in program (0, 0, 0){}: text"
        for label, condition, mask, told in (
            ("masked", holds, holds, ""),
            ("a scalar", True, None, ""),
            ("a failing lane", holds, all_but, failed.format(", lane (7,)")),
            ("two failing lanes", holds & all_but, None, failed.format(", lane (7,)")),
            ("a failing scalar", False, None, failed.format("")),
            ("a masked scalar", False, False, ""),
        ):
            given = {"condition": _sample(int1, condition)}
            if mask is not None:
                given["mask"] = _sample(int1, mask)
            yield _case(cls, label, given, options, told)

    @classmethod
    def rejects(cls) -> Iterator[Reject]:
        """Conditions and masks that aren't int1, messages that are no text."""
        yield Reject("numbers", "E0204", lambda: device_assert(given(int32, 4)), "cond")
        mask = lambda: device_assert(given(int1, 4), mask=given(int32, 4))  # noqa: E731
        yield Reject("a mask of numbers", "E0204", mask, "mask")
        text = lambda: device_assert(given(int1), given(int32))  # noqa: E731
        yield Reject("a message", "E0204", text, "msg")


def _text(name: str, argument: str, value: Any) -> str:
    """A constant string of printable ASCII. Raises E0204 and E0206."""
    known = unwrap(value)
    if not isinstance(known, str):
        raise error(
            "E0204",
            op=name,
            expected=f"a constant string as {argument}",
            got=type(known).__name__ if not hasattr(known, "type") else known.type,
            hint="",
            argument=argument,
        )
    return known


@surface
def device_print(prefix: Any, *args: Any, hex: Any = False) -> None:
    """Print elements when the kernel runs, a line for each.

    A line reads ``pid (0, 0, 0) idx (2, 1) prefix: 3``; of several values each says which it is.
    ``prefix`` is a constant string of printable ASCII; ``hex`` prints bits as hexadecimal digits.
    ``print`` in a compiled kernel is the same; step by step it is Python's own.

    Raises E0204 and E0206 for another prefix, E0210 for what has no value.
    """
    text = _text("device_print", "prefix", prefix)
    if not all(" " <= letter <= "~" for letter in text):
        raise error(
            "E0206",
            op="device_print",
            text="the prefix holds what is no printable ASCII",
            hint="a line is ended in any case",
            argument="prefix",
        )
    if args:
        text = f"{text.removesuffix(' ').removesuffix(':')}: "
    tiles = tuple(to_tile(each, "device_print", "args") for each in args)
    digits = static_flag("device_print", hex, "hex")
    emit(Print, args=tiles, prefix=text, hex=digits)


@surface
def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> None:
    """End the launch with E0703 unless ``cond`` (int1) is true in every lane of ``mask``.

    The error names the line, the program and the first lane. ``assert`` in a kernel is the same.
    Compiled kernels check where they are launched with ``debug=True`` or TRITON_DEBUG=1; the
    interpreter always does.

    Raises E0204 for a condition or mask that isn't int1 and for a message that is no constant
    string, E0202 for shapes that don't fit.
    """
    message = _text("device_assert", "msg", msg)
    known = unwrap(cond)
    condition = (
        full((), known, int1) if isinstance(known, bool) else to_tile(cond, "device_assert", "cond")
    )
    lanes = None if unwrap(mask) is None else to_tile(mask, "device_assert", "mask")
    if lanes is not None:
        condition, lanes = broadcast_tiles("device_assert", condition, lanes)
    tracer = tracer_of("tl.device_assert")
    Assert.check(condition.type, None if lanes is None else lanes.type)
    if not tracer.checks:
        return
    loc = tracer.loc()
    place = {} if loc is None else {"file": loc.file, "line": loc.line, "function": loc.function}
    emit(Assert, condition=condition, mask=lanes, message=message, **place)
