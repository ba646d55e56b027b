"""Loads, stores and pointer arithmetic as kernels write them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontend.kernels import PTR, ir, jit, ops, refused, results
from tests.ops.harness import eager

import tritium.language as tl
from tritium.ir.types import PointerType
from tritium.ops.memory import Load, Store
from tritium.ops.spec import given


@jit
def masked_kernel(out, x, N: tl.constexpr):
    line = tl.arange(0, N)
    tl.store(out + line, tl.load(x + line, mask=line < 3))
    tl.store(out + N + line, tl.load(x + line, line < 3, -1))
    tl.store(out + 2 * N + line, tl.load(x + line, mask=line < 3, other=line * 10))
    tl.store(out + 3 * N + line, tl.load(x + line, mask=True, other=5))
    tl.store(out + 4 * N + line, tl.load(x + line, mask=False, other=2.7))
    tl.store(out + 5 * N + line, tl.load(x + line, mask=None, other=None))


def test_masked_loads() -> None:
    x = np.arange(100, 105, dtype=np.int32)
    got = np.reshape(results(masked_kernel, x, 5, size=30), (6, 5)).tolist()
    assert got == [
        [100, 101, 102, 0, 0],
        [100, 101, 102, -1, -1],
        [100, 101, 102, 30, 40],
        [100, 101, 102, 103, 104],
        [2, 2, 2, 2, 2],
        [100, 101, 102, 103, 104],
    ]


@jit
def shapes_kernel(out, x):
    rows, columns = tl.arange(0, 3), tl.arange(0, 5)
    # The mask is larger than the pointer: the pointer is broadcast.
    tile = tl.load(x + columns, mask=(rows < 2)[:, None] & (columns > 0)[None, :], other=7)
    tl.static_assert(tile.shape[0] == 3)
    place = rows[:, None] * 5 + columns[None, :]
    # Value and mask are smaller than the pointer.
    tl.store(out + place, rows[:, None])
    tl.store(out + place, tile, mask=columns < 4)
    # A value without the pointer's first axis.
    tl.store(out + 15 + place, columns)
    tl.store(out + 30, tl.load(x + 1))


def test_masks_and_values_are_broadcast() -> None:
    x = np.arange(100, 105, dtype=np.int32)
    got = results(shapes_kernel, x, size=31)
    block = np.full((3, 5), 7)
    block[:2, 1:] = x[1:]
    block[:, 4] = [0, 1, 2]
    assert got == [*block.ravel(), *([*range(5)] * 3), 101]


@jit
def convert_kernel(out, flags, wide):
    line = tl.arange(0, 4)
    tl.store(out + line, line.to(tl.float32) * 300.7)
    tl.store(flags + line, line - 1)
    tl.store(out + 4 + line, tl.load(flags + line))
    tl.store(wide, 1.9)


def test_values_are_cast_to_the_pointee() -> None:
    flags, wide = np.zeros(4, bool), np.zeros(1, np.int64)
    got = results(convert_kernel, flags, wide, size=8, dtype=np.int16)
    assert got == [0, 300, 601, 902, 1, 0, 1, 1]
    assert flags.view(np.uint8).tolist() == [1, 0, 1, 1]
    assert wide.tolist() == [1]


@jit
def flags_kernel(out, bytes):
    line = tl.arange(0, 4)
    flags = bytes.to(tl.pointer_type(tl.int1))
    loaded = tl.load(flags + line)
    tl.static_assert(loaded.dtype == tl.int1)
    tl.store(out + line, loaded)


def test_any_byte_but_0_is_true() -> None:
    assert results(flags_kernel, np.array([0, 1, 2, 128], np.uint8), size=4) == [0, 1, 1, 1]


@jit
def arithmetic_kernel(out, x, n, small):
    line = tl.arange(0, 4)
    tl.store(out + line, tl.load(x + 4 + line - 2))
    tl.store(out + 4 + line, tl.load(4 + x - line))
    # An unsigned offset is extended by zeros, a signed one by its sign; neither wraps.
    tl.store(out + 8, tl.load(x + small.to(tl.uint8)))
    tl.store(out + 9, tl.load(x + 8 - small.to(tl.uint8)))
    tl.store(out + 10, tl.load(x + 8 + (-small).to(tl.int8)))
    tl.store(out + 11, tl.load(x + (n > 0)))
    step = x
    step += 3
    step -= 1
    tl.store(out + 12, tl.load(step))


def test_pointer_arithmetic() -> None:
    x = np.arange(100, 300, dtype=np.int32)
    got = results(arithmetic_kernel, x, 5, 6, size=13)
    assert got == [102, 103, 104, 105, 104, 103, 102, 101, 106, 102, 102, 101, 102]


def test_large_unsigned_offsets_do_not_become_negative() -> None:
    x = np.arange(300, dtype=np.uint8)

    @jit
    def kernel(out, x, n):
        tl.store(out, tl.load(x + n.to(tl.uint8)))
        tl.store(out + 1, tl.load(x + 250 - n.to(tl.uint8)))

    assert results(kernel, x, 200, size=2) == [200, 50]


def test_pointers_to_pointers() -> None:
    rows = [np.arange(5, dtype=np.int32) + 10 * row for row in range(3)]
    table = np.array([row.ctypes.data for row in rows], np.int64)

    @jit
    def kernel(out, table):
        pointers = table.to(tl.pointer_type(tl.pointer_type(tl.int32)))
        line = tl.arange(0, 4)
        row = tl.load(pointers + line, mask=line < 3, other=0)
        tl.store(out + line, row.to(tl.int64) != 0)
        tl.store(out + 4 + line, tl.load(row + line, mask=line < 3))

    assert results(kernel, table, size=8) == [1, 1, 1, 0, 0, 11, 22, 0]


@pytest.mark.parametrize("spelled", ["cg", ".cg", tl.constexpr(".cg")])
def test_options_are_kept(spelled: str) -> None:
    @jit
    def kernel(out, modifier: tl.constexpr):
        x = tl.load(out, cache_modifier=modifier, eviction_policy="evict_first", volatile=True)
        tl.store(out, x, cache_modifier=modifier, eviction_policy="evict_last")

    function = ir(kernel, PTR, spelled)
    (load,) = ops(function, Load)
    (store,) = ops(function, Store)
    assert (load.cache, load.eviction, load.volatile) == ("cg", "evict_first", True)
    assert (store.cache, store.eviction) == ("cg", "evict_last")


def test_positions_of_older_versions_are_accepted() -> None:
    @jit
    def kernel(out):
        x = tl.load(out, None, None, (), "", ".ca", "", True)
        tl.store(out, x, None, (), ".wb", "")

    (load,) = ops(ir(kernel, PTR), Load)
    assert (load.cache, load.volatile) == ("ca", True)


def test_store_is_a_method_of_pointers() -> None:
    @jit
    def kernel(out):
        out.store(3)

    assert results(kernel) == 3


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("tl.store(n, 1)", "E0601", "n"),
        ("tl.load(n + 1)", "E0601", "n + 1"),
        ("tl.load(out, mask=n)", "E0602", "mask=n"),
        ("tl.load(out + line, mask=1.0)", "E0602", "mask=1.0"),
        ("tl.load(out + line, mask=tl.arange(0, 3) < 1)", "E0603", "mask=tl.arange(0, 3) < 1"),
        ("tl.store(out, line)", "E0603", "line"),
        ("tl.store(out + line, 0, mask=(line < 1)[:, None])", "E0603", "mask=(line < 1)[:, None]"),
        ("tl.load(out, other=3)", "E0604", "other=3"),
        ("tl.load(out, cache_modifier='.zz')", "E0606", "cache_modifier='.zz'"),
        ("tl.load(out, boundary_check=(0,))", "E0607", "boundary_check=(0,)"),
        ("tl.arange(0, n)", "E0205", "n"),
        ("tl.reshape(line, 5)", "E0206", "5"),
        ("tl.permute(line, 1)", "E0206", "1"),
        ("line[0.5]", "E0208", "0.5"),
        ("line[4]", "E0206", "4"),
        ("line[:n]", "E0205", ":n"),
        ("line[...]", "E0208", "..."),
        ("line[0, 0]", "E0208", "0, 0"),
        ("line[line]", "E0208", "line"),
        ("tl.set(line, 4, 0)", "E0206", "4"),
        ("tl.gather(line, line * 0.5, 0)", "E0204", "line * 0.5"),
        ("tl.cat(line, line, dim=1)", "E0207", "dim=1"),
        ("line.flip(1)", "E0207", "1"),
        ("line.split()", "E0206", "line"),
        ("tl.roll(line, 0.5)", "E0204", "0.5"),
        ("tl.shift(line, line)", "E0204", "line"),
        ("out + 1.5", "E0201", "1.5"),
    ],
)
def test_the_caret_is_under_what_is_wrong(
    text: str, code: str, at: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = tmp_path_factory.mktemp("kernels") / "written.py"
    source.write_text(
        "import tritium.language as tl\n"
        "def kernel(out, n):\n    line = tl.arange(0, 4)\n    " + text + "\n"
    )
    names: dict[str, object] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    refused(jit(names["kernel"]), code, PTR, 5, at=at)  # type: ignore[arg-type]


def test_a_const_pointer_is_read_only() -> None:
    with eager():
        pointer = given(PointerType(tl.float32, const=True), 4)
        assert (pointer + 1).dtype.is_const()
