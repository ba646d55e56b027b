"""A driver without a GPU: it has all of the functions, keeps what it is told, and runs kernels.

Device memory is the host's. Code for it is compiled by ``FakeBackend``, with the CPU's backend
behind it, so that a launch through the driver has results. A torch tensor of the CPU passes for one
of a GPU while ``installed`` is in force, for Python and for native code.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tritium.backends import llvm
from tritium.backends.host import layout
from tritium.backends.nvptx import compile as nvptx
from tritium.runtime import arrays, hostcode, objects, placement
from tritium.runtime.cuda import devices, library
from tritium.runtime.cuda.library import PROTOTYPES, Library
from tritium.runtime.fastcall.process import process
from tritium.runtime.pool import ENTRY_TYPE

INVALID_VALUE, INVALID_CONTEXT, INVALID_HANDLE = 1, 201, 400
STICKY = 700
MOST_SHARED = 227 << 10
ATTRIBUTES = {1: 1024, 8: 48 << 10, 10: 32, 12: 65536, 13: 1980000, 16: 132, 36: 2619000, 37: 6144}
ATTRIBUTES |= {75: 9, 76: 0, 95: 1, 97: MOST_SHARED}
_MARK = b"\x7fFAKE "
KERNELS: dict[str, tuple[Callable[[list[int], tuple[int, int, int]], None], int]] = {}
"""What entries do, and how many parameters they have: by the text of their code, which the cache of
a test process may keep."""


class Launch(NamedTuple):
    """What the driver was told to start."""

    entry: str
    grid: tuple[int, int, int]
    threads: int
    shared: int
    stream: int
    words: list[int]
    ordinal: int
    thread: int


class FakeDriver:
    """The functions of ``PROTOTYPES`` as methods; handles are small numbers.

    ``status`` has what a function is to return instead of doing anything, ``log`` the functions
    that were called. ``spilled`` are the bytes that it says of what it assembles. ``run_unknown``
    lets it take code of another process, which does nothing.
    """

    def __init__(self, count: int = 2) -> None:
        self.count = count
        self.status: dict[str, int] = {}
        self.log: list[str] = []
        self.launches: list[Launch] = []
        self.owners: dict[int, int] = {}
        self.unknown: set[int] = set()
        self.spilled = 0
        self.run_unknown = False
        self.stream = 0
        self.capturing = 0
        self.waits: list[tuple[int, int]] = []
        self.most_threads = 1024
        self.problems: list[str] = []
        self.local = threading.local()
        self._handles: dict[int, Any] = {}
        self.symbols = types.SimpleNamespace(
            **{name: self._function(name, args) for name, args in PROTOTYPES.items()}
        )

    def _function(self, name: str, args: tuple[Any, ...]) -> Any:
        method = getattr(self, name[:1].lower() + name[1:])

        def called(*given: Any) -> int:
            self.log.append(name)
            if name in self.status:
                return self.status[name]
            # What is raised in here ctypes prints only: a test must not pass by that.
            self.problems.append(name)
            status = int(method(*given) or 0)
            self.problems.remove(name)
            return status

        plain = [ctypes.c_void_p if each is ctypes.c_char_p else each for each in args]
        return ctypes.CFUNCTYPE(ctypes.c_int, *plain)(called)

    def _new(self, value: Any) -> int:
        handle = 0x1000 + len(self._handles)
        self._handles[handle] = value
        return handle

    def of(self, handle: int) -> Any:
        """What a handle stands for."""
        return self._handles[handle]

    # Devices.

    def cuInit(self, flags: int) -> int:
        return 0 if self.count else library.NO_DEVICE

    def cuDriverGetVersion(self, out: int) -> None:
        _int(out, 13000)

    def cuDeviceGetCount(self, out: int) -> None:
        _int(out, self.count)

    def cuDeviceGet(self, out: int, ordinal: int) -> None:
        _int(out, ordinal)

    def cuDeviceGetName(self, out: int, size: int, device: int) -> None:
        ctypes.memmove(out, b"Fake GPU\0", 9)

    def cuDeviceGetAttribute(self, out: int, number: int, device: int) -> None:
        _int(out, ATTRIBUTES[number])

    def cuDeviceTotalMem_v2(self, out: int, device: int) -> None:
        _word(out, 1 << 30)

    # Contexts: 100 and more.

    def _stack(self) -> list[int]:
        if not hasattr(self.local, "stack"):
            self.local.stack = []
        return self.local.stack  # type: ignore[no-any-return]

    def cuDevicePrimaryCtxRetain(self, out: int, device: int) -> None:
        _word(out, 100 + device)

    def cuCtxGetCurrent(self, out: int) -> None:
        _word(out, self._stack()[-1] if self._stack() else 0)

    def cuCtxPushCurrent_v2(self, context: int) -> None:
        self._stack().append(context)

    def cuCtxPopCurrent_v2(self, out: int) -> None:
        _word(out, self._stack().pop())

    def cuCtxSynchronize(self) -> int:
        return 0 if self._stack() else INVALID_CONTEXT

    # Code.

    def cuModuleLoadData(self, out: int, image: int) -> int:
        text = ctypes.string_at(image)
        if not text.startswith(_MARK):
            return 200
        if not self._stack():
            return INVALID_CONTEXT
        _word(out, self._new((text[len(_MARK) :].decode(), self._stack()[-1])))
        return 0

    def cuModuleUnload(self, module: int) -> None:
        self._handles.pop(module)

    def cuModuleGetFunction(self, out: int, module: int, name: int) -> int:
        entry, _ = self.of(module)
        if entry.split(" ")[0] != ctypes.string_at(name).decode():
            return 500
        _word(out, module)
        return 0

    def cuFuncGetAttribute(self, out: int, number: int, function: int) -> None:
        _int(out, {0: self.most_threads, 1: 0, 3: 16, 4: 24}[number])

    def cuFuncSetAttribute(self, function: int, number: int, value: int) -> None:
        assert number == 8

    def cuLaunchKernel(self, function: int, *rest: Any) -> int:
        shared, stream, parameters, extra = rest[6:]
        assert extra is None
        return self._launch(function, rest[:3], rest[3:6], shared, stream or 0, parameters)

    def cuLaunchKernelEx(self, config: int, function: int, parameters: int, extra: int) -> int:
        gx, gy, gz, bx, by, bz, shared = (ctypes.c_uint * 7).from_address(config)
        stream, attributes = (ctypes.c_uint64 * 2).from_address(config + 32)
        kind, _, value = (ctypes.c_int * 3).from_address(attributes)
        assert (kind, value, ctypes.c_uint.from_address(config + 48).value) == (2, 1, 1)
        grid, block = (gx, gy, gz), (bx, by, bz)
        return self._launch(function, grid, block, shared, stream, parameters)

    def _launch(
        self, function: int, grid: Any, block: Any, shared: int, stream: int, parameters: int
    ) -> int:
        text, context = self.of(function)
        entry = text.split(" ")[0]
        if not self._stack():
            return INVALID_CONTEXT
        if self._stack()[-1] != context:
            return INVALID_HANDLE
        if 0 in grid or max(grid[1:]) > 65535 or block[0] > self.most_threads:
            return INVALID_VALUE
        run, count = KERNELS.get(text, (None, 0))
        assert run is not None or self.run_unknown, text
        addresses = (ctypes.c_uint64 * count).from_address(parameters) if count else ()
        words = [ctypes.c_uint64.from_address(each).value for each in addresses]
        assert tuple(block[1:]) == (1, 1)
        told = (block[0], shared, stream, words, context - 100, threading.get_ident())
        self.launches.append(Launch(entry, tuple(grid), *told))
        if run is not None and not self.capturing:
            run(words, tuple(grid))
        return 0

    # Streams, events, memory.

    def cuStreamIsCapturing(self, stream: int, out: int) -> None:
        _int(out, self.capturing)

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self.waits.append((stream or 0, self.of(event)[0]))

    def cuStreamSynchronize(self, stream: int) -> None:
        pass

    def cuEventCreate(self, out: int, flags: int) -> None:
        _word(out, self._new([]))

    def cuEventRecord(self, event: int, stream: int) -> None:
        self.of(event).append(stream or 0)

    def cuEventDestroy_v2(self, event: int) -> None:
        self.of(event)

    def cuMemAlloc_v2(self, out: int, size: int) -> None:
        held = ctypes.create_string_buffer(size + 256)
        address = ctypes.addressof(held) + -ctypes.addressof(held) % 256
        _word(out, address)
        self._new(held)
        self.owners[address] = self._stack()[-1] - 100

    def cuMemFree_v2(self, address: int) -> None:
        pass

    def cuMemcpyDtoH_v2(self, host: int, device: int, size: int) -> None:
        ctypes.memmove(host, device, size)

    def cuMemcpyHtoD_v2(self, device: int, host: int, size: int) -> None:
        ctypes.memmove(device, host, size)

    def cuMemGetAddressRange_v2(self, low: int, size: int, address: int) -> int:
        return INVALID_VALUE

    def cuPointerGetAttribute(self, out: int, number: int, address: int) -> int | None:
        assert number == 9
        if address in self.unknown:
            return INVALID_VALUE
        _int(out, self.owners.get(address, 0))
        return None

    # Assembling: the comment of a fake kernel's PTX becomes its code.

    def cuLinkCreate_v2(self, count: int, options: int, values: int, out: int) -> None:
        numbers = (ctypes.c_int * count).from_address(options)
        logs = dict(zip(numbers, (ctypes.c_uint64 * count).from_address(values)))
        _word(out, self._new({"logs": logs}))

    def cuLinkAddData_v2(self, state: int, kind: int, data: int, size: int, *rest: Any) -> int:
        text = ctypes.string_at(data, size - 1).decode()
        held = self.of(state)
        if "// fake: " not in text:
            said = b"ptxas application ptx input, line 3; error   : Not a name"
            ctypes.memmove(held["logs"][5], said + b"\0", len(said) + 1)
            return 218
        said = f"Used 17 registers\n {self.spilled} bytes spill stores, 0 bytes spill loads\0"
        ctypes.memmove(held["logs"][3], said.encode(), len(said))
        name = text.partition("// fake: ")[2].partition("\n")[0]
        held["image"] = ctypes.create_string_buffer(_MARK + name.encode())
        return 0

    def cuLinkComplete(self, state: int, out: int, size: int) -> None:
        image = self.of(state)["image"]
        _word(out, ctypes.addressof(image))
        _word(size, len(image))

    def cuLinkDestroy(self, state: int) -> None:
        self.of(state)

    def cuGetErrorName(self, status: int, out: int) -> int:
        return self._text(out, f"CUDA_ERROR_{status}")

    def cuGetErrorString(self, status: int, out: int) -> int:
        return self._text(out, f"the text of {status}")

    def _text(self, out: int, text: str) -> int:
        held = ctypes.create_string_buffer(text.encode())
        self._new(held)
        _word(out, ctypes.addressof(held))
        return 0


for _name in PROTOTYPES:
    assert hasattr(FakeDriver, _name), _name


def _int(at: int, value: int) -> None:
    ctypes.c_int.from_address(at).value = value


def _word(at: int, value: int) -> None:
    ctypes.c_uint64.from_address(at).value = value


# ---- code ----------------------------------------------------------------------------------------


class FakeBackend:
    """``compile_kernel`` for the fake driver: the CPU's code behind PTX that only has a name."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.compiled: list[str] = []
        self.shared = 0

    def compile_kernel(
        self, function: Any, target: Any, *, num_warps: int, disjoint: bool, times: Any = None
    ) -> nvptx.GpuKernel:
        """As ``backends.nvptx.compile.compile_kernel``."""
        from tritium.backends.cpu import compile_kernel

        made = compile_kernel(function, llvm.host_target(), disjoint=disjoint, times=None)
        code = llvm.link(made.object, [made.entry])
        name = f"{function.name} {len(KERNELS)} {disjoint}"
        self.compiled.append(name)
        run, scratch = ENTRY_TYPE(code.address(made.entry)), made.scratch_bytes
        KERNELS[name] = functools.partial(_run, (run, code), scratch), len(function.params)
        return nvptx.GpuKernel(
            ptx=f".version 8.0\n.entry {function.name}()\n.reqntid 128\n{{\n// fake: {name}\n}}\n",
            entry=function.name,
            num_warps=num_warps,
            shared_bytes=self.shared,
            alias_pairs=made.alias_pairs,
            written=made.written,
            llvm_ir="; fake",
        )


def _run(held: tuple[Any, Any], scratch: int, words: list[int], grid: tuple[int, int, int]) -> None:
    buffer = ctypes.create_string_buffer(struct.pack(f"<{len(words) + 3}Q", *words, *grid))
    memory = ctypes.create_string_buffer(scratch + 64)
    start = ctypes.addressof(memory)
    held[0](ctypes.addressof(buffer), 0, grid[0] * grid[1] * grid[2], start + -start % 64)


# ---- in the place of the real ones ---------------------------------------------------------------


class Fake(NamedTuple):
    """What ``installed`` gives."""

    driver: FakeDriver
    backend: FakeBackend


@contextlib.contextmanager
def installed(count: int = 2) -> Iterator[Fake]:
    """A ``with`` block in which the driver is a fake one, and tensors are on its first device."""
    driver = FakeDriver(count)
    fake = Fake(driver, FakeBackend(driver))
    before = library.use(Library(driver.symbols))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvptx, "compile_kernel", fake.backend.compile_kernel)
        for tool in ("ptxas", "nvdisasm"):
            patch.setenv(f"TRITIUM_{tool.upper()}_PATH", f"/no/{tool}")
        if "torch" in sys.modules:
            _on_gpu(driver, patch)
        try:
            yield fake
            assert driver.problems == []
        finally:
            library.use(before)
            placement.set_default_device(None)


def _on_gpu(driver: FakeDriver, patch: pytest.MonkeyPatch) -> None:
    """Have torch's tensors pass for those of a GPU."""
    import torch

    patch.setitem(arrays._DEVICES, torch.device("cpu"), "cuda:0")
    real_device = arrays._device
    patch.setattr(
        arrays,
        "_device",
        lambda value: "cuda:0" if isinstance(value, torch.Tensor) else real_device(value),
    )
    cuda = types.SimpleNamespace(
        current_device=lambda: 0, is_current_stream_capturing=lambda: bool(driver.capturing)
    )
    raw = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: driver.stream)
    stand_in = types.SimpleNamespace(cuda=cuda, _C=raw)
    patch.setattr(devices, "torch_with_cuda", lambda: stand_in)
    if not hostcode.SUPPORTED or objects.torch_fields() is None:
        return
    shared = process()
    shared.look_for_torch()
    real = shared.get(layout.Process.EXCHANGE)
    exchange = _exchange(real)
    stream = _work_stream(driver)
    fields = objects.torch_fields()
    assert fields is not None
    patch.setitem(objects._found, "torch", fields._replace(exchange=_address(exchange)))
    patch.setattr(objects, "work_stream", lambda: _address(stream))
    driver.kept = (exchange, stream)  # type: ignore[attr-defined]
    for field, value in (
        (layout.Process.EXCHANGE, _address(exchange)),
        (layout.Process.LAUNCH_KERNEL, 0),
    ):
        _put(patch, shared, field, value)


class _Words(dict[int, int]):
    """The fields of ``Process``, for a patch that is undone."""

    def __init__(self, shared: Any) -> None:
        super().__init__()
        self.shared = shared

    def get(self, field: int, default: Any = None) -> int:
        return int(self.shared.get(field))

    def __setitem__(self, field: int, value: int) -> None:
        self.shared.put(field, value)


def _put(patch: pytest.MonkeyPatch, shared: Any, field: int, value: int) -> None:
    patch.setitem(_Words(shared), field, value)


def _address(function: Any) -> int:
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


def _exchange(real: int) -> Any:
    """torch's function that describes a tensor, but for the device that it tells."""
    kind = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
    ask = kind(real)

    def describe(tensor: Any, out: int) -> int:
        status = ask(tensor, out)
        device = (ctypes.c_int32 * 2).from_address(out + layout.DLTensor.DEVICE)
        device[0], device[1] = layout.DLTensor.CUDA, 0
        return int(status)

    return kind(describe)


def _work_stream(driver: FakeDriver) -> Any:
    kinds = (ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)

    def current(kind: int, ordinal: int, out: int) -> int:
        assert kind == layout.DLTensor.CUDA
        _word(out, driver.stream)
        return 0

    return ctypes.CFUNCTYPE(*kinds)(current)
