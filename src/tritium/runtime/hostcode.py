"""Loads the native code that runs beside kernels: generated once, then read from the cache."""

from __future__ import annotations

# What signal is made of: the module itself spends longer on enumerations than all of this does.
import _signal as signal  # type: ignore[import-not-found]
import ctypes
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tritium import knobs
from tritium.backends import llvm
from tritium.backends.llvm import Library, Target

from . import cache

if TYPE_CHECKING:
    from tritium.backends.emit import Module

Writer: TypeAlias = "Callable[[Module, Target], Sequence[str]]"
"""Writes a module, and returns the names of the C functions that it calls."""

SUPPORTED = os.name == "posix" and sys.implementation.name == "cpython"
"""Whether there is such code for this platform."""


def load(
    name: str, write: Writer, exports: Sequence[str], imports: Mapping[str, int] | None = None
) -> Library:
    """The code that ``write`` makes for this machine, linked to the C library and CPython.

    ``imports`` are addresses of other functions that it calls.
    """
    target = llvm.host_target()
    key = cache.key("host", name, target.key, _platform())
    found = None if knobs.compilation.always_compile else cache.load(key, cache.HOST_SUFFIX)
    if found is None:
        from tritium.backends.emit import Module

        module = Module(name)
        needed = list(write(module, target))
        image = llvm.emit_object(llvm.optimise(module.text(), target))
        found = cache.Entry({"needed": needed, "entry": name}, {"object": image})
        cache.store(key, found, cache.HOST_SUFFIX)
    addresses = {each: _address(each) for each in found.facts["needed"]} | dict(imports or {})
    library = llvm.link(found.sections["object"], exports, addresses)
    # Threads and objects of Python may run it until the very end of the process.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    llvm.keep_linked()
    return library


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


ONE_ARGUMENT, FASTCALL, FASTCALL_KEYWORDS = 0x0008, 0x0080, 0x0082
"""How CPython calls a function: with an object, an array of them, that and a tuple of names."""
_methods: list[_Method] = []


def method(name: str, address: int, flags: int) -> int:
    """The address of a PyMethodDef, which stays for ever."""
    made = _Method(name.encode(), address, flags, None)
    _methods.append(made)
    return ctypes.addressof(made)


def builtin(method: int, self: Any) -> Any:
    """A builtin function of Python, by the address of its method."""
    kinds = (ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    make = ctypes.PYFUNCTYPE(*kinds)(("PyCFunction_NewEx", ctypes.pythonapi))
    return make(method, self, None)


def _platform() -> str:
    """What the code depends on beside the target: Python's version and the C library's.

    Python's says how its objects lie in memory, the C library's which functions there are.
    """
    python = ".".join(map(str, sys.version_info[:3]))
    numbers = map(str, (sig_block(), *faults()))
    return " ".join((sys.platform, python, sys.abiflags, *_c_library(), *numbers))


def _c_library() -> tuple[str, ...]:
    """Name and version, as far as it tells them: glibc does, others go by the kernel's."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "",)
    except (AttributeError, ValueError, OSError):
        system = os.uname()
        return system.sysname, system.release


def sig_block() -> int:
    """How ``pthread_sigmask`` is told to block signals."""
    return int(signal.SIG_BLOCK)


def faults() -> tuple[int, ...]:
    """The signals of faults, which a thread must not block, and that of profilers."""
    names = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGPROF")
    return tuple(int(getattr(signal, name)) for name in names if hasattr(signal, name))


@functools.cache
def _process() -> ctypes.CDLL:
    """What this process has loaded, the C library among it."""
    return ctypes.CDLL(None)


def _address(name: str) -> int:
    library = ctypes.pythonapi if name.startswith(("Py", "_Py")) else _process()
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address
