"""``jit``: the decorator that makes a kernel of a Python function."""

from __future__ import annotations

import collections
import importlib
import inspect
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

from tritium import knobs
from tritium.diagnostics import error
from tritium.frontend import specialize
from tritium.frontend.fingerprint import fingerprint, is_missing, lookup
from tritium.ir.digest import digest
from tritium.ops.callable import DeviceFunction
from tritium.ops.constexpr import constexpr
from tritium.ops.source import capture

from . import callsite, fastcall, launch, targets
from .arrays import MockTensor
from .binder import Binder, Bound, GridLike
from .compiled import CompiledKernel
from .fastcall import Fast

T = TypeVar("T")
Hook = Callable[..., object]


class KernelInterface(Generic[T]):
    """What can be launched as ``kernel[grid](...)``; subclasses override ``run``."""

    run: Callable[..., Any]

    def __getitem__(self, grid: GridLike) -> Callable[..., Any]:
        """The kernel over a grid: a tuple of one to three extents, an integer, or a function.

        The function gets the bound arguments by name.
        """
        return lambda *args, **keywords: self.run(*args, grid=grid, warmup=False, **keywords)

    def warmup(self, /, *args: Any, grid: GridLike, **keywords: Any) -> Any:
        """Compile without running; arrays may be given as their dtypes."""
        given = map(MockTensor.wrap_dtype, args)
        named = {name: MockTensor.wrap_dtype(value) for name, value in keywords.items()}
        return self.run(*given, grid=grid, warmup=True, **named)


class KernelParam:
    """A parameter of a kernel, as Triton describes it."""

    def __init__(self, num: int, rule: specialize.Parameter, declared: inspect.Parameter) -> None:
        self.num = num
        self.name = rule.name
        self.annotation = _annotation_text(declared.annotation)
        self.annotation_type = "" if rule.fixed is None else rule.fixed.mnemonic
        self.is_constexpr = rule.is_constexpr
        self.is_const = rule.is_const
        self.default = declared.default
        self.do_not_specialize = not rule.on_value
        self.do_not_specialize_on_alignment = not rule.on_alignment

    @property
    def has_default(self) -> bool:
        """Whether it may be left out."""
        return self.default is not inspect.Parameter.empty


class _Interpreted(KernelInterface[Any]):
    """A kernel whose launches run in the interpreter."""

    def __init__(self, kernel: JITFunction) -> None:
        self.kernel = kernel

    def __call__(self, *args: Any, **keywords: Any) -> None:
        """Raises E0516: the grid is missing."""
        raise error("E0516", name=f"{self.kernel.__name__}.interpret")

    def run(self, /, *args: Any, grid: GridLike, warmup: bool = False, **keywords: Any) -> None:
        """Run every program as Python."""
        with callsite.placing(self.kernel.arg_names):
            launch.run(self.kernel, args, keywords, grid, warmup, interpret=True)


class _Kernels(dict[Any, CompiledKernel]):
    """The compiled code of a kernel. What is taken out of it isn't launched any more."""

    def __init__(self, kernel: JITFunction) -> None:
        super().__init__()
        self._kernel = weakref.ref(kernel)

    def _forget(self) -> None:
        kernel = self._kernel()
        if kernel is not None:
            kernel.forget_launches()

    def __setitem__(self, key: Any, value: CompiledKernel) -> None:
        if key in self:
            self._forget()
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._forget()

    def pop(self, *args: Any) -> Any:
        self._forget()
        return super().pop(*args)

    def popitem(self) -> tuple[Any, CompiledKernel]:
        self._forget()
        return super().popitem()

    def clear(self) -> None:
        super().clear()
        self._forget()

    def update(self, *args: Any, **keywords: Any) -> None:
        super().update(*args, **keywords)
        self._forget()


class _Watched(type):
    """The type of ``JITFunction``: native launches notice functions that are put in its place."""

    def __setattr__(cls, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        knobs.advance()

    def __delattr__(cls, name: str) -> None:
        super().__delattr__(name)
        knobs.advance()


class JITFunction(DeviceFunction, KernelInterface[Any], metaclass=_Watched):
    """A kernel: launched with ``kernel[grid](...)``, and callable from other kernels.

    ``frozen_globals``: raise where a global that was compiled in has changed, as Triton does,
    instead of compiling again.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        version: Any = None,
        do_not_specialize: Sequence[str | int] | None = None,
        do_not_specialize_on_alignment: Sequence[str | int] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(fn, noinline=bool(noinline))
        for name, parameter in self.python_signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                raise error("E0110", construct=f"the parameter **{name}", hint="name each keyword")
        self.version = version
        self.do_not_specialize = tuple(do_not_specialize or ())
        self.do_not_specialize_on_alignment = tuple(do_not_specialize_on_alignment or ())
        self.debug = debug
        self.repr = repr
        self.launch_metadata = launch_metadata
        self.frozen_globals = False
        self.kernel = None
        self.module = fn.__module__
        self.pre_run_hooks: list[Hook] = []
        self.kernels: dict[Any, CompiledKernel] = _Kernels(self)
        """Compiled code by specialisation and options."""
        self._binder: Binder | None = None
        self._placing = callsite.placing(self.arg_names)
        self._fast = Fast(self, self._launch)
        self._launches: Callable[[GridLike], Callable[..., Any]] = self._by_python

    # ---- launching -------------------------------------------------------------------------------

    def run(
        self, /, *args: Any, grid: GridLike, warmup: bool = False, **keywords: Any
    ) -> CompiledKernel | None:
        """Launch over ``grid``, or only compile; returns the compiled kernel.

        Returns None when interpreted, and when ``knobs.runtime.jit_cache_hook`` forbids to compile.
        """
        with self._placing:
            return launch.run(self, args, keywords, grid, warmup)

    def warmup(
        self, /, *args: Any, grid: GridLike, target: Any = None, **keywords: Any
    ) -> CompiledKernel | None:
        """Compile, and load for the device of the arguments, without running.

        Arrays may be given as their dtypes. ``target`` compiles for a GPU that need not be there:
        ``"sm_90a"``, or a ``GPUTarget`` of Triton's.
        """
        given = list(map(MockTensor.wrap_dtype, args))
        named = {name: MockTensor.wrap_dtype(value) for name, value in keywords.items()}
        if target is not None and "target" in self.python_signature.parameters:
            named["target"], target = MockTensor.wrap_dtype(target), None
        if target is None:
            return self.run(*given, grid=grid, warmup=True, **named)
        with self._placing:
            arch = targets.arch_of(target, self.__name__)
            return launch.run(self, given, named, grid, True, arch=arch)

    def __getitem__(self, grid: GridLike) -> Callable[..., Any]:
        """As ``KernelInterface`` says; native code once there is some for this kernel."""
        return self._launches(grid)

    def _by_python(self, grid: GridLike) -> Callable[..., Any]:
        def launch(*args: Any, **keywords: Any) -> Any:
            launches = self._launches
            if launches != self._by_python:
                # Native code has come to be since the grid was given.
                return launches(grid)(*args, **keywords)
            return self.run(*args, grid=grid, warmup=False, **keywords)

        return launch

    def _launch(self, grid: GridLike, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        return self.run(*args, grid=grid, warmup=False, **keywords)

    def launched(
        self,
        bound: Bound,
        compiled: CompiledKernel,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> None:
        """Note that a launch by Python went well: native code may do the next one like it."""
        fast = self._fast
        written = fast.worth_writing(bound.device) and fast.write(bound, compiled, args, keywords)
        if written and self._launches == self._by_python and self._is_usual():
            self._launches = fast.maker()

    def _is_usual(self) -> bool:
        """Whether nobody has put functions of his own in the place of those of this class."""
        kind = type(self)
        return (
            kind.run is JITFunction.run
            and kind.__getitem__ is JITFunction.__getitem__
            and "run" not in vars(self)
        )

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if not name.startswith("_"):
            self.forget_launches()

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.forget_launches()

    def forget_launches(self) -> None:
        """Have Python look at the next launches, whatever is known of earlier ones."""
        if "_launches" in vars(self):
            self._fast.forget()
            self._launches = self._by_python

    @property
    def interpret(self) -> KernelInterface[Any]:
        """``kernel.interpret[grid](...)`` runs in the interpreter."""
        return _Interpreted(self)

    @property
    def binder(self) -> Binder:
        """Binds the arguments of launches. Raises E0206 for contradictory declarations."""
        if self._binder is None:
            rules = specialize.parameters(
                self, self.do_not_specialize, self.do_not_specialize_on_alignment
            )
            self._binder = Binder(self, rules, self.debug)
        return self._binder

    def add_pre_run_hook(self, hook: Hook) -> None:
        """Have ``hook(*args, **keywords)`` called before every launch and warm-up."""
        self.pre_run_hooks.append(hook)

    # ---- Triton's attributes ---------------------------------------------------------------------

    @property
    def arg_names(self) -> list[str]:
        """The parameters' names in order."""
        return list(self.python_signature.parameters)

    @property
    def signature(self) -> inspect.Signature:
        """Of the Python function."""
        return self.python_signature

    @property
    def params(self) -> list[KernelParam]:
        """The parameters with their annotations and rules."""
        declared = self.python_signature.parameters
        return [
            KernelParam(place, rule, declared[name])
            for place, (name, rule) in enumerate(self.binder.rules.items())
        ]

    @property
    def constexprs(self) -> list[int]:
        """The positions of the ``tl.constexpr`` parameters."""
        return [place for place, name in enumerate(self.arg_names) if name in self.constexpr_names]

    @property
    def src(self) -> str:
        """The function's text from ``def`` on. Raises E0118 where it can't be found."""
        return capture(self.fn).text

    @property
    def raw_src(self) -> list[str]:
        """The lines of its definition as they stand in the file, decorators included."""
        return list(capture(self.fn).lines)

    @property
    def starting_line_number(self) -> int:
        """The line of the file where ``raw_src`` begins."""
        return capture(self.fn).first_line

    @property
    def cache_key(self) -> str:
        """A hash of the text of the kernel and of all that it calls, and of its constants."""
        return _cache_key(self, ())

    @property
    def hash(self) -> str:
        """``cache_key``."""
        return self.cache_key

    @property
    def used_global_vals(self) -> dict[tuple[str, int], tuple[Any, dict[str, Any]]]:
        """What compilations read of the globals: by name and identity, value and dictionary."""
        return {
            (name, id(reads.function.fn.__globals__)): (value, reads.function.fn.__globals__)
            for kernel in self.kernels.values()
            for reads in kernel.dependencies.functions.values()
            for name, value in reads.names.items()
            if not is_missing(value)
        }

    @property
    def device_caches(self) -> dict[int, tuple[Any, ...]]:
        """By device: compiled kernels, key strings, target, backend, binder; all are one device."""
        from .driver import driver

        entry: tuple[Any, ...] = (
            self.kernels,
            {},
            driver.active.get_current_target(),
            None,
            self.binder,
        )
        return collections.defaultdict(lambda: entry, {0: entry})

    def create_binder(self) -> Binder:
        """``binder``."""
        return self.binder

    def parse(self) -> Any:
        """The syntax tree of the function's definition, in a module."""
        import ast

        return ast.Module([capture(self.fn).tree], [])

    # ---- pickling: by module and name ------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.__module__, self.__qualname__)

    def __deepcopy__(self, memo: dict[int, Any]) -> JITFunction:
        return self


_RUN = JITFunction.run, JITFunction.__getitem__, JITFunction._launch
fastcall.CONDITIONS.append(
    lambda: (JITFunction.run, JITFunction.__getitem__, JITFunction._launch) == _RUN
)


def _annotation_text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return (
        annotation
        if isinstance(annotation, str)
        else getattr(annotation, "__name__", str(annotation))
    )


def _find(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    while not isinstance(found, JITFunction):
        # Under decorators such as autotune.
        found = found.fn
    return found


def _cache_key(function: DeviceFunction, above: tuple[DeviceFunction, ...]) -> str:
    source = capture(function.fn)
    key = digest(f"{source.text}\0{source.first_line}".encode())
    code = function.fn.__code__
    for name in sorted({*code.co_names, *code.co_freevars}):
        value = lookup(function, name)
        if is_missing(value):
            continue
        if isinstance(value, DeviceFunction) and value not in (function, *above):
            key.update(f"\0{name}={_cache_key(value, (function, *above))}".encode())
        elif isinstance(value, constexpr):
            key.update(f"\0{name}={fingerprint(value)}".encode())
    return key.hexdigest()


@overload
def jit(fn: Callable[..., Any], /) -> JITFunction: ...
@overload
def jit(
    *,
    version: Any = None,
    repr: Callable[[Any], str] | None = None,
    launch_metadata: Callable[..., dict[str, Any]] | None = None,
    do_not_specialize: Sequence[str | int] | None = None,
    do_not_specialize_on_alignment: Sequence[str | int] | None = None,
    debug: bool | None = None,
    noinline: bool | None = None,
) -> Callable[[Callable[..., Any]], JITFunction]: ...
def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorator, bare or with options: make a kernel of a function.

    ``do_not_specialize`` and ``do_not_specialize_on_alignment`` list parameters, by name or
    position, whose values (or only their being multiples of 16) are not compiled in. ``repr`` names
    a specialisation, ``launch_metadata`` describes a launch for hooks, ``debug`` keeps assertions,
    ``noinline`` asks not to inline the function where others call it, ``version`` is a mark of the
    user's. Raises E0204 for anything but a function, E0110 for a ``**keywords`` parameter.
    """
    if fn is None:
        return lambda function: jit(function, **options)
    if isinstance(fn, JITFunction):
        fn = fn.fn
    if isinstance(fn, KernelInterface):
        kind = type(fn).__name__
        hint = "put the other decorators above @jit"
        raise error("E0204", op="jit", expected="a function", got=f"{kind} object", hint=hint)
    return JITFunction(fn, **options)


def parameter_names(kernel: Any, decorator: str) -> list[str]:
    """Of the kernel that a decorator is put on. Raises E0204 for anything but a kernel."""
    if not isinstance(kernel, KernelInterface):
        kind = f"{type(kernel).__name__} object"
        hint = f"put @{decorator} above @jit"
        raise error("E0204", op=decorator, expected="a kernel", got=kind, hint=hint)
    names: list[str] = kernel.arg_names  # type: ignore[attr-defined]
    return names
