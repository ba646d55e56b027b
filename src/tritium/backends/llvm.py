"""Everything that touches llvmlite: targets, optimisation, machine code, linking into the process.

    target = host_target()                      # or host_target("x86-64-v3"), cross_target(...)
    module = optimise(text, target)             # parse, verify, a short pass list
    library = link(emit_object(module), ["f"])  # bytes that can be cached on disk; linked by LLJIT
    library.address("f")                        # valid while `library` is alive

llvmlite is imported at the first use. LLVM's own calls are serialised by llvmlite's lock. Every
function that compiles takes a dict `times` to which it adds the seconds of its phases ("parse",
"optimise", "codegen", "link").
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import itertools
import os
import re
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from .features import CPUS, cpu_features, missing_features

Times = dict[str, float]

# What generated code may take from the C library: LLVM makes such calls of its own accord.
LIBRARY_FUNCTIONS = frozenset(
    {
        *("memcpy", "memmove", "memset", "fma", "fmaf", "fmod", "fmodf"),
        *("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "pow"),
        *(
            "ceil",
            "floor",
            "trunc",
            "rint",
            "roundeven",
            "ceilf",
            "floorf",
            "truncf",
            "roundevenf",
            "sincos",
        ),
    }
)


class LLVMError(RuntimeError):
    """LLVM refused what a code generator wrote: a fault of Tritium, never of the user.

    `ir` is the module's text, empty where there is none (linking).
    """

    def __init__(self, message: str, ir: str = "") -> None:
        super().__init__(message)
        self.ir = ir


class Target(NamedTuple):
    """What code is generated for.

    `features` is LLVM's string ("+avx2,-avx512f"), `feature_set` what the CPU is known to have,
    named as LLVM names it. `jit`: the code runs in this process.
    """

    triple: str
    cpu: str
    features: str
    feature_set: frozenset[str]
    jit: bool

    def has(self, *names: str) -> bool:
        """Whether the CPU has all these features ("avx512f", "fma", "f16c", "amx-bf16", ...)."""
        return self.feature_set.issuperset(names)

    @property
    def architecture(self) -> str:
        """The triple's first part: "x86_64", "aarch64", "nvptx64"."""
        return _architecture(self.triple)

    @property
    def is_gpu(self) -> bool:
        """Whether the code is PTX."""
        return self.architecture == "nvptx64"

    @property
    def vector_bits(self) -> int:
        """The width of the vectors to generate: 512, 256 or 128."""
        if self.has("avx512f", "avx512bw", "avx512dq", "avx512vl"):
            return 512
        return 256 if self.has("avx2") else 128

    @property
    def attributes(self) -> tuple[str, ...]:
        """Function attributes of this target, for `Module.function`."""
        if self.architecture != "x86_64":
            return ("nounwind",)
        return ("nounwind", f'"prefer-vector-width"="{self.vector_bits}"')

    @property
    def key(self) -> str:
        """Everything of the target that the machine code depends on, for a cache key."""
        llvm = _llvm()
        version = ".".join(map(str, llvm.llvm_version_info))
        passes = _DEVICE_PASSES if self.is_gpu else _PASSES
        return f"{self.triple} {self.cpu} {self.features} llvm {version} {passes}"


def _architecture(triple: str) -> str:
    return triple.split("-", 1)[0]


class CompiledModule:
    """A module in LLVM's memory and its target; `str()` is its LLVM IR."""

    def __init__(self, reference: Any, context: Any, target: Target) -> None:
        self.reference = reference
        self.target = target
        # The module must go before its context, which the garbage collector doesn't promise.
        weakref.finalize(self, _dispose, reference, context).atexit = False

    def __str__(self) -> str:
        return str(self.reference)


def _dispose(*references: Any) -> None:
    for reference in references:
        reference.close()


class Library:
    """Machine code linked into the process. Dropping the last reference unmaps it."""

    def __init__(self, tracker: Any, names: Sequence[str]) -> None:
        self._tracker = tracker
        self.names = tuple(names)

    def address(self, name: str) -> int:
        """The address of an exported function or global, valid while the library lives."""
        return int(self._tracker[name])


# ---- initialisation ------------------------------------------------------------------------------

_lock = threading.RLock()
_state: dict[str, Any] = {}
_counter = itertools.count()
_PASSES = "sroa instcombine simplifycfg"
_DEVICE_PASSES = "instcombine simplifycfg adce"


def _llvm() -> Any:
    """`llvmlite.binding`, with the process's own target initialised."""
    if "llvm" not in _state:
        with _lock:
            from llvmlite import binding

            binding.initialize_native_target()
            binding.initialize_native_asmprinter()
            binding.initialize_native_asmparser()
            _state["llvm"] = binding
    return _state["llvm"]


def _initialize_all() -> None:
    with _lock:
        if "all" not in _state:
            llvm = _llvm()
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
            # Pointers to shared memory are 32 bits wide: half the registers and no widening.
            llvm.set_option("", "-nvptx-short-ptr")
            _state["all"] = True


@cache
def installed() -> str:
    """The version of llvmlite, which decides that of LLVM; nothing is loaded."""
    found = importlib.util.find_spec("llvmlite")
    folders = [] if found is None else list(found.submodule_search_locations or ())
    for folder in folders:
        # The file that its setup writes.
        with contextlib.suppress(OSError), open(os.path.join(folder, "_version.py")) as stream:
            if said := _version_in(stream.read()):
                return said
    import llvmlite

    return str(llvmlite.__version__)


def _version_in(text: str) -> str:
    """What the text of Python says is called version; without a pattern, which takes longer."""
    for part in text.split("version")[1:]:
        rest = part.lstrip("'\"").lstrip()
        value = rest[1:].lstrip() if rest[:1] in (":", "=") else ""
        if value[:1] in ("'", '"'):
            return value[1:].partition(value[0])[0]
    return ""


def llvm_version() -> tuple[int, ...]:
    """The version of LLVM that generates code."""
    return tuple(_llvm().llvm_version_info)


# ---- targets -------------------------------------------------------------------------------------


def _signed(features: str) -> tuple[set[str], set[str]]:
    """The features a string adds and removes."""
    marks = [mark for mark in features.split(",") if mark]
    return (
        {mark[1:] for mark in marks if mark[0] == "+"},
        {mark[1:] for mark in marks if mark[0] == "-"},
    )


@cache
def _host_cpu() -> tuple[str, frozenset[str], str]:
    """This machine's CPU: its name, its features, and these as LLVM's string."""
    llvm = _llvm()
    features = llvm.get_host_cpu_features()
    present = frozenset(name for name, has in features.items() if has)
    return llvm.get_host_cpu_name(), present, features.flatten()


@cache
def host_target(cpu: str | None = None, features: str | None = None) -> Target:
    """The target of this process.

    `cpu` names another CPU whose code this machine can run ("x86-64-v3"), `features` adds to or
    removes from it ("-avx512f"). Raises ValueError if the machine lacks a feature of them, and for
    a CPU that is not listed: LLVM ends the process where it doesn't know one.
    """
    host_name, host, host_text = _host_cpu()
    extra, removed = _signed(features or "")
    triple = _llvm().get_process_triple()
    if cpu is None or cpu == "native":
        name, base = host_name, host
        text = ",".join(filter(None, (host_text, features)))
    else:
        if cpu not in CPUS:
            raise ValueError(f"name one of {', '.join(CPUS)}, or native")
        name, base, text = cpu, cpu_features(cpu, _architecture(triple)), features or ""
    wanted = (base | extra) - removed
    if host and (absent := sorted(wanted - host)):
        raise ValueError(f"this machine can't run code for {name}: no {', '.join(absent)}")
    return Target(triple, name, text, frozenset(wanted), jit=True)


@cache
def cross_target(triple: str, cpu: str, features: str = "") -> Target:
    """A target whose code is emitted here and runs elsewhere: a triple and a CPU of it."""
    _initialize_all()
    extra, removed = _signed(features)
    wanted = (cpu_features(cpu, _architecture(triple)) | extra) - removed
    return Target(triple, cpu, features, frozenset(wanted), jit=False)


@cache
def _machine(target: Target) -> Any:
    with _lock:
        llvm = _llvm()
        return llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu,
            features=target.features,
            opt=2,
            reloc="default" if target.is_gpu else "pic",
            codemodel="default" if target.is_gpu else "small",
            jit=target.jit,
        )


# ---- compiling -----------------------------------------------------------------------------------


@contextmanager
def timed(times: Times | None, phase: str) -> Iterator[None]:
    """Adds the seconds of a ``with`` block to those of a phase."""
    start = time.perf_counter()
    yield
    if times is not None:
        times[phase] = times.get(phase, 0.0) + time.perf_counter() - start


_UNSUPPORTED_ROUNDING = (
    r"fptrunc [^\n]* to (<\d+ x )?bfloat|fptrunc [^\n]*double[^\n]* to (<\d+ x )?half"
)


def check_features(text: str, target: Target) -> None:
    """Refuse instructions the target lacks: LLVM's code generator would abort the process.

    Raises LLVMError.
    """
    if absent := missing_features(text, target.feature_set):
        names = "; ".join(f"{name} needs {' '.join(needs)}" for name, needs in absent.items())
        raise LLVMError(f"{target.cpu} lacks features: {names}", text)
    if target.architecture == "x86_64" and (found := re.search(_UNSUPPORTED_ROUNDING, text)):
        raise LLVMError(f"x86 has no instruction for `{found.group()}`", text)


def parse(text: str, target: Target, times: Times | None = None) -> CompiledModule:
    """Parse and verify a module for a target, without optimising it. Raises LLVMError."""
    check_features(text, target)
    llvm = _llvm()
    machine = _machine(target)
    with timed(times, "parse"):
        try:
            context = llvm.create_context()
            module = CompiledModule(llvm.parse_assembly(text, context), context, target)
            module.reference.triple = target.triple
            module.reference.data_layout = str(machine.target_data)
            module.reference.verify()
        except RuntimeError as error:
            raise LLVMError(str(error), text) from error
    return module


def optimise(text: str, target: Target, times: Times | None = None) -> CompiledModule:
    """Parse, verify and optimise a module with the short pass list. Raises LLVMError.

    The code generators shape their IR themselves, so vectorising and unrolling stay off.
    """
    module = parse(text, target, times)
    llvm = _llvm()
    with timed(times, "optimise"):
        options = llvm.create_pipeline_tuning_options(2)
        builder = llvm.create_pass_builder(_machine(target), options)
        manager = llvm.create_new_module_pass_manager()
        if "alwaysinline" in text:
            manager.add_always_inliner_pass()
            manager.add_global_dead_code_eliminate_pass()
        if target.is_gpu:
            _add_device_passes(manager)
        else:
            manager.add_sroa_pass()
            manager.add_instruction_combine_pass()
            manager.add_simplify_cfg_pass()
        manager.run(module.reference, builder)
    return module


def _add_device_passes(manager: Any) -> None:
    """For code that was written a register at a time, index arithmetic and all.

    The code generator starts by looking for common subexpressions itself.
    """
    manager.add_instruction_combine_pass()
    manager.add_simplify_cfg_pass()
    manager.add_aggressive_dce_pass()


def emit_object(module: CompiledModule, times: Times | None = None) -> bytes:
    """The module's machine code as an object file. Raises LLVMError."""
    with timed(times, "codegen"):
        try:
            return bytes(_machine(module.target).emit_object(module.reference))
        except RuntimeError as error:
            raise LLVMError(str(error), str(module)) from error


def assembly(module: CompiledModule) -> str:
    """The module's machine code as assembly text (PTX for nvptx). Raises LLVMError."""
    try:
        return str(_machine(module.target).emit_assembly(module.reference))
    except RuntimeError as error:
        raise LLVMError(str(error), str(module)) from error


# ---- linking -------------------------------------------------------------------------------------


def _c_libraries() -> Iterator[Any]:
    if sys.platform == "win32":
        yield ctypes.CDLL("ucrtbase")
        return
    yield ctypes.CDLL(None)
    # Looking for a library runs programs; the process itself nearly always has all that is needed.
    from ctypes.util import find_library

    for name in (find_library("m"), find_library("c")):
        if name:
            yield ctypes.CDLL(name)


@cache
def library_function(name: str) -> int | None:
    """The address of one of LIBRARY_FUNCTIONS in this process, None if the platform lacks it."""
    for library in _c_libraries():
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


def _jit() -> Any:
    with _lock:
        if "jit" not in _state:
            llvm = _llvm()
            machine = _machine(host_target())
            _state["jit"] = llvm.create_lljit_compiler(machine, suppress_errors=True)
        return _state["jit"]


def keep_linked() -> None:
    """Leave the code of living libraries mapped until the process has ended.

    Without that it goes while the interpreter shuts down, when threads may still run in it.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_jit()))


def link(
    image: bytes,
    exports: Sequence[str],
    imports: Mapping[str, int] | None = None,
    times: Times | None = None,
) -> Library:
    """Link an object file into the process.

    `exports` are the names whose addresses are wanted, `imports` addresses of symbols the object
    uses beside LIBRARY_FUNCTIONS. Raises LLVMError for a symbol that nothing provides.
    """
    with timed(times, "link"):
        builder = _llvm().JITLibraryBuilder().add_object_img(image)
        for name in exports:
            builder.export_symbol(name)
        for name, address in (imports or {}).items():
            builder.import_symbol(name, address)
        for name in LIBRARY_FUNCTIONS.difference(imports or (), exports):
            # A symbol table may store one name as the tail of another: only its end is sure.
            if name.encode() + b"\0" in image and (found := library_function(name)) is not None:
                builder.import_symbol(name, found)
        try:
            tracker = builder.link(_jit(), f"tile.{next(_counter)}")
        except RuntimeError as error:
            raise LLVMError(f"linking {', '.join(exports)}: {error}") from error
    return Library(tracker, exports)


def compile_and_link(
    text: str,
    target: Target,
    exports: Sequence[str],
    imports: Mapping[str, int] | None = None,
    times: Times | None = None,
) -> Library:
    """From LLVM IR to callable code in one step, for code that isn't cached."""
    return link(emit_object(optimise(text, target, times), times), exports, imports, times)
