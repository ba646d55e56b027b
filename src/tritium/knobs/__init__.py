"""Every option of Tritium, typed, with the environment variables that set it.

A knob's value is what Python assigned to it, else its environment variable (looked up at each read,
so a change of ``os.environ`` takes effect at once), else its default. Triton's names of variables
are aliases: where both are set, Tritium's wins; an empty variable counts as not set. A bad value
raises ``KnobError`` when the knob is read, never at import.

>>> from tritium import knobs
>>> with knobs.cpu.scope():
...     knobs.cpu.num_threads = 1
...     knobs.cpu.num_threads
1
"""

from __future__ import annotations

import abc
import contextlib
import math
import operator
import os
import re
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, Generic, NamedTuple, SupportsIndex, TypeVar, overload

from tritium.diagnostics import ArgumentValueError, fault
from tritium.diagnostics.errors import fill

from .cgroup import cgroup_cpus
from .hooks import HookChain as HookChain

T = TypeVar("T")
AnyGroup = TypeVar("AnyGroup", bound="Group")

# Whether assigning a knob sets its environment variables too, so that child processes inherit it.
propagate_env = True


class Environment:
    """The type of ``env``: assigned to a knob, it takes back what Python assigned before."""

    def __repr__(self) -> str:
        return "knobs.env"


env = Environment()

_MISSING: Any = object()

# What was assigned in the scopes that this context (thread or asynchronous task) has entered.
SCOPES: ContextVar[Mapping[Group, dict[str, Any]] | None] = ContextVar("scopes", default=None)

# Counts the assignments, in scopes too: native code that relies on knobs looks at it.
REVISION = array("Q", [0])

# Assigning a knob and setting its environment variables is one step.
_assigning = threading.RLock()


class KnobError(ArgumentValueError):
    """A knob was given a value that it can't take (E0801).

    ``name`` is the environment variable or the knob at fault, ``value`` what it was given,
    ``expected`` what it takes.
    """

    def __init__(self, name: str, value: object, expected: str, hint: str = "") -> None:
        values = {"name": name, "value": value, "expected": expected, "hint": hint}
        message, advice = fill("E0801", values)
        super().__init__("E0801", message, help=advice)
        self.name = name
        self.value = value
        self.expected = expected


def encoded(name: str) -> Any:
    """``name`` as the dictionary behind ``os.environ`` holds it."""
    return os.environ.encodekey(name) if hasattr(os.environ, "encodekey") else name


def _variable(name: str, key: Any) -> str | None:
    """The environment variable ``name``, None when it is empty or not set.

    Reads the dictionary behind ``os.environ``: its own ``get`` catches an exception for each
    variable that isn't set, which takes longer than the rest of a launch.
    """
    try:
        raw = os.environ._data.get(key)  # type: ignore[attr-defined]
    except AttributeError:
        # Somebody put a plain dictionary in its place.
        return os.environ.get(name, "").strip() or None
    return os.environ.decodevalue(raw).strip() or None if raw else None


# ---- the kinds of knobs --------------------------------------------------------------------------


class Knob(abc.ABC, Generic[T]):
    """One option: a descriptor of its group.

    ``environment`` lists its variables, the first that is set counts; ``default`` is a value, or a
    function of the group, and then ``default_text`` says what it gives.
    """

    type_name: str
    expected: str
    name: str

    def __init__(
        self,
        doc: str,
        *environment: str,
        default: T | Callable[[Any], T],
        default_text: str = "",
    ) -> None:
        self.doc = doc
        self.environment = environment
        self.default = default
        self.default_text = default_text or _shown(default)
        self._keys = tuple((name, encoded(name)) for name in environment)

    def __set_name__(self, owner: type[Group], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, group: None, owner: type[Group]) -> Knob[T]: ...
    @overload
    def __get__(self, group: Group, owner: type[Group]) -> T: ...
    def __get__(self, group: Group | None, owner: type[Group]) -> Knob[T] | T:
        if group is None:
            return self
        value: T = group.assigned(self.name)
        return self.fallback(group) if value is _MISSING else value

    def __set__(self, group: Group, value: T | Environment) -> None:
        if isinstance(value, Environment):
            self.__delete__(group)
            return
        try:
            converted = None if value is None and self.default is None else self.convert(value)
        except ValueError:
            name = f"knobs.{group.name}.{self.name}"
            raise KnobError(name, value, self.expected) from None
        group.assign(self, converted)

    def __delete__(self, group: Group) -> None:
        group.revert(self)

    def fallback(self, group: Group) -> T:
        """The value where Python assigned none. Raises ``KnobError`` for a bad variable."""
        for name, key in self._keys:
            raw = _variable(name, key)
            if raw is not None:
                try:
                    return self.convert(raw)
                except ValueError:
                    hint = f"the variable sets knobs.{group.name}.{self.name}: correct or unset it"
                    raise KnobError(name, raw, self.expected, hint) from None
        return self.default(group) if callable(self.default) else self.default

    @abc.abstractmethod
    def convert(self, value: object) -> T:
        """The value for what Python gave, or a variable as a string; ``ValueError`` if it can't."""

    def variable(self, group: Group) -> str | None:
        """The variable that a read without assigned value would use."""
        return next((name for name, key in self._keys if _variable(name, key) is not None), None)

    def as_variable(self, value: T) -> str | None:
        """The variable's text for ``value``, None to unset it."""
        return None if value is None else str(value)


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


class Flag(Knob[Any]):
    """A boolean."""

    type_name = "boolean"
    expected = "a boolean (1, true, on, yes, y, or 0, false, off, no, n)"
    _WORDS: ClassVar[dict[str, bool]] = {
        **dict.fromkeys(("1", "true", "on", "yes", "y"), True),
        **dict.fromkeys(("0", "false", "off", "no", "n"), False),
    }

    def convert(self, value: object) -> bool:
        word = value.lower() if isinstance(value, str) else str(value).lower()
        if (known := self._WORDS.get(word)) is None:
            raise ValueError(value)
        return known

    def as_variable(self, value: bool | None) -> str | None:
        return None if value is None else str(int(value))


class Count(Knob[int]):
    """A whole number from 1 to ``most``."""

    type_name = "number"

    def __init__(self, doc: str, *environment: str, most: int, **rest: Any) -> None:
        super().__init__(doc, *environment, **rest)
        self.most = most
        self.expected = f"a whole number from 1 to {most}"

    def convert(self, value: object) -> int:
        if isinstance(value, str):
            number = int(value)
        elif isinstance(value, SupportsIndex) and not isinstance(value, bool):
            number = operator.index(value)
        else:
            raise ValueError(value)
        if not 1 <= number <= self.most:
            raise ValueError(value)
        return number


class Text(Knob[Any]):
    """A string; ``pattern``, if given, must match all of it."""

    type_name = "text"
    expected = "text"

    def __init__(
        self, doc: str, *environment: str, pattern: str = "", expected: str = "", **rest: Any
    ):
        super().__init__(doc, *environment, **rest)
        self.pattern = re.compile(pattern or ".*", re.DOTALL)
        self.expected = expected or type(self).expected

    def convert(self, value: object) -> str:
        if not isinstance(value, str) or not self.pattern.fullmatch(value):
            raise ValueError(value)
        return value


class Choice(Knob[Any]):
    """One of a few words, in any case."""

    type_name = "choice"

    def __init__(self, doc: str, *environment: str, choices: tuple[str, ...], **rest: Any) -> None:
        super().__init__(doc, *environment, **rest)
        self.choices = choices
        self.expected = f"one of {', '.join(choices)}"

    def convert(self, value: object) -> str:
        if not isinstance(value, str) or value.lower() not in self.choices:
            raise ValueError(value)
        return value.lower()


class Folder(Knob[Any]):
    """A folder's path; ``~`` is the home."""

    type_name = "folder"
    expected = "a path"

    def convert(self, value: object) -> str:
        path = os.fspath(value) if isinstance(value, os.PathLike) else value
        if not isinstance(path, str) or not path:
            raise ValueError(value)
        return os.path.expanduser(path)


class File(Folder):
    """A file's path; ``~`` is the home."""

    type_name = "file"


class Hooks(Knob[Any]):
    """A ``HookChain``; assigning a function makes a chain of it alone, None empties it."""

    type_name = "hooks"
    expected = "a HookChain, a function or None"

    def __init__(self, doc: str, reversed: bool = False) -> None:
        super().__init__(doc, default=lambda group: self.convert(None), default_text="empty")
        self.reversed = reversed

    def convert(self, value: object) -> HookChain:
        if isinstance(value, HookChain):
            return value
        chain = HookChain(self.reversed)
        if value is not None:
            if not callable(value):
                raise ValueError(value)
            chain.add(value)
        return chain

    def __delete__(self, group: Group) -> None:
        group.assign(self, self.convert(None))


class Function(Knob[Any]):
    """A function, or None."""

    type_name = "function"
    expected = "a function or None"

    def convert(self, value: object) -> Callable[..., Any]:
        if not callable(value):
            raise ValueError(value)
        return value


# ---- groups --------------------------------------------------------------------------------------


class Group:
    """Knobs that belong together, as attributes."""

    __slots__ = ("_assigned", "_inherited")
    name: ClassVar[str]

    def __init__(self) -> None:
        self._assigned: dict[str, Any] = {}
        # The environment variables as they were before an assignment set them, and what it set.
        self._inherited: dict[str, tuple[dict[str, str | None], str | None]] = {}
        for name, knob in self.descriptors().items():
            if isinstance(knob, Hooks):
                self._assigned[name] = knob.convert(None)

    @classmethod
    def descriptors(cls) -> dict[str, Knob[Any]]:
        """The knobs themselves, by name."""
        return {name: knob for name, knob in vars(cls).items() if isinstance(knob, Knob)}

    @property
    def knobs(self) -> dict[str, Any]:
        """The values of all knobs, by name."""
        return {name: getattr(self, name) for name in self.descriptors()}

    def source(self, name: str) -> str:
        """Where the value of a knob comes from: ``assigned``, a variable's name or ``default``."""
        if self.assigned(name) is not _MISSING:
            return "assigned"
        return self.descriptors()[name].variable(self) or "default"

    def copy(self: AnyGroup) -> AnyGroup:
        """A group with the same values assigned, which changes on its own."""
        made = type(self)()
        for name in self.descriptors():
            value = self.assigned(name)
            if value is not _MISSING:
                made._assigned[name] = value.copy() if isinstance(value, HookChain) else value
        return made

    def reset(self: AnyGroup) -> AnyGroup:
        """Take back all that Python assigned; inside a scope until its end only."""
        for knob in self.descriptors().values():
            knob.__delete__(self)
        return self

    @contextlib.contextmanager
    def scope(self: AnyGroup) -> Iterator[AnyGroup]:
        """A ``with`` block at whose end the group and its variables are as they were.

        What is assigned inside holds in this thread (or asynchronous task) only, and isn't written
        to the environment; ``contextvars.copy_context().run`` takes it along to another thread.
        """
        outer = SCOPES.get() or {}
        layer = dict(outer.get(self, ()))
        names: list[str] = []
        for name, knob in self.descriptors().items():
            names += knob.environment
            if isinstance(knob, Hooks):
                layer[name] = getattr(self, name).copy()
        variables = {name: os.environ.get(name) for name in names}
        token = SCOPES.set({**outer, self: layer})
        try:
            yield self
        finally:
            SCOPES.reset(token)
            with _assigning:
                _restore(variables)

    def assigned(self, name: str) -> Any:
        """What Python assigned to a knob, in the innermost scope that did."""
        scopes = SCOPES.get()
        if scopes is not None and self in scopes:
            value = scopes[self].get(name, _MISSING)
            if value is not _MISSING:
                return _MISSING if value is env else value
        return self._assigned.get(name, _MISSING)

    def assign(self, knob: Knob[Any], value: Any) -> None:
        """Give a knob a converted value, in the innermost scope."""
        scopes = SCOPES.get()
        if scopes is not None and self in scopes:
            scopes[self][knob.name] = value
            advance()
            return
        with _assigning:
            self._assigned[knob.name] = value
            if propagate_env and knob.environment:
                text = knob.as_variable(value)
                before, _ = self._inherited.get(knob.name, (None, None))
                if before is None:
                    before = {name: os.environ.get(name) for name in knob.environment}
                self._inherited[knob.name] = before, text
                _restore(dict.fromkeys(knob.environment, text))
            advance()

    def revert(self, knob: Knob[Any]) -> None:
        """Take back what was assigned; its variables too, unless somebody set them since."""
        scopes = SCOPES.get()
        if scopes is not None and self in scopes:
            scopes[self][knob.name] = env
            advance()
            return
        with _assigning:
            self._assigned.pop(knob.name, None)
            before, text = self._inherited.pop(knob.name, ({}, None))
            _restore({name: old for name, old in before.items() if os.environ.get(name) == text})
            advance()


def advance() -> None:
    """Say that an assignment has been made, after it was: who looked before looks again."""
    with _assigning:
        REVISION[0] += 1


class Snapshot(Generic[T]):
    """``make(*values)`` of some knobs, made again only where one of them may have changed.

    A change is one of the environment, of ``os.environ`` itself, or made by assignment. Defaults
    that are computed aren't computed again for anything else.
    """

    def __init__(self, make: Callable[..., T], *members: tuple[Group, str]) -> None:
        self._make = make
        self._members = members
        self.keys = tuple(
            encoded(name)
            for group, member in members
            for name in group.descriptors()[member].environment
        )
        """Of the variables in the dictionary behind ``os.environ``."""
        self._names = frozenset(self.keys)
        self._last: tuple[int, Any, Any, Sequence[Any], T] | None = None

    def __call__(self) -> T:
        """The values now. Raises ``KnobError`` for a bad variable."""
        variables = getattr(os.environ, "_data", None)
        last = self._last
        if (
            last is not None
            and last[0] == REVISION[0]
            and last[1] is SCOPES.get()
            and last[2] is variables
            and last[3] == self._texts(variables)
        ):
            return last[4]
        # What is compared is read before the values: a change meanwhile shows.
        revision, scopes = REVISION[0], SCOPES.get()
        texts = None if variables is None else self._texts(variables)
        made = self._make(*(getattr(group, member) for group, member in self._members))
        self._last = None if texts is None else (revision, scopes, variables, texts, made)
        return made

    def _texts(self, variables: Any) -> Sequence[Any]:
        """What the variables say; most often none of them is set."""
        if variables.keys().isdisjoint(self._names):
            return ()
        return list(map(variables.get, self.keys))


def _restore(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        elif os.environ.get(name) != value:
            os.environ[name] = value


# ---- defaults that are computed ------------------------------------------------------------------


def _home(group: Group) -> str:
    return os.path.expanduser("~")


def _place(group: Cache, below_home: str, below_cache: str) -> str:
    """``below_home`` of a home that was named, else ``below_cache`` of the user's caches."""
    if group.source("home_dir") != "default":
        return os.path.join(group.home_dir, ".tritium", below_home)
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(caches):
        caches = os.path.join(group.home_dir, ".cache")
    return os.path.join(caches, below_cache)


def available_cpus() -> int:
    """How many CPUs this process may use: its affinity, limited by its cgroup's quota."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, math.ceil(min(count, cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup"))))


# ---- the options ---------------------------------------------------------------------------------


class Cache(Group):
    """Where files are kept."""

    __slots__ = ()
    name = "cache"

    home_dir: Knob[str] = Folder(
        "The folder below which the folders of this group stand, in .tritium.",
        "TRITIUM_HOME",
        "TRITON_HOME",
        default=_home,
        default_text="the user's home; the other folders then stand in their caches",
    )
    dir: Knob[str] = Folder(
        "Compiled kernels.",
        "TRITIUM_CACHE_DIR",
        "TRITON_CACHE_DIR",
        default=lambda group: _place(group, "cache", "tritium"),
        default_text=".tritium/cache in home_dir if that is set, else tritium in XDG_CACHE_HOME "
        "or ~/.cache",
    )
    dump_dir: Knob[str] = Folder(
        "What compilation.dump_ir writes.",
        "TRITIUM_DUMP_DIR",
        "TRITON_DUMP_DIR",
        default=lambda group: _place(group, "dump", "tritium-dump"),
        default_text=".tritium/dump in home_dir if that is set, else tritium-dump in "
        "XDG_CACHE_HOME or ~/.cache",
    )


class Compilation(Group):
    """How kernels are compiled."""

    __slots__ = ()
    name = "compilation"

    always_compile: Knob[bool] = Flag(
        "Compile anew rather than look in the cache.",
        "TRITIUM_ALWAYS_COMPILE",
        "TRITON_ALWAYS_COMPILE",
        default=False,
    )
    dump_ir: Knob[bool] = Flag(
        "Write each stage of each compiled kernel to cache.dump_dir.",
        "TRITIUM_DUMP_IR",
        "TRITON_KERNEL_DUMP",
        default=False,
    )
    time_passes: Knob[bool] = Flag(
        "Print on stderr how long each phase of a compilation took.",
        "TRITIUM_TIME_PASSES",
        default=False,
    )
    verify: Knob[bool] = Flag("Verify the IR after each pass.", "TRITIUM_VERIFY", default=False)
    front_end_debugging: Knob[bool] = Flag(
        "Let exceptions of the front end through as they are, with Tritium's own frames.",
        "TRITIUM_FRONT_END_DEBUGGING",
        "TRITON_FRONT_END_DEBUGGING",
        default=False,
    )
    allow_non_constexpr_globals: Knob[bool] = Flag(
        "Let kernels read plain globals, as constants of the compilation.",
        "TRITIUM_ALLOW_NON_CONSTEXPR_GLOBALS",
        "TRITON_ALLOW_NON_CONSTEXPR_GLOBALS",
        default=False,
    )
    listener: Knob[Callable[..., object] | None] = Function(
        "Called after each compilation with the keywords src, metadata, metadata_group, times and "
        "cache_hit.",
        default=None,
    )


class Autotuning(Group):
    """How kernels are tuned."""

    __slots__ = ()
    name = "autotuning"

    print: Knob[bool] = Flag(
        "Print what is measured and what is chosen.",
        "TRITIUM_PRINT_AUTOTUNING",
        "TRITON_PRINT_AUTOTUNING",
        default=False,
    )
    cache: Knob[bool] = Flag(
        "Keep what is chosen for later processes, whatever a kernel's cache_results says; of no "
        "effect yet.",
        "TRITIUM_CACHE_AUTOTUNING",
        "TRITON_CACHE_AUTOTUNING",
        default=False,
    )
    listener: Knob[Callable[..., object] | None] = Function(
        "Called after each tuning with the keywords fn, key, best_config, configs_timings, "
        "duration and cache_hit.",
        default=None,
    )


class Runtime(Group):
    """How kernels are launched."""

    __slots__ = ()
    name = "runtime"

    interpret: Knob[bool] = Flag(
        "Run kernels step by step as Python; read at each launch.",
        "TRITIUM_INTERPRET",
        "TRITON_INTERPRET",
        default=False,
    )
    debug: Knob[bool] = Flag(
        "Compile the assertions of kernels, as if each were launched with debug=True.",
        "TRITIUM_DEBUG",
        "TRITON_DEBUG",
        default=False,
    )
    report_dir: Knob[str | None] = Folder(
        "Where the report of a fault of Tritium itself is written.",
        "TRITIUM_REPORT_DIR",
        default=None,
        default_text="the folder of temporary files",
    )
    launch_enter_hook: Knob[HookChain] = Hooks("Called with the kernel's metadata before a launch.")
    launch_exit_hook: Knob[HookChain] = Hooks(
        "Called with the kernel's metadata after a launch, last added first.", reversed=True
    )
    jit_cache_hook: Knob[Callable[..., object] | None] = Function(
        "Called before a compilation with the keywords key, repr, fn, compile, is_manual_warmup "
        "and already_compiled; if it returns something true, neither that nor the launch takes "
        "place.",
        default=None,
    )
    jit_post_compile_hook: Knob[Callable[..., object] | None] = Function(
        "Called after a compilation with the keywords of jit_cache_hook.", default=None
    )


class Language(Group):
    """What kernels mean where they don't say it."""

    __slots__ = ()
    name = "language"

    fp32_default: Knob[str | None] = Choice(
        "The input_precision of dot on fp32 where the kernel gives none.",
        "TRITIUM_F32_DEFAULT",
        "TRITON_F32_DEFAULT",
        choices=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
        default=None,
    )
    default_fp_fusion: Knob[bool | None] = Flag(
        "Whether a * b + c may be rounded once, where the launch has no enable_fp_fusion.",
        "TRITIUM_DEFAULT_FP_FUSION",
        "TRITON_DEFAULT_FP_FUSION",
        default=None,
        default_text="on on GPUs, off on the CPU and in the interpreter",
    )


class Cpu(Group):
    """The CPU backend."""

    __slots__ = ()
    name = "cpu"

    num_threads: Knob[int] = Count(
        "How many threads run the programs of a grid.",
        "TRITIUM_NUM_THREADS",
        most=4096,
        default=lambda group: available_cpus(),
        default_text="the CPUs this process may use (affinity, cgroup quota)",
    )
    target: Knob[str] = Text(
        "The CPU to compile for, by LLVM's name (x86-64-v3, znver4, neoverse-v1, ...); native is "
        "this machine's.",
        "TRITIUM_CPU",
        pattern=r"[A-Za-z0-9][\w.+-]*",
        expected="the name of a CPU",
        default="native",
    )
    features: Knob[str] = Text(
        "What the CPU has or lacks beyond that: +name or -name in LLVM's words, with commas.",
        "TRITIUM_CPU_FEATURES",
        pattern=r"(?:[+-][\w.-]+(?:,[+-][\w.-]+)*)?",
        expected="a list such as +avx2,-avx512f",
        default="",
        default_text="nothing",
    )


class Nvidia(Group):
    """The backend for NVIDIA's GPUs; read when a kernel is compiled for one."""

    __slots__ = ()
    name = "nvidia"

    ptxas: Knob[str | None] = File(
        "The assembler of PTX.",
        "TRITIUM_PTXAS_PATH",
        "TRITON_PTXAS_PATH",
        default=None,
        default_text="ptxas on PATH, in CUDA_HOME, in CUDA_PATH, in /usr/local/cuda or of the "
        "package nvidia-cuda-nvcc; else the driver assembles",
    )
    nvdisasm: Knob[str | None] = File(
        "The disassembler behind asm['sass'].",
        "TRITIUM_NVDISASM_PATH",
        "TRITON_NVDISASM_PATH",
        default=None,
        default_text="nvdisasm in the same places",
    )
    libcuda: Knob[str | None] = File(
        "The library of the driver.",
        "TRITIUM_LIBCUDA_PATH",
        "TRITON_LIBCUDA_PATH",
        default=None,
        default_text="libcuda.so.1, as the system finds it",
    )
    arch: Knob[str | None] = Text(
        "The architecture to compile for, by NVIDIA's name (sm_90a), whatever the device is.",
        "TRITIUM_CUDA_ARCH",
        "TRITON_OVERRIDE_ARCH",
        pattern=r"sm_?\d{2,3}[af]?",
        expected="an architecture such as sm_90a",
        default=None,
        default_text="the device's own",
    )


cache = Cache()
compilation = Compilation()
autotuning = Autotuning()
runtime = Runtime()
language = Language()
cpu = Cpu()
nvidia = Nvidia()

GROUPS: tuple[Group, ...] = (cache, compilation, autotuning, runtime, language, cpu, nvidia)

fault.use_directory(lambda: runtime.report_dir)


class Row(NamedTuple):
    """What documentation and ``tritium doctor`` say about one knob."""

    name: str
    environment: tuple[str, ...]
    type: str
    default: str
    doc: str


def describe() -> list[Row]:
    """A row for each knob, in the order of this file."""
    return [
        Row(f"{group.name}.{name}", knob.environment, knob.type_name, knob.default_text, knob.doc)
        for group in GROUPS
        for name, knob in group.descriptors().items()
    ]
