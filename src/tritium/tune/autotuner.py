"""``autotune``: a kernel together with the configurations it may be launched with.

With one configuration (given so, or left by pruning) a launch uses it. The interpreter uses the
first one. Measuring several is not part of this version, which says so (E0802) instead of guessing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tritium import knobs
from tritium.diagnostics import error
from tritium.runtime import callsite
from tritium.runtime.errors import AutotunerError
from tritium.runtime.jit import JITFunction, KernelInterface, parameter_names

from .config import Config


class Autotuner(KernelInterface[Any]):
    """A kernel with its configurations; ``best_config`` is the one of the last launch."""

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
        self.best_config: Config | None = None
        self.nargs: dict[str, Any] | None = None
        self._check_names()

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
        """Launch with the configuration. Raises E0802 where several would have to be measured."""
        with callsite.placing(self.arg_names):
            return self._run(self.fn, knobs.runtime.interpret, args, keywords)

    @property
    def interpret(self) -> KernelInterface[Any]:
        """``kernel.interpret[grid](...)`` runs the first configuration in the interpreter."""
        return _Interpreted(self)

    def _run(self, fn: Any, interpreted: bool, args: Sequence[Any], keywords: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args))
        try:
            config = self.best_config = self._choose(interpreted, keywords)
            values = config.all_kwargs()
            given = [name for name in values if name in keywords]
            if given:
                raise error("E0505", kernel=self.base_fn.__name__, name=given[0], argument=given[0])
            if config.pre_hook is not None:
                config.pre_hook({**self.nargs, **keywords, **values})
            return fn.run(*args, **keywords, **values)
        finally:
            self.nargs = None

    def _choose(self, interpreted: bool, keywords: Mapping[str, Any]) -> Config:
        left = self.configs if len(self.configs) == 1 else self.prune_configs(keywords)
        if len(left) > 1 and not interpreted:
            name = self.base_fn.__name__
            raise error(
                "E0802",
                text=f"{name}: choosing among {len(left)} configurations by measuring them is not "
                "part of this version",
                hint="give autotune one Config, or run in the interpreter, which takes the first",
            )
        return left[0]

    def prune_configs(self, keywords: Mapping[str, Any]) -> list[Config]:
        """The configurations that ``prune_configs_by`` leaves for a launch.

        Raises ``AutotunerError`` where none is left, TypeError for a ``top_k`` that is no number.
        """
        nargs = self.nargs or {}
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
        self.nargs = dict(zip(self.arg_names, args))
        try:
            left = self.prune_configs(keywords)
            return [self.fn.warmup(*args, **keywords, **each.all_kwargs()) for each in left]
        finally:
            self.nargs = None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call from another kernel: configurations are about launches and have no part in it."""
        return self.fn(*args, **keywords)


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
    """Decorator: launch a kernel with the best of ``configs`` for each value of ``key``.

    This version launches with the only configuration that is given, or left by
    ``prune_configs_by`` (``early_config_prune``, ``perf_model``, ``top_k``); several raise E0802 at
    the launch, except in the interpreter, which takes the first. What concerns measuring is kept as
    attributes. Raises E0515 for names in ``key``, ``reset_to_zero`` or ``restore_value`` that are
    no parameters.
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
