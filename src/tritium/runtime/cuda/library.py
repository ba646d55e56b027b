"""The functions of NVIDIA's driver (libcuda), by ctypes.

    cuda = library.load()                 # raises Unavailable
    cuda.cuInit(0)                        # raises CudaFailure unless it succeeds

Each function is looked up when it is first used, has the types of the CUDA Driver API, and raises
instead of returning a status.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Mapping
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any

from tritium import knobs

OUT_OF_MEMORY = 2
NOT_INITIALIZED = 3
NO_DEVICE = 100
INVALID_CONTEXT = 201
LAUNCH_OUT_OF_RESOURCES = 701

_OUT = c_void_p  # the address of a result
_HANDLE = c_void_p
_ADDRESS = ctypes.c_uint64

PROTOTYPES: Mapping[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (_OUT,),
    "cuDeviceGetCount": (_OUT,),
    "cuDeviceGet": (_OUT, c_int),
    "cuDeviceGetName": (_OUT, c_int, c_int),
    "cuDeviceGetAttribute": (_OUT, c_int, c_int),
    "cuDeviceTotalMem_v2": (_OUT, c_int),
    "cuDevicePrimaryCtxRetain": (_OUT, c_int),
    "cuCtxGetCurrent": (_OUT,),
    "cuCtxPushCurrent_v2": (_HANDLE,),
    "cuCtxPopCurrent_v2": (_OUT,),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (_OUT, c_char_p),
    "cuModuleUnload": (_HANDLE,),
    "cuModuleGetFunction": (_OUT, _HANDLE, c_char_p),
    "cuFuncGetAttribute": (_OUT, c_int, _HANDLE),
    "cuFuncSetAttribute": (_HANDLE, c_int, c_int),
    "cuLaunchKernel": (_HANDLE, *(c_uint,) * 7, _HANDLE, c_void_p, c_void_p),
    "cuLaunchKernelEx": (c_void_p, _HANDLE, c_void_p, c_void_p),
    "cuStreamIsCapturing": (_HANDLE, _OUT),
    "cuStreamWaitEvent": (_HANDLE, _HANDLE, c_uint),
    "cuStreamSynchronize": (_HANDLE,),
    "cuEventCreate": (_OUT, c_uint),
    "cuEventRecord": (_HANDLE, _HANDLE),
    "cuEventDestroy_v2": (_HANDLE,),
    "cuMemAlloc_v2": (_OUT, c_size_t),
    "cuMemFree_v2": (_ADDRESS,),
    "cuMemcpyDtoH_v2": (c_void_p, _ADDRESS, c_size_t),
    "cuMemcpyHtoD_v2": (_ADDRESS, c_void_p, c_size_t),
    "cuMemGetAddressRange_v2": (_OUT, _OUT, _ADDRESS),
    "cuPointerGetAttribute": (_OUT, c_int, _ADDRESS),
    "cuLinkCreate_v2": (c_uint, c_void_p, c_void_p, _OUT),
    "cuLinkAddData_v2": (
        *(_HANDLE, c_int, c_char_p, c_size_t, c_char_p, c_uint, c_void_p, c_void_p),
    ),
    "cuLinkComplete": (_HANDLE, _OUT, _OUT),
    "cuLinkDestroy": (_HANDLE,),
    "cuGetErrorName": (c_int, _OUT),
    "cuGetErrorString": (c_int, _OUT),
}
"""The parameters of each function; all return a status."""


class Unavailable(Exception):
    """Why no device can be used at all: a sentence, and what to do about it."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


class CudaFailure(Exception):
    """A function of the driver failed: its name, the status, the status's name and text."""

    def __init__(self, function: str, status: int, name: str, text: str) -> None:
        super().__init__(f"{function}: {name}: {text}")
        self.function = function
        self.status = status
        self.name = name
        self.text = text


class Library:
    """The functions as attributes, checked; ``raw`` are the functions of ctypes themselves.

    ``symbols`` has an attribute for each function: a ``ctypes.CDLL``, or what stands for it.
    """

    def __init__(self, symbols: Any) -> None:
        self._symbols = symbols

    def raw(self, name: str) -> Any:
        """A function that returns its status. Raises ``Unavailable`` where the driver lacks it."""
        try:
            function = getattr(self._symbols, name)
        except AttributeError:
            reason = f"the NVIDIA driver has no {name}: it is too old"
            raise Unavailable(reason, "install a newer driver") from None
        function.argtypes = PROTOTYPES[name]
        function.restype = c_int
        return function

    def address(self, name: str) -> int:
        """Where a function is, for native code."""
        found = ctypes.cast(self.raw(name), c_void_p).value
        assert found is not None
        return found

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in PROTOTYPES:
            raise AttributeError(name)
        function = self.raw(name)

        def checked(*args: Any) -> None:
            status = function(*args)
            if status:
                raise self.failure(name, status)

        setattr(self, name, checked)
        return checked

    def failure(self, function: str, status: int) -> CudaFailure:
        """What a status says."""
        name, text = (self._told(each, status) for each in ("cuGetErrorName", "cuGetErrorString"))
        return CudaFailure(function, status, name or f"CUDA error {status}", text or "no text")

    def _told(self, function: str, status: int) -> str:
        found = c_char_p()
        if self.raw(function)(status, ctypes.byref(found)) or found.value is None:
            return ""
        return found.value.decode(errors="replace")

    def integer(self, function: str, *args: Any) -> int:
        """The int that a function writes to its first parameter."""
        found = c_int(0)
        getattr(self, function)(ctypes.byref(found), *args)
        return found.value

    def integer_last(self, function: str, *args: Any) -> int:
        """The int that a function writes to its last parameter."""
        found = c_int(0)
        getattr(self, function)(*args, ctypes.byref(found))
        return found.value

    def handle(self, function: str, *args: Any) -> int:
        """The pointer, or the number of bytes, that a function writes to its first parameter."""
        found = ctypes.c_uint64(0)
        getattr(self, function)(ctypes.byref(found), *args)
        return found.value


# ---- loading -------------------------------------------------------------------------------------

_lock = threading.RLock()
_loaded: Library | None = None
_unavailable: tuple[str, str] | None = None
_owner = 0
"""The process that initialised the driver: a forked child can't use it."""


def file_name() -> str:
    """What the driver's library is loaded as."""
    if knobs.nvidia.libcuda:
        return str(knobs.nvidia.libcuda)
    return "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def load() -> Library:
    """The driver, initialised. Raises ``Unavailable`` with the reason where there is none."""
    global _loaded, _unavailable, _owner
    if _loaded is not None:
        if is_forked():
            raise forked()
        return _loaded
    with _lock:
        if _unavailable is not None:
            raise Unavailable(*_unavailable)
        if _loaded is None:
            try:
                found = _open()
            except Unavailable as problem:
                _unavailable = problem.reason, problem.hint
                raise
            _owner = os.getpid()
            _loaded = found
        return _loaded


def _open() -> Library:
    name = file_name()
    try:
        found = Library(ctypes.CDLL(name))
    except OSError:
        raise Unavailable(
            f"there is no NVIDIA driver ({name}) on this machine",
            "install the driver, or put the arrays on the CPU",
        ) from None
    start(found)
    return found


def start(cuda: Library) -> None:
    """Initialise the driver. Raises ``Unavailable``."""
    status = cuda.raw("cuInit")(0)
    if status == NOT_INITIALIZED:
        # What a process gets whose parent had initialised it.
        raise forked()
    if status == NO_DEVICE:
        raise Unavailable("the NVIDIA driver finds no GPU", "see nvidia-smi, CUDA_VISIBLE_DEVICES")
    if status:
        problem = cuda.failure("cuInit", status)
        reason = f"the NVIDIA driver doesn't start: {problem.name}: {problem.text}"
        raise Unavailable(reason, "see nvidia-smi; after an update of the driver, restart")


def is_forked() -> bool:
    """Whether this process was forked from one that used the driver."""
    return _loaded is not None and _owner != os.getpid()


def forked() -> Unavailable:
    """Why a forked process has no device."""
    return Unavailable(
        "CUDA was in use when this process was forked, and can't be used after that",
        'start it by spawn: multiprocessing.set_start_method("spawn")',
    )


def use(cuda: Library | None) -> Library | None:
    """Take another library for the driver (None: look for it anew); returns the one before."""
    global _loaded, _unavailable, _owner
    with _lock:
        before = _loaded
        _loaded, _unavailable = cuda, None
        _owner = os.getpid()
        return before


if hasattr(os, "register_at_fork"):
    # Another thread may have held it, which the child doesn't have.
    os.register_at_fork(after_in_child=_lock._at_fork_reinit)  # type: ignore[attr-defined]
