"""Scripts that hard-code the device "cuda", on the CPU.

Once the script has imported torch, a torch function mode replaces the device in every call, and
``torch.cuda`` answers as for one device. Modes belong to a thread: the one that imports torch.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

from .after_import import after_import

_CUDA = re.compile(r"cuda(:\d+)?")
CAPABILITY = (8, 0)
"""What the device claims to be, for scripts that choose their code by it."""
NAME = "CPU (Tritium)"


_mapped = False


def map_cuda_to_cpu() -> None:
    """Let "cuda" mean the CPU for the script's torch, imported already or later."""
    global _mapped
    _mapped = True
    after_import("torch", _patch)


def mapped() -> bool:
    """Whether "cuda" means the CPU, or will once torch is imported."""
    return _mapped


def _patch(torch: Any) -> None:
    if getattr(torch.cuda, "is_tritium", False):
        return
    for name, answer in _answers(torch).items():
        setattr(torch.cuda, name, answer)
    torch.Generator = _generator(torch)
    _mode(torch).__enter__()


def _generator(torch: Any) -> Any:
    """torch's class of random generators, which function modes don't reach."""
    real: Any = torch.Generator

    kind: Any = type(real)

    class Kind(kind):  # type: ignore[misc]
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

    class Generator(real, metaclass=Kind):  # type: ignore[misc]
        """A generator of random numbers; "cuda" is the CPU."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, _on_cpu(torch, device))

    return Generator


def _mode(torch: Any) -> Any:
    from_module: Any = sys.modules["torch.overrides"]
    tensor = torch.Tensor
    answers: dict[Any, Callable[..., Any]] = {
        tensor.cuda: lambda self, *args, **keywords: self,
        tensor.pin_memory: lambda self, *args, **keywords: self,
        tensor.is_cuda.__get__: lambda self, *args: True,
    }

    class CudaIsCpu(from_module.TorchFunctionMode):  # type: ignore[misc]
        """Replaces the device "cuda" by "cpu" in the arguments of torch's functions."""

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            answer = answers.get(func)
            if answer is not None:
                return answer(*args, **(kwargs or {}))
            given = {name: _on_cpu(torch, value) for name, value in (kwargs or {}).items()}
            if func is torch.device and len(args) > 1:
                # torch.device("cuda", 1)
                args = args[:1]
            return func(*(_on_cpu(torch, value) for value in args), **given)

    return CudaIsCpu()


def _on_cpu(torch: Any, value: Any) -> Any:
    if isinstance(value, str):
        return "cpu" if _CUDA.fullmatch(value) else value
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == "cuda" else value
    return value


class _Stream:
    """A stream of work that is always done."""

    cuda_stream = 0

    def __init__(self, *args: Any, **keywords: Any) -> None:
        pass

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *problem: object) -> None:
        pass

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Whether everything is done: yes."""
        return True

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> _Event:
        """An event of this moment."""
        made = event or _Event()
        made.record()
        return made


class _Event:
    """A moment; launches on the CPU return when they are done, so its time is the wall clock's."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.at = 0.0

    def record(self, stream: Any = None) -> None:
        """Note the time."""
        self.at = time.perf_counter()

    def elapsed_time(self, end: _Event) -> float:
        """Milliseconds from this event to another."""
        return (end.at - self.at) * 1e3

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Whether it has happened: yes."""
        return True


@contextlib.contextmanager
def _within(*args: Any, **keywords: Any) -> Iterator[None]:
    yield


def _memory() -> tuple[int, int]:
    """Free and total memory of the machine, in bytes."""
    page = os.sysconf("SC_PAGE_SIZE")
    return page * os.sysconf("SC_AVPHYS_PAGES"), page * os.sysconf("SC_PHYS_PAGES")


def _properties(device: Any = None) -> Any:
    from tritium import knobs

    return types.SimpleNamespace(
        name=NAME,
        major=CAPABILITY[0],
        minor=CAPABILITY[1],
        total_memory=_memory()[1],
        multi_processor_count=knobs.cpu.num_threads,
        warp_size=32,
        max_threads_per_multi_processor=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=101376,
        shared_memory_per_multiprocessor=102400,
        L2_cache_size=1 << 20,
        is_integrated=True,
        gcnArchName="",
    )


def _answers(torch: Any) -> dict[str, Any]:
    """What ``torch.cuda`` says of its one device."""

    def nothing(*args: Any, **keywords: Any) -> None:
        pass

    def zero(*args: Any, **keywords: Any) -> int:
        return 0

    stream = _Stream()
    return {
        "is_tritium": True,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_bf16_supported": lambda *args, **keywords: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: NAME,
        "get_device_capability": lambda device=None: CAPABILITY,
        "get_device_properties": _properties,
        "mem_get_info": lambda device=None: _memory(),
        # torch.manual_seed seeds the CPU's generator itself, and calls these.
        "manual_seed": torch.default_generator.manual_seed,
        "manual_seed_all": torch.default_generator.manual_seed,
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "Stream": _Stream,
        "Event": _Event,
        "stream": _within,
        "device": _within,
        **dict.fromkeys(
            (
                *("init", "synchronize", "set_device", "set_stream", "empty_cache", "ipc_collect"),
                *("reset_peak_memory_stats", "reset_max_memory_allocated", "seed", "seed_all"),
            ),
            nothing,
        ),
        **dict.fromkeys(
            (
                *("memory_allocated", "max_memory_allocated", "memory_reserved"),
                *("max_memory_reserved",),
            ),
            zero,
        ),
    }
