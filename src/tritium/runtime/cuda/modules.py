"""Machine code in a device's memory."""

from __future__ import annotations

from typing import NamedTuple

from .devices import Device
from .library import CudaFailure

# Numbers of CUfunction_attribute.
_MOST_THREADS = 0
_STATIC_SHARED = 1
_LOCAL = 3
_REGISTERS = 4
_DYNAMIC_SHARED = 8

_WITHOUT_ASKING = 48 << 10
"""Bytes of shared memory that any block can have."""


class Loaded(NamedTuple):
    """A kernel's function on a device; handles of the driver, and what the driver knows of it."""

    module: int
    function: int
    registers: int
    local: int
    most_threads: int


def load(device: Device, cubin: bytes, entry: str, kernel: str, shared: int) -> Loaded:
    """Load a cubin, whose function may use ``shared`` bytes of dynamic shared memory.

    It stays loaded: graphs and launches in flight may need it. ``kernel`` is for messages. Raises
    ``OutOfResources`` for more shared memory than there is, E0520 and E0521 where the driver fails.
    """
    cuda = device.cuda
    try:
        with device.current():
            module = cuda.handle("cuModuleLoadData", cubin)
            function = cuda.handle("cuModuleGetFunction", module, entry.encode())

            def attribute(number: int) -> int:
                return cuda.integer("cuFuncGetAttribute", number, function)

            whole = shared + attribute(_STATIC_SHARED)
            if whole > device.most_shared:
                from . import problems

                raise problems.too_much_shared(whole, device)
            if whole > _WITHOUT_ASKING:
                cuda.cuFuncSetAttribute(function, _DYNAMIC_SHARED, shared)
            numbers = [attribute(each) for each in (_REGISTERS, _LOCAL, _MOST_THREADS)]
            return Loaded(module, function, *numbers)
    except CudaFailure as problem:
        # A warm start has none.
        from . import problems

        raise problems.failed(kernel, device, problem) from None
