"""Names of ``tl`` that later versions bring: they exist, and calling one is one clear error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tritium.diagnostics import error

from .emit import surface

LATER: dict[str, tuple[str, ...]] = {
    "calls of foreign code": ("inline_asm_elementwise",),
    "scaled products": ("dot_scaled",),
}
"""Names by the group they come with."""


def unsupported(name: str, group: str) -> Callable[..., Any]:
    """A function of that name that raises E0121 when it is called."""

    def later(*args: Any, **kwargs: Any) -> Any:
        hint = f"{group} come with a later version"
        raise error("E0121", name=name, hint=hint)

    later.__name__ = later.__qualname__ = name.rpartition(".")[2]
    later.__doc__ = f"Not supported yet: {group} come with a later version. Raises E0121."
    return later


for _group, _names in LATER.items():
    for _name in _names:
        _later = unsupported(f"tl.{_name}", _group)
        surface(name=_name)(_later)
