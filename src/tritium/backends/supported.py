"""Refuses a kernel with an operation that an executor has no code for."""

from __future__ import annotations

from tritium.diagnostics import error
from tritium.ir.core import Function


def check_supported(function: Function, executor: str) -> None:
    """Raises E0211 at the first operation that declares ``executor`` as unsupported."""
    for op in function.walk():
        reason = op.unsupported.get(executor)
        if reason is not None:
            raise error("E0211", op=op.mnemonic, executor=executor, reason=reason).at(op.loc)
