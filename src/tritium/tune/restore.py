"""What tuning leaves of arrays that each run of a kernel changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritium.runtime.arrays import TensorWrapper


class Hooks:
    """Sets arguments of one run to zero before it, and puts others back after it.

    None stays None.
    """

    def __init__(self, zeroed: Sequence[str], restored: Sequence[str]) -> None:
        self.zeroed = zeroed
        self.restored = restored
        self.copies: dict[str, Any] = {}

    def before(self, args: Mapping[str, Any], reset_only: bool = False) -> None:
        """Zero, and with ``reset_only`` nothing else: else copy what is to be put back."""
        for name in self.zeroed:
            if args.get(name) is not None:
                _fill_with_zeros(args[name])
        if not reset_only:
            known = {name: args.get(name) for name in self.restored}
            self.copies = {n: _copied(x) for n, x in known.items() if x is not None}

    def after(self, args: Mapping[str, Any], exception: BaseException | None = None) -> None:
        """Put back, also where the run failed."""
        for name, copy in self.copies.items():
            _assign(args[name], copy)


def _fill_with_zeros(array: Any) -> None:
    """torch's tensors have ``zero_``, arrays of NumPy's kind ``fill``."""
    while isinstance(array, TensorWrapper):
        array = array.base
    if hasattr(array, "zero_"):
        array.zero_()
    else:
        array.fill(0)


def _copied(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else array.copy()


def _assign(array: Any, values: Any) -> None:
    if hasattr(array, "copy_"):
        array.copy_(values)
    else:
        array[...] = values
