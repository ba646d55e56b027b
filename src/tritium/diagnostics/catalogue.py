"""Every message of Tritium, by its code: one place for the words."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.Enum):
    """What a message is about; it selects the exception class."""

    COMPILE = "compile"
    TYPE = "type"
    VALUE = "value"
    NAME = "name"
    ASSERTION = "assertion"
    UNSUPPORTED = "unsupported"
    ARGUMENT_TYPE = "argument type"
    ARGUMENT_VALUE = "argument value"
    ARGUMENT_KEY = "argument key"
    LAUNCH = "launch"
    INTERPRETER = "interpreter"
    WARNING = "warning"


@dataclass(frozen=True)
class Entry:
    """One message: its code, kind, text with ``{places}``, and a line of help."""

    code: str
    kind: Kind
    template: str
    help: str = ""


# What the messages whose codes begin so are about.
SECTIONS = {
    "E01": "Names and Python constructs",
    "E02": "Types and values of operations",
    "E03": "The verifier",
    "E04": "Control flow",
    "E05": "Launching",
    "E06": "Memory",
    "E07": "The interpreter",
    "E08": "Files and options",
    "W09": "Warnings",
}

CATALOGUE: dict[str, Entry] = {}


def define(code: str, kind: Kind, template: str, help: str = "") -> None:
    """Add a message; its code belongs to a section and can be given out once only."""
    if code in CATALOGUE:
        raise ValueError(f"message {code} is defined twice")
    if code[:3] not in SECTIONS:
        raise ValueError(f"message {code} belongs to no section")
    CATALOGUE[code] = Entry(code, kind, template, help)


def _names() -> None:
    define("E0101", Kind.NAME, "{name} is not defined", "{hint}")
    define(
        "E0102",
        Kind.NAME,
        "global {name} is a plain {type}: a kernel can only use globals that can't change",
        "write {name} = tl.constexpr({value}), or pass it as an argument",
    )
    define("E0103", Kind.NAME, "{name} has no value on some paths to this place", "{hint}")
    define("E0110", Kind.UNSUPPORTED, "{construct} is not part of the kernel language", "{hint}")
    define("E0111", Kind.TYPE, "{name} can't be called from a kernel", "{hint}")
    define("E0112", Kind.TYPE, "{name}() got an unexpected keyword argument {keyword!r}", "{hint}")
    define("E0113", Kind.TYPE, "{name}() is missing the argument {missing!r}", "{signature}")
    define(
        "E0114",
        Kind.TYPE,
        "{name}() takes {most} positional arguments, got {got}",
        "{signature}",
    )
    define(
        "E0115",
        Kind.TYPE,
        "{name}() got two values for the argument {keyword!r}",
        "leave one of them out",
    )
    define(
        "E0116",
        Kind.COMPILE,
        "{name} calls itself without a compile-time end: kernels have no run-time recursion",
        "let a tl.constexpr argument reach the end, or write a loop",
    )
    define("E0117", Kind.COMPILE, "{error}: {text}", "{hint}")
    define(
        "E0118",
        Kind.COMPILE,
        "the source of {name} can't be found",
        "define it in a file, a notebook cell, or register its text with linecache",
    )
    define("E0119", Kind.ASSERTION, "static assertion failed{detail}")
    define(
        "E0120",
        Kind.VALUE,
        "{name} is a tl.constexpr already and can't be assigned again",
        "use a variable of another name",
    )
    define("E0121", Kind.UNSUPPORTED, "{name} is not supported yet", "{hint}")


def _operations() -> None:
    define(
        "E0201",
        Kind.TYPE,
        "{op} can't combine {left} and {right}",
        "{hint}",
    )
    define(
        "E0202",
        Kind.VALUE,
        "{op}: the shapes {left} and {right} don't broadcast (axis {axis})",
        "extents must be equal or 1",
    )
    define("E0203", Kind.VALUE, "{value} does not fit {type}", "cast the tile first")
    define("E0204", Kind.TYPE, "{op} needs {expected}, got {got}", "{hint}")
    define(
        "E0205",
        Kind.VALUE,
        "{op}: {name} must be known when the kernel is compiled, got a run-time {got}",
        "declare it as {name}: tl.constexpr",
    )
    define("E0206", Kind.VALUE, "{op}: {text}", "{hint}")
    define(
        "E0207",
        Kind.VALUE,
        "{op}: axis {axis} is out of range for the shape {shape}",
        "axes count from 0, or back from -1",
    )
    define(
        "E0208",
        Kind.VALUE,
        "unsupported tile index {index}",
        "use an integer, a slice, or None for a new axis; tl.gather takes a tile of places",
    )
    define(
        "E0209",
        Kind.VALUE,
        "a tile of {count} elements has no truth value",
        "use tl.where, or reduce it first",
    )
    define("E0210", Kind.TYPE, "{op} can't take {got}", "{hint}")
    define(
        "E0211",
        Kind.UNSUPPORTED,
        "{op} has no code for {executor}: {reason}",
        "run the kernel on the CPU, or step by step with TRITON_INTERPRET=1",
    )


def _verifier() -> None:
    define("E0301", Kind.COMPILE, "IR verifier: {text}")
    define("E0302", Kind.COMPILE, "IR text: {text}")
    define("E0303", Kind.ARGUMENT_VALUE, "pass pipeline: {text}", "{hint}")


def _control() -> None:
    define(
        "E0401",
        Kind.TYPE,
        "{name} is {before} before the {construct} and {after} after one pass through it",
        "give it the type it has at the end from the start, or cast it back",
    )
    define(
        "E0402",
        Kind.TYPE,
        "{name} is {left} in one branch and {right} in the other",
        "cast one of them so that both branches agree",
    )
    define(
        "E0403",
        Kind.TYPE,
        "a condition must be a scalar, got {got}",
        "choose element by element with tl.where, or reduce it first",
    )
    define(
        "E0404",
        Kind.UNSUPPORTED,
        "return inside a run-time loop is not part of the kernel language",
        "use a condition that ends the loop, and return after it",
    )
    define(
        "E0405",
        Kind.TYPE,
        "loop bounds must be integers, got {got}",
        "convert them: x.to(tl.int32)",
    )
    define(
        "E0406",
        Kind.TYPE,
        "the returned types differ: {left} and {right}",
        "let every return give values of the same types",
    )


def _launch() -> None:
    define(
        "E0501",
        Kind.ARGUMENT_TYPE,
        "{kernel}: argument {name} has the type {type}, which a kernel can't take",
        "{hint}",
    )
    define("E0502", Kind.ARGUMENT_TYPE, "{kernel}: missing the argument {name}", "{hint}")
    define(
        "E0503",
        Kind.ARGUMENT_KEY,
        "{kernel}: keyword {name} is neither a parameter nor a launch option",
        "parameters: {parameters}",
    )
    define("E0504", Kind.ARGUMENT_TYPE, "{kernel} takes {most} arguments, got {got}", "{hint}")
    define("E0505", Kind.ARGUMENT_TYPE, "{kernel}: two values for the argument {name}")
    define("E0510", Kind.ARGUMENT_VALUE, "{kernel}: grid {grid} {text}", "{hint}")
    define(
        "E0511",
        Kind.ARGUMENT_TYPE,
        "{kernel}: the grid must be 1 to 3 integers or a function that returns them, got {got}",
    )
    define(
        "E0512",
        Kind.ARGUMENT_VALUE,
        "{kernel}: the arguments are on different devices: {devices}",
        "move them to one device",
    )
    define("E0513", Kind.LAUNCH, "{kernel}: argument {name} is on {device}: {text}", "{hint}")
    define(
        "E0514",
        Kind.ARGUMENT_VALUE,
        "{kernel}: argument {name} is read-only and the kernel writes through it",
        "pass a writable copy",
    )
    define("E0515", Kind.ARGUMENT_VALUE, "{kernel}: argument {name}: {text}", "{hint}")
    define(
        "E0516",
        Kind.LAUNCH,
        "{name} is a kernel function: it can't be called from the host",
        "launch it as {name}[grid](...)",
    )
    define(
        "E0517",
        Kind.LAUNCH,
        "{name} can only be used inside a kernel",
        "decorate the function with @tritium.jit and launch it",
    )
    define(
        "E0518",
        Kind.LAUNCH,
        "{kernel}: {name} has changed since the kernel was compiled with it",
        "pass it as an argument; kernels under @tritium.jit are compiled anew",
    )
    define(
        "E0523",
        Kind.LAUNCH,
        "the programs of this grid wait for programs that can't be started: {most} run at once",
        "launch a grid of up to {most} programs, or have programs wait only for those before them",
    )


def _devices() -> None:
    define("E0519", Kind.LAUNCH, "{kernel} can't run on {device}: {text}", "{hint}")
    define("E0520", Kind.LAUNCH, "{kernel}: {function} failed with {name}: {text}", "{hint}")
    define(
        "E0521",
        Kind.LAUNCH,
        "{device} has stopped with {name}: {text}; launched last: {launched}",
        "a new process can use the device; run this one with CUDA_LAUNCH_BLOCKING=1 to be told at "
        "the launch, or under compute-sanitizer to be told the line",
    )
    define(
        "E0522",
        Kind.LAUNCH,
        "{kernel} would be compiled and loaded while a CUDA graph is captured",
        "launch it with such arguments once before the capture, or call {kernel}.warmup(...)",
    )


def _memory() -> None:
    define(
        "E0601",
        Kind.TYPE,
        "{op} needs a pointer, got {got}",
        "pass a tensor argument and add offsets to it",
    )
    define("E0602", Kind.TYPE, "{op}: the mask must be int1, got {got}", "compare: mask = x != 0")
    define(
        "E0603",
        Kind.VALUE,
        "{op}: {name} of shape {got} does not broadcast to the pointer's shape {shape}",
        "extents must be equal or 1",
    )
    define("E0604", Kind.VALUE, "{op}: other is given without a mask", "add mask=")
    define(
        "E0605",
        Kind.TYPE,
        "{op}: {got} is a pointer to const and can't be written through",
        "leave tl.const out of the parameter's annotation",
    )
    define("E0606", Kind.VALUE, "{op}: unknown {name} {value!r}", "allowed: {allowed}")
    define(
        "E0607",
        Kind.VALUE,
        "{op}: {name} belongs to block pointers, got {got}",
        "use mask= and other=",
    )
    define(
        "E0609",
        Kind.VALUE,
        "{op}: {name} belongs to tiles of pointers, got {got}",
        "use boundary_check= and padding_option=",
    )
    define(
        "E0608",
        Kind.INTERPRETER,
        "{op} in program {program}: {lane} has the address {address}, {reason}",
        "check the offsets and the mask",
    )


def _interpreter() -> None:
    define("E0701", Kind.INTERPRETER, "{error}: {text}", "{hint}")
    define(
        "E0702",
        Kind.INTERPRETER,
        "every program that has started waits for another one: {programs}",
        "{hint}",
    )
    define("E0703", Kind.LAUNCH, "the assertion fails in program {program}{lane}{text}")


def _files() -> None:
    define("E0801", Kind.ARGUMENT_VALUE, "{name}={value!r} is not {expected}", "{hint}")
    define("E0802", Kind.LAUNCH, "{text}", "{hint}")


def _warnings() -> None:
    define("W0901", Kind.WARNING, "{text}", "{hint}")
    define(
        "W0902",
        Kind.WARNING,
        "{kernel}: enable_fp_fusion has no effect step by step: a * b + c is rounded twice",
        "run it natively, or write tl.fma",
    )
    define(
        "W0903",
        Kind.WARNING,
        "{kernel}: {count} registers of each thread are kept in memory, which is slow",
        "use smaller tiles or more num_warps",
    )
    define(
        "W0904",
        Kind.WARNING,
        "{kernel}: a program keeps {total} in memory, more than the {limit} of a core's L2 cache; "
        "this {type} takes {size} of it",
        "use smaller tiles, or a loop over parts of it",
    )


for _section in (
    _names,
    _operations,
    _verifier,
    _control,
    _launch,
    _devices,
    _memory,
    _interpreter,
    _files,
    _warnings,
):
    _section()
