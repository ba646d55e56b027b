"""``autotune``: a kernel together with the configurations it may be launched with.

A launch with new values of the key runs the kernel with one configuration after the other, times
each, and keeps the fastest for that key. With one configuration (given so, or left by pruning)
there is nothing to time. The interpreter uses the first one.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tritium import knobs
from tritium.bench import do_bench as measure
from tritium.bench import waiting_for
from tritium.diagnostics import error
from tritium.ir.dtypes import DType
from tritium.runtime import callsite, targets
from tritium.runtime.errors import (
    AutotunerError,
    CompileTimeAssertionFailure,
    OutOfResources,
    PTXASError,
)
from tritium.runtime.jit import JITFunction, KernelInterface, parameter_names

from .config import Config
from .restore import Hooks

WARMUP, REP = 5.0, 25.0
"""Milliseconds for which a configuration is run untimed and timed, where nothing is said."""
QUANTILES = (0.5, 0.2, 0.8)
UNUSABLE = (OutOfResources, CompileTimeAssertionFailure, PTXASError)
"""What says of a configuration that this kernel can't have it here."""


class Autotuner(KernelInterface[Any]):
    """A kernel with its configurations; ``best_config`` is the one of the last launch.

    Threads may launch it at once: it is tuned for one key at a time, and what is tuned already
    doesn't wait for that. ``nargs`` are the positional arguments by name of the launch that began
    last, for hooks to look at; None after a launch.

    ``cache`` holds the best one by key. Of the last measuring ``configs_timings`` holds the median,
    the 20 % and the 80 % quantile in ms by configuration, ``bench_time`` the seconds of it all.
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Iterable[Config] | None,
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Callable[..., object] | None = None,
        post_hook: Callable[..., object] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
    ) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.configs = list(configs or ()) or [Config({})]
        self.keys = list(key)
        self.reset_to_zero = list(reset_to_zero or ())
        self.restore_value = list(restore_value or ())
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.pre_hook = pre_hook
        self.post_hook = post_hook
        self.num_warmups = warmup
        self.num_reps = rep
        self.use_cuda_graph = use_cuda_graph
        self.do_bench = do_bench
        self.cache_results = cache_results
        pruning = prune_configs_by or {}
        self.perf_model = pruning.get("perf_model")
        self.configs_top_k = pruning.get("top_k", 1.0)
        self.early_config_prune = pruning.get("early_config_prune")
        self.cache: dict[Any, Config] = {}
        self.configs_timings: dict[Config, Any] = {}
        self.bench_time: float | None = None
        self.best_config: Config | None = None
        self.nargs: dict[str, Any] | None = None
        self._tuning = threading.RLock()
        self._check_names()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_tuning"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state, _tuning=threading.RLock())

    def _check_names(self) -> None:
        for what in ("key", "reset_to_zero", "restore_value"):
            names = self.keys if what == "key" else getattr(self, what)
            for name in names:
                if name not in self.arg_names:
                    known = ", ".join(self.arg_names)
                    raise error(
                        "E0515",
                        kernel=self.base_fn.__name__,
                        name=what,
                        text=f"{name} is not a parameter",
                        hint=f"parameters: {known}",
                        argument=what,
                    )

    @property
    def base_fn(self) -> JITFunction:
        """The kernel under all decorators."""
        fn = self.fn
        while not isinstance(fn, JITFunction):
            fn = fn.fn
        return fn

    # ---- launching -------------------------------------------------------------------------------

    def run(self, /, *args: Any, **keywords: Any) -> Any:
        """Launch with the best configuration for these arguments, found first where they are new.

        Raises ``AutotunerError`` where pruning leaves none. What stops a single configuration that
        the device can't run (``UNUSABLE``) stops the launch where it stops all of them.
        """
        with callsite.placing(self.arg_names):
            return self._run(self.fn, knobs.runtime.interpret, args, keywords)

    @property
    def interpret(self) -> KernelInterface[Any]:
        """``kernel.interpret[grid](...)`` runs the first configuration in the interpreter."""
        return _Interpreted(self)

    def _run(self, fn: Any, interpreted: bool, args: Sequence[Any], keywords: Any) -> Any:
        nargs = self.nargs = dict(zip(self.arg_names, args))
        try:
            config = self.best_config = self._choose(interpreted, nargs, args, keywords)
            values = self._values(config, keywords)
            if config.pre_hook is not None:
                config.pre_hook({**nargs, **keywords, **values})
            return fn.run(*args, **keywords, **values)
        finally:
            self.nargs = None

    def _values(self, config: Config, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """What a configuration adds to a launch. Raises E0505 for what the caller gives too."""
        values = config.all_kwargs()
        for name in values:
            if name in keywords:
                raise error("E0505", kernel=self.base_fn.__name__, name=name, argument=name)
        return values

    # ---- choosing --------------------------------------------------------------------------------

    def _choose(
        self,
        interpreted: bool,
        nargs: Mapping[str, Any],
        args: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Config:
        if len(self.configs) == 1:
            return self.configs[0]
        if interpreted:
            return self.prune_configs(keywords, nargs)[0]
        device, types = self.base_fn.binder.survey(args, keywords)
        key = self._key({**nargs, **keywords}, device, types)
        found = self.cache.get(key)
        if found is not None:
            return found
        with self._tuning:
            found = self.cache.get(key)
            if found is None:
                left = self.prune_configs(keywords, nargs)
                launch = _Launch(args, keywords, nargs, device)
                found = left[0] if len(left) == 1 else self._fastest(left, key, launch)
                self.cache[key] = found
            return found

    def _key(
        self, passed: Mapping[str, Any], device: str, types: Sequence[DType]
    ) -> tuple[Any, ...]:
        """The values of ``key`` among what was passed, all arrays' element types, and the target.

        Arrays in tuples and descriptors are among them. Raises E0515 for a value without a hash.
        """
        kernel = self.base_fn.__name__
        values = {name: passed[name] for name in self.keys if name in passed}
        for name, value in values.items():
            try:
                hash(value)
            except TypeError:
                raise error(
                    "E0515",
                    kernel=kernel,
                    name=name,
                    text=f"a {type(value).__name__} can't be found again in the key of autotune",
                    hint="take it out of the key, or pass a number or a tuple of numbers",
                    argument=name,
                ) from None
        return (*values.values(), *map(str, types), targets.architecture(kernel, device))

    def _fastest(self, left: Sequence[Config], key: Any, launch: _Launch) -> Config:
        """Time the configurations; the first one where none of them can be run."""
        start = time.perf_counter()
        self.configs_timings = {each: self._bench(each, launch) for each in left}
        self.bench_time = time.perf_counter() - start
        times = {
            each: _comparable(found)
            for each, found in self.configs_timings.items()
            if found is not _FAILED
        }
        best = min(times, key=times.__getitem__) if times else left[0]
        before = self.pre_hook or self._hooks().before
        before(launch.named(best.all_kwargs()), reset_only=True)
        self._tell(key, best)
        return best

    def _hooks(self) -> Hooks:
        return Hooks(self.reset_to_zero, self.restore_value)

    def _tell(self, key: Any, best: Config) -> None:
        """What the knobs ask for."""
        self._say(
            f"Triton autotuning for function {self.base_fn.__name__},\nwith key as {key},\n"
            f"finished after {self.bench_time:.2f}s,\nbest config selected: {best};"
        )
        if knobs.autotuning.listener is not None:
            knobs.autotuning.listener(
                fn=self.base_fn,
                key=key,
                best_config=best,
                configs_timings=self.configs_timings,
                duration=self.bench_time,
                cache_hit=False,
            )

    def _bench(self, config: Config, launch: _Launch) -> Any:
        """What ``do_bench`` says of launches with a configuration, infinite where it can't run."""
        values = self._values(config, launch.keywords)
        full = launch.named(values)

        def call() -> None:
            hooks = self._hooks()
            before, after = self.pre_hook or hooks.before, self.post_hook or hooks.after
            if config.pre_hook is not None:
                config.pre_hook(full)
            before(full)
            try:
                self.fn.run(*launch.args, **launch.keywords, **values)
            except BaseException as problem:
                after(full, exception=problem)
                raise
            after(full, exception=None)

        self._say(f"Autotuning kernel {self.base_fn.__name__} with config {config}")
        try:
            return self._benchmarker(launch.device)(call, quantiles=QUANTILES)
        except UNUSABLE as problem:
            self._say(f"Autotuning failed with {problem}")
            return _FAILED

    def _benchmarker(self, device: str) -> Callable[..., Any]:
        if self.do_bench is not None and self.num_warmups is None and self.num_reps is None:
            return self.do_bench
        warmup = WARMUP if self.num_warmups is None else self.num_warmups
        rep = REP if self.num_reps is None else self.num_reps
        return functools.partial(measure, warmup=warmup, rep=rep, wait=waiting_for(device))

    @staticmethod
    def _say(text: str) -> None:
        if knobs.autotuning.print:
            sys.stdout.write(f"{text}\n")

    def prune_configs(
        self, keywords: Mapping[str, Any], nargs: Mapping[str, Any] | None = None
    ) -> list[Config]:
        """The configurations that ``prune_configs_by`` leaves for a launch.

        ``nargs`` are its positional arguments by name, ``self.nargs`` where none are given. Raises
        ``AutotunerError`` where none is left, TypeError for a ``top_k`` that is no number.
        """
        nargs = (self.nargs or {}) if nargs is None else nargs
        left = self.configs
        if self.early_config_prune is not None:
            left = list(self.early_config_prune(left, nargs, **keywords))
            if not left:
                raise AutotunerError("no configuration is left after early_config_prune")
        if self.perf_model is None:
            return left
        top = self.configs_top_k
        if isinstance(top, float) and top <= 1.0:
            top = max(1, int(len(left) * top))
        elif not isinstance(top, int):
            raise TypeError("top_k must be an integer, or a fraction of at most 1.0")
        if len(left) > top:
            time = {each: self._estimate(each, nargs, keywords) for each in left}
            left = sorted(left, key=time.__getitem__)[:top]
        return left

    def _estimate(self, config: Config, nargs: Mapping[str, Any], keywords: Any) -> Any:
        assert self.perf_model is not None
        return self.perf_model(**nargs, **keywords, **config.all_kwargs())

    def warmup(self, /, *args: Any, **keywords: Any) -> list[Any]:
        """Compile every configuration that pruning leaves; returns the compiled kernels."""
        nargs = self.nargs = dict(zip(self.arg_names, args))
        try:
            left = self.prune_configs(keywords, nargs)
            return [self.fn.warmup(*args, **keywords, **each.all_kwargs()) for each in left]
        finally:
            self.nargs = None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call from another kernel: configurations are about launches and have no part in it."""
        return self.fn(*args, **keywords)


_FAILED = [math.inf] * len(QUANTILES)


class _Launch(NamedTuple):
    """A launch to tune for; ``nargs`` are its positional arguments by name."""

    args: Sequence[Any]
    keywords: Mapping[str, Any]
    nargs: Mapping[str, Any]
    device: str

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """All by name, with the values of a configuration."""
        return {**self.nargs, **self.keywords, **values}


def _comparable(found: Any) -> Any:
    """What a benchmarker gave: arrays and tensors as numbers, which have an order."""
    return found.tolist() if hasattr(found, "tolist") else found


class _Interpreted(KernelInterface[Any]):
    def __init__(self, tuner: Autotuner) -> None:
        self.tuner = tuner

    def run(self, /, *args: Any, **keywords: Any) -> Any:
        """Launch the first configuration."""
        with callsite.placing(self.tuner.arg_names):
            return self.tuner._run(self.tuner.fn.interpret, True, args, keywords)


def autotune(
    configs: Iterable[Config],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Callable[..., object] | None = None,
    post_hook: Callable[..., object] | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., Any] | None = None,
    cache_results: bool = False,
) -> Callable[[Any], Autotuner]:
    """Decorator: launch a kernel with the fastest of ``configs`` for each value of ``key``.

    The first launch with new values of the parameters in ``key``, arrays of other element types, or
    on another kind of device runs the kernel many times, with one configuration after the other:
    what it adds to or reads back must be named in ``reset_to_zero`` (set to zero before each run)
    or ``restore_value`` (put back after each). ``pre_hook(args, reset_only=False)`` and
    ``post_hook(args, exception)``, with the arguments by name, take the place of that.
    ``prune_configs_by`` leaves configurations out before: ``early_config_prune(configs, named_args,
    **keywords)``, ``perf_model`` and ``top_k``. ``do_bench(call, quantiles=...)`` takes the place
    of the timing, whose milliseconds are ``warmup`` and ``rep``; ``use_cuda_graph`` and
    ``cache_results`` are kept as attributes only. The interpreter takes the first configuration.

    Raises E0515 for names in ``key``, ``reset_to_zero`` or ``restore_value`` of no parameter, and
    at a launch for a value of ``key`` that can't be hashed.
    """

    def decorate(fn: Any) -> Autotuner:
        return Autotuner(
            fn,
            parameter_names(fn, "autotune"),
            configs,
            key,
            reset_to_zero,
            restore_value,
            pre_hook,
            post_hook,
            prune_configs_by,
            warmup,
            rep,
            use_cuda_graph,
            do_bench,
            cache_results,
        )

    return decorate
