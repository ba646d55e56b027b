"""Kernels that note what they are given, whichever way they are launched."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tritium.backends.host import layout
from tritium.backends.llvm import Library, compile_and_link, host_target
from tritium.runtime import native

MOST_SLOTS = 24

_HEAD = "@log = global [64 x i64] zeroinitializer, align 8\n"
_ONE = """
define void @record_{count}(ptr %arguments, i64 %first, i64 %last, ptr %scratch) {{
start:
  %calls = atomicrmw add ptr @log, i64 1 seq_cst, align 8
  store i64 {count}, ptr getelementptr (i64, ptr @log, i64 1), align 8
  %most = atomicrmw max ptr getelementptr (i64, ptr @log, i64 2), i64 %last seq_cst, align 8
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %next, %body ]
  %more = icmp slt i64 %i, {words}
  br i1 %more, label %body, label %out
body:
  %from = getelementptr i64, ptr %arguments, i64 %i
  %word = load i64, ptr %from, align 8
  %place = add i64 %i, 3
  %to = getelementptr i64, ptr @log, i64 %place
  store i64 %word, ptr %to, align 8
  %next = add i64 %i, 1
  br label %head
out:
  ret void
}}
"""


class Recorder:
    """Takes the place of all code that kernels are compiled to while it is in force."""

    def __init__(self) -> None:
        counts = range(MOST_SLOTS + 1)
        text = _HEAD + "".join(_ONE.format(count=n, words=n + 3) for n in counts)
        names = [f"record_{n}" for n in counts]
        self.library: Library = compile_and_link(text, host_target(), ["log", *names])
        self.log = (ctypes.c_int64 * 64).from_address(self.library.address("log"))

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Have all code compiled from now on replaced."""
        make, pack = native.NativeCode._make, native.packer
        counts: dict[Any, int] = {}

        def counting(types: Sequence[Any]) -> Any:
            made = pack(types)
            counts[made] = len(types)
            return made

        def replaced(code: Any, disjoint: bool) -> Any:
            made = make(code, disjoint)
            at = ctypes.addressof(made.record) + layout.Record.ENTRY
            address = self.library.address(f"record_{counts[code._pack]}")
            ctypes.c_uint64.from_address(at).value = address
            return made

        patch.setattr(native, "packer", counting)
        patch.setattr(native.NativeCode, "_make", replaced)

    def take(self) -> tuple[int, list[int]] | None:
        """How many programs ran last and the words they got; None if none did since."""
        calls, count, programs = self.log[:3]
        self.log[0] = self.log[2] = 0
        if not calls:
            return None
        words = list(np.ctypeslib.as_array(self.log)[3 : 3 + count + 3])
        return programs, [int(word) for word in words]
