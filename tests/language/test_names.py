"""``tl`` has Triton's names, and each of them works, or says clearly that it doesn't yet."""

from __future__ import annotations

import pytest
from tests.frontend.kernels import PTR, jit, refused, results
from tests.ops.harness import eager

import tritium.language as tl
from tritium.diagnostics import TritiumError
from tritium.ir.dtypes import ALL, DType
from tritium.ops.emit import METHODS, SURFACE
from tritium.ops.later import LATER

TRITON = """
    PropagateNan TRITON_MAX_TENSOR_NUMEL abs advance arange argmax argmin associative_scan
    assume atomic_add atomic_and atomic_cas atomic_load atomic_max atomic_min atomic_or
    atomic_poll atomic_store atomic_xchg atomic_xor bfloat16 bitonic_merge block_type
    broadcast broadcast_to cast cat cdiv ceil clamp condition const constexpr cos cumprod
    cumsum debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf exp exp2
    expand_dims expect_zero fdiv flip float16 float32 float64 float8e4b15 float8e4b8
    float8e4nv float8e5 float8e5b16 floor fma full gather histogram inline_asm_elementwise
    int1 int16 int32 int64 int8 interleave join load load_tensor_descriptor log log2
    make_block_ptr make_tensor_descriptor map_elementwise math max max_constancy
    max_contiguous maximum min minimum multiple_of num_programs pair_uniform_to_normal permute
    philox philox_impl pi32_t pointer_type program_id rand rand4x randint randint4x randn
    randn4x range ravel reduce reduce_or reshape rsqrt sigmoid sin slice softmax sort split
    sqrt sqrt_rn squeeze static_assert static_print static_range store store_tensor_descriptor
    sum swizzle2d tensor to_tensor topk trans tuple uint16 uint32 uint64 uint8
    uint_to_uniform_float umulhi unsqueeze view void where xor_sum zeros zeros_like add sub
    mul
"""

TENSOR_METHODS = """
    abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max
    atomic_min atomic_or atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum
    erf exp exp2 expand_dims flip floor gather histogram item log log2 max min permute ravel
    reduce reduce_or reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn store sum trans
    view xor_sum to logical_and logical_or
"""

MATH = """
    abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn tanh umulhi
"""


@pytest.mark.parametrize("name", TRITON.split())
def test_tl_has_the_name(name: str) -> None:
    assert hasattr(tl, name)
    assert hasattr(tl.core, name) or name == "math"


@pytest.mark.parametrize("name", TENSOR_METHODS.split())
def test_tensors_have_the_method(name: str) -> None:
    assert name in METHODS


@pytest.mark.parametrize("name", MATH.split())
def test_math_has_the_same_functions(name: str) -> None:
    assert getattr(tl.math, name) is SURFACE[name]


def test_types_are_the_ir_s_own() -> None:
    assert [getattr(tl, dtype.codegen_name()) for dtype in ALL] == list(ALL)
    assert tl.dtype is DType
    assert isinstance(tl.float32, tl.dtype)
    assert tl.pi32_t is tl.pointer_type(tl.int32)
    assert str(tl.block_type(tl.int8, (3, 5))) == "tile<3x5xi8>"


def test_names_that_triton_lacks_too_are_not_there() -> None:
    for name in ("bool", "uint", "item", "mean", "nan", "inf", "libdevice"):
        assert not hasattr(tl, name)


@pytest.mark.parametrize("name", sorted(name for group in LATER.values() for name in group))
def test_a_name_of_a_later_version_says_so(name: str) -> None:
    with eager(), pytest.raises(TritiumError) as caught:
        SURFACE[name](1, 2, mask=None)
    assert caught.value.code == "E0121"
    assert f"tl.{name} " in caught.value.message


def test_outside_of_a_kernel_functions_say_so() -> None:
    with pytest.raises(TritiumError) as caught:
        tl.load(None)
    assert (caught.value.code, caught.value.message) == (
        "E0517",
        "tl.load can only be used inside a kernel",
    )
    with pytest.raises(TritiumError) as caught:
        tl.cdiv(7, 2)
    assert caught.value.code == "E0516"


# ---- what other libraries import -----------------------------------------------------------------


def test_core_has_what_other_libraries_import() -> None:
    assert tl.core._unwrap_if_constexpr(tl.constexpr(3)) == 3
    assert tl.core.CONSTEXPR_0.value == 0
    assert tl.core.get_int_dtype(16, False) is tl.uint16
    assert (tl.core.constexpr, tl.core.dtype, tl.core.tensor) == (
        tl.constexpr,
        tl.dtype,
        tl.tensor,
    )
    assert tl.core.is_builtin(tl.load)
    assert not tl.core.is_builtin(len)


def test_standard_has_what_other_libraries_import() -> None:
    assert tl.standard._log2(64) == 6
    for name in (
        "_sum_combine",
        "_xor_combine",
        "_or_combine",
        "_elementwise_max",
        "_elementwise_min",
        "_argmax_combine",
        "_argmin_combine",
        "_argmax_combine_tie_break_left",
        "_argmin_combine_tie_break_fast",
        "zeros_like",
    ):
        assert hasattr(tl.standard, name)


@tl.core.builtin
def twice(x, _semantic=None):
    return tl.add(x, x, _semantic=_semantic)


def test_a_builtin_of_another_library_runs_in_kernels() -> None:
    @jit
    def kernel(out, x):
        tl.store(out, twice(x))

    assert results(kernel, 21) == 42


@tl.core.extern
def foreign(x, _semantic=None):
    return tl.core.extern_elementwise("", "", [x], {}, is_pure=True, _semantic=_semantic)


def test_foreign_functions_say_that_they_come_later() -> None:
    @jit
    def kernel(out, x):
        tl.store(out, foreign(x))

    refused(kernel, "E0121", PTR, 7, at="foreign(x)")


@jit
def reduced(out, N: tl.constexpr):
    x = tl.arange(0, N)
    values, indices = tl.reduce((x % 7, x), 0, tl.standard._argmax_combine_tie_break_left)
    tl.store(out, values)
    tl.store(out + 1, indices)
    tl.store(out + 2, tl.reduce(x, 0, tl.standard._sum_combine))
    tl.store(out + 3, tl.reduce(x, 0, tl.standard._elementwise_max))
    tl.store(out + 4, tl.reduce(x, 0, tl.standard._elementwise_min))
    tl.store(out + 5, tl.standard._log2(N))


def test_combine_functions_of_standard_work() -> None:
    assert results(reduced, 48, size=6) == [6, 6, 48 * 47 // 2, 47, 0, 5]
