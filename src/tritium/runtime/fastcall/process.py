"""What all launches share: addresses of types and functions, and the settings as recorded."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from typing import Any

import numpy as np

from tritium import knobs
from tritium.backends.host import LAUNCH_FUNCTIONS, layout
from tritium.backends.host.layout import WORD
from tritium.ir.dtypes import BY_NUMPY
from tritium.runtime import arrays, binder, hostcode, objects, placement, settings
from tritium.runtime.pool import POOL

from .kernel import CONDITIONS

_PERIOD = 0.1
"""Seconds after which the number of CPUs is looked up again."""


class Process:
    """The memory that ``layout.Process`` describes, and what keeps alive what it points to."""

    def __init__(self) -> None:
        imports = {"run_grid": POOL.start()}
        library = hostcode.load("launch", _write, LAUNCH_FUNCTIONS, imports)
        address = library.address("launch")
        self._launch = hostcode.method("launch", address, hostcode.FASTCALL_KEYWORDS)
        self._make = hostcode.method("make", library.address("make"), hostcode.ONE_ARGUMENT)
        self._memory = (ctypes.c_uint64 * (layout.Process.SIZE // WORD))()
        self.address = ctypes.addressof(self._memory)
        read = hostcode.method("read", library.address("read"), hostcode.ONE_ARGUMENT)
        scan = hostcode.method("scan", library.address("scan"), hostcode.FASTCALL)
        self.read, self.scan = (hostcode.builtin(each, self.address) for each in (read, scan))
        """The builtin functions of ``backends.host.reader``."""
        self._kept: dict[int, Any] = {}
        self._serials: dict[Any, int] = {}
        self._lock = threading.RLock()
        self._watched: Any = None
        self._constants()
        self.settle()
        binder.scan_natively(self.scan)

    # ---- memory ----------------------------------------------------------------------------------

    def put(self, field: int, value: int) -> None:
        """Write a field."""
        self._memory[field // WORD] = value

    def get(self, field: int) -> int:
        """Read a field."""
        return self._memory[field // WORD]

    def _refer(self, field: int, value: Any) -> None:
        before = self._kept.get(field)
        self._kept[field] = value
        self.put(field, id(value))
        del before

    def _constants(self) -> None:
        fields = layout.Process
        for field, value in (
            (fields.INT, int),
            (fields.FLOAT, float),
            (fields.STR, str),
            (fields.TUPLE, tuple),
            (fields.NONE, None),
            (fields.TRUE, True),
            (fields.FALSE, False),
            (fields.SCOPES, knobs.SCOPES),
            (fields.MODULE, vars(os)),
            (fields.ENVIRON_NAME, "environ"),
            (fields.SETTLE, self.settle),
            (fields.DTYPE, "dtype"),
            (fields.NOTHING, ()),
            (fields.DTYPES, BY_NUMPY),
            (fields.CODES, {}),
            (fields.CPU, arrays.CPU),
            (fields.ANYWHERE, arrays.ANYWHERE),
            (fields.ARGUMENT, arrays.ArrayArgument),
        ):
            self._refer(field, value)
        self.put(fields.POOL, POOL.address)
        self.put(fields.METHOD, self._launch)
        self.put(fields.VERSION, objects.dictionary_version())
        self.put(fields.REVISION, knobs.REVISION.buffer_info()[0])
        period = ctypes.c_double(_PERIOD * POOL.frequency)
        self.put(fields.PERIOD, ctypes.c_uint64.from_buffer(period).value)
        found = objects.numpy_fields()
        if found is not None:
            self.put(fields.ARRAY, found.type)
            self.put(fields.ELEMENT_SIZE, found.element_size)
            arrays.read_natively([np.ndarray], self.read)

    def look_for_torch(self) -> None:
        """Take in tensors, once torch is loaded."""
        fields, found = layout.Process, objects.torch_fields()
        if found is None or self.get(fields.TENSOR) == found.tensor:
            return
        self._refer(fields.CODES, objects.torch_elements(found.exchange))
        for field, value in zip(
            (
                fields.EXCHANGE,
                fields.IMPLEMENTATION,
                fields.STORAGE,
                fields.STORAGE_DATA,
                fields.STORAGE_SIZE,
                fields.KEYS,
                fields.NEGATED,
                fields.PARAMETER,
                fields.TENSOR,
            ),
            (*found[2:], found.parameter, found.tensor),
        ):
            self.put(field, value)
        torch = sys.modules["torch"]
        arrays.read_natively([torch.Tensor, torch.nn.Parameter], self.read)

    def look_for_gpus(self) -> bool:
        """Take in the driver and torch's streams, once both are in use; whether they are there."""
        from tritium.runtime.cuda import devices, library, recent

        fields = layout.Process
        torch = devices.torch_with_cuda()
        if self.get(fields.LAUNCH_KERNEL) == 0 and torch is not None:
            try:
                # A capture is no time to try other streams.
                stream = 0 if torch.cuda.is_current_stream_capturing() else objects.work_stream()
            except RuntimeError:
                # A kernel has failed meanwhile: who waits for it or launches next is told.
                return False
            if stream == 0:
                return False
            self.put(fields.WORK_STREAM, stream)
            self.put(fields.RECENT, recent.ADDRESS)
            self.put(fields.LAUNCH_KERNEL, library.load().address("cuLaunchKernel"))
        return self.get(fields.LAUNCH_KERNEL) != 0

    # ---- settings --------------------------------------------------------------------------------

    def settle(self) -> None:
        """Record what there is, and whether compiled code may run under it by the short way.

        Raises ``KnobError`` for a variable that can't be understood, as a launch by Python does.
        """
        fields = layout.Process
        with self._lock:
            if self._is_recorded():
                # It was only time to look at what the system may have changed.
                self.put(fields.THREADS, knobs.cpu.num_threads)
                self.put(fields.SETTLED, POOL.ticks())
                return
            # While this runs, launches of other threads go the long way.
            self.put(fields.ACTIVE, 0)
            # What is looked at is recorded before it is understood: a change meanwhile shows.
            self.put(fields.REVISED, knobs.REVISION[0])
            self._refer(fields.SCOPE, knobs.SCOPES.get())
            usual = self._record_variables()
            found = settings.current()
            self._refer(fields.ENTER, found.entering)
            self._refer(fields.EXIT, found.leaving)
            self.put(fields.SETTLED, POOL.ticks())
            self.put(fields.THREADS, knobs.cpu.num_threads)
            number = len(self._serials) + 1
            means = found.compiled_in, placement.chosen()
            self.put(fields.SERIAL, self._serials.setdefault(means, number))
            usual = usual and not found.interpret and all(each() for each in CONDITIONS)
            self.put(fields.ACTIVE, int(usual))

    def _is_recorded(self) -> bool:
        """Whether nothing has changed that Python can change."""
        variables = getattr(os.environ, "_data", None)
        return (
            self._watched is not None
            and self.get(layout.Process.REVISED) == knobs.REVISION[0]
            and self._kept[layout.Process.SCOPE] is knobs.SCOPES.get()
            and self._kept[layout.Process.ENVIRON] is os.environ
            and type(variables) is dict
            and all(variables.get(key) is value for key, value in self._watched[1])
        )

    def _record_variables(self) -> bool:
        """Record the environment variables; whether that is possible."""
        fields, environ = layout.Process, os.environ
        variables = getattr(environ, "_data", None)
        self._refer(fields.ENVIRON, environ)
        self._refer(fields.VARIABLES, variables)
        if type(variables) is not dict:
            self.put(fields.WATCHES, 0)
            self._watched = None
            return False
        # Versions start at 1.
        self.put(fields.VERSION_SEEN, 0)
        pairs = [(key, variables.get(key)) for key in _keys()]
        words = (ctypes.c_uint64 * (2 * len(pairs)))(
            *(0 if each is None else id(each) for pair in pairs for each in pair)
        )
        self._watched, before = (words, pairs), self._watched
        self.put(fields.WATCHED, ctypes.addressof(words))
        self.put(fields.WATCHES, len(pairs))
        del before
        return True

    @property
    def active(self) -> bool:
        """Whether launches may take the short way, as things were recorded last."""
        return bool(self.get(layout.Process.ACTIVE))

    @property
    def serial(self) -> int:
        """The number of the settings that were recorded last."""
        return self.get(layout.Process.SERIAL)

    # ---- functions -------------------------------------------------------------------------------

    def maker(self, self_: tuple[Any, ...]) -> Any:
        """The builtin function that makes launches of the kernel whose bytes ``self_`` has."""
        return hostcode.builtin(self._make, self_)

    def after_fork(self) -> None:
        """Another thread of the parent may have held the lock; the child can't use its GPUs."""
        self.put(layout.Process.LAUNCH_KERNEL, 0)
        self._lock = threading.RLock()


@functools.cache
def _keys() -> tuple[Any, ...]:
    """The variables of the settings, as the dictionary behind ``os.environ`` has their names."""
    threads = knobs.cpu.descriptors()["num_threads"].environment
    return (*settings.current.keys, *map(knobs.encoded, threads))


def _write(module: Any, target: Any) -> tuple[str, ...]:
    from tritium.backends.host import launcher

    return launcher.write(module, target)


@functools.cache
def process() -> Process:
    """The one of this process, made when it is first needed."""
    made = Process()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=made.after_fork)
    return made
