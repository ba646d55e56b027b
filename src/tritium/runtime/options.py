"""Launch options: the keywords of a launch that are not parameters of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tritium import knobs
from tritium.diagnostics import error


def _positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _power_of_two(value: Any) -> bool:
    return _positive(value) and value & (value - 1) == 0


# What an option must be, in words, and the test of it.
_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "num_warps": ("a power of two", _power_of_two),
    "num_stages": ("a positive integer", _positive),
    "num_ctas": ("a positive integer", _positive),
    "maxnreg": ("a positive integer or None", lambda value: value is None or _positive(value)),
    "ptx_options": ("a string or None", lambda value: value is None or isinstance(value, str)),
}

DEFAULTS: dict[str, Any] = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
    "ptx_version": None,
    "ptx_options": None,
    "ir_override": None,
    "enable_fp_fusion": None,
    "enable_reflect_ftz": True,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
    "clc": False,
    "sched4reg": False,
    "min_shared_mem": 0,
    "debug": False,
    "sanitize_overflow": True,
    "extern_libs": None,
    "arch": None,
    "warp_size": 32,
    "supported_fp8_dtypes": None,
    "deprecated_fp8_dot_operand_dtypes": None,
    "default_dot_input_precision": None,
    "allowed_dot_input_precisions": None,
    "max_num_imprecise_acc_default": None,
    "instrumentation_mode": "",
}
"""Every option with its default. The CPU has no use for most; they are kept in the metadata."""


class Options(Mapping[str, Any]):
    """The options of one launch, all of them, as attributes and as a mapping; hashable."""

    __slots__ = ("_changed", "_hash", "_key")

    def __init__(self, given: Mapping[str, Any], kernel: str, debug: bool | None = None) -> None:
        """Check and complete the options ``given``.

        ``debug`` is what the kernel's decorator says. Raises E0515 for values that make no sense.
        """
        changed = {name: _checked(name, value, kernel) for name, value in given.items()}
        changed["debug"] = bool(given.get("debug") or debug or knobs.runtime.debug)
        if changed.get("enable_fp_fusion") is None:
            changed["enable_fp_fusion"] = knobs.language.default_fp_fusion
        self._changed = changed
        keys = {name: _hashable(name, value, kernel) for name, value in changed.items()}
        self._key = frozenset(
            (name, keys[name]) for name, value in changed.items() if value != DEFAULTS[name]
        )
        self._hash = hash(self._key)

    def __getitem__(self, name: str) -> Any:
        return self._changed[name] if name in self._changed else DEFAULTS[name]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __iter__(self) -> Any:
        return iter(DEFAULTS)

    def __len__(self) -> int:
        return len(DEFAULTS)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and self._key == other._key

    def __repr__(self) -> str:
        changed = {name: self[name] for name in DEFAULTS if self[name] != DEFAULTS[name]}
        return f"Options({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _checked(name: str, value: Any, kernel: str) -> Any:
    wanted, test = _CHECKS.get(name, ("", bool))
    if wanted and not test(value):
        text = f"it must be {wanted}, got {value!r}"
        raise error("E0515", kernel=kernel, name=name, text=text, hint="", argument=name)
    return value


def _hashable(name: str, value: Any, kernel: str) -> Any:
    """What stands for a value in the key of code. Raises E0515 where nothing can."""
    if isinstance(value, Mapping):
        pairs = [(key, _hashable(name, each, kernel)) for key, each in value.items()]
        return tuple(sorted(pairs, key=lambda pair: str(pair[0])))
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(name, each, kernel) for each in value)
    try:
        hash(value)
    except TypeError:
        text = f"a {type(value).__name__}, which is not hashable"
        hint = "pass strings, numbers, tuples, lists or dictionaries of them"
        raise error(
            "E0515", kernel=kernel, name=name, text=text, hint=hint, argument=name
        ) from None
    return value
