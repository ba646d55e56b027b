"""The dtype facts against NumPy's, ml_dtypes' and torch's, and the lookups."""

from __future__ import annotations

import copy
import pickle
import re

import ml_dtypes
import numpy as np
import pytest

from tritium.ir import dtypes as dt
from tritium.ir.dtypes import Category, DType, Kind, NanEncoding, Signedness, Type

# name, mnemonic, name in the language, bits, bytes, category
TABLE = [
    ("void", "void", "void", 0, 0, Category.VOID),
    ("int1", "i1", "int1", 1, 1, Category.BOOL),
    ("int8", "i8", "int8", 8, 1, Category.INT),
    ("int16", "i16", "int16", 16, 2, Category.INT),
    ("int32", "i32", "int32", 32, 4, Category.INT),
    ("int64", "i64", "int64", 64, 8, Category.INT),
    ("uint8", "u8", "uint8", 8, 1, Category.UINT),
    ("uint16", "u16", "uint16", 16, 2, Category.UINT),
    ("uint32", "u32", "uint32", 32, 4, Category.UINT),
    ("uint64", "u64", "uint64", 64, 8, Category.UINT),
    ("fp8e4nv", "fp8e4nv", "float8e4nv", 8, 1, Category.FLOAT),
    ("fp8e4b8", "fp8e4b8", "float8e4b8", 8, 1, Category.FLOAT),
    ("fp8e4b15", "fp8e4b15", "float8e4b15", 8, 1, Category.FLOAT),
    ("fp8e5", "fp8e5", "float8e5", 8, 1, Category.FLOAT),
    ("fp8e5b16", "fp8e5b16", "float8e5b16", 8, 1, Category.FLOAT),
    ("fp16", "fp16", "float16", 16, 2, Category.FLOAT),
    ("bf16", "bf16", "bfloat16", 16, 2, Category.FLOAT),
    ("fp32", "fp32", "float32", 32, 4, Category.FLOAT),
    ("fp64", "fp64", "float64", 64, 8, Category.FLOAT),
]

# Every spelling of Triton's table beside the names above.
SPELLINGS = {
    "bool": dt.int1,
    "uint1": dt.int1,
    "u1": dt.int1,
    "float8_e4m3fn": dt.float8e4nv,
    "float8_e5m2": dt.float8e5,
    "float8_e4m3fnuz": dt.float8e4b8,
    "float8_e5m2fnuz": dt.float8e5b16,
    "half": dt.float16,
    "float": dt.float32,
    "double": dt.float64,
    "int": dt.int32,
}

# dtype, exponent bits, mantissa bits, bias, largest finite, inf, nan, -0
FORMATS = [
    (dt.float8e4nv, 4, 3, 7, 448.0, False, True, True),
    (dt.float8e4b8, 4, 3, 8, 240.0, False, True, False),
    (dt.float8e4b15, 4, 3, 15, 1.875, False, False, True),
    (dt.float8e5, 5, 2, 15, 57344.0, True, True, True),
    (dt.float8e5b16, 5, 2, 16, 57344.0, False, True, False),
    (dt.float16, 5, 10, 15, 65504.0, True, True, True),
    (dt.bfloat16, 8, 7, 127, float.fromhex("0x1.fep127"), True, True, True),
    (dt.float32, 8, 23, 127, float.fromhex("0x1.fffffep127"), True, True, True),
    (dt.float64, 11, 52, 1023, float.fromhex("0x1.fffffffffffffp1023"), True, True, True),
]

# All predicates, with the names in the language of the types they hold for.
SIGNED = {"int8", "int16", "int32", "int64"}
UNSIGNED = {"int1", "uint8", "uint16", "uint32", "uint64"}
FLOAT8 = {"float8e4nv", "float8e4b8", "float8e4b15", "float8e5", "float8e5b16"}
STANDARD = {"float16", "bfloat16", "float32", "float64"}
PREDICATES = {
    "is_fp8": FLOAT8,
    "is_floating": FLOAT8 | STANDARD,
    "is_standard_floating": STANDARD,
    "is_int": SIGNED | UNSIGNED,
    "is_int_signed": SIGNED,
    "is_int_unsigned": UNSIGNED,
    "is_bool": {"int1"},
    "is_void": {"void"},
    "is_block": set(),
    "is_ptr": set(),
    "is_const": set(),
    "is_fp16": {"float16"},
    "is_bf16": {"bfloat16"},
    "is_fp32": {"float32"},
    "is_fp64": {"float64"},
} | {f"is_{name.replace('float8', 'fp8')}": {name} for name in SIGNED | UNSIGNED | FLOAT8}


def test_the_table_is_complete():
    assert sorted(row[0] for row in TABLE) == sorted(dtype.name for dtype in dt.ALL)
    assert set(dt.VALUES) == set(dt.INTEGERS) | set(dt.FLOATS) == set(dt.ALL) - {dt.void}


@pytest.mark.parametrize("name, mnemonic, in_language, bits, size, category", TABLE)
def test_names_and_sizes(name, mnemonic, in_language, bits, size, category):
    dtype = getattr(dt, in_language)
    assert (dtype.name, str(dtype), dtype.cache_key_part) == (name, name, name)
    assert dtype.mnemonic == mnemonic
    assert dtype.codegen_name() == in_language
    assert repr(dtype) == f"tritium.language.{in_language}"
    assert dtype.bits == dtype.primitive_bitwidth == bits
    assert dtype.itemsize == dtype.numpy.itemsize == size
    assert dtype.category is category
    assert dtype.shape == ()
    assert dtype.scalar is dtype
    assert dtype.with_element_ty(dt.int8) is dt.int8
    assert {DType(spelling) for spelling in (name, mnemonic, in_language)} == {dtype}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_other_spellings(spelling):
    assert DType(spelling) is dt.from_name(spelling) is SPELLINGS[spelling]


@pytest.mark.parametrize("spelling", ["complex64", "fp8", "FP32", "int128", "", "pointer<fp32>"])
def test_unknown_spellings(spelling):
    with pytest.raises(KeyError, match=re.escape(repr(spelling))):
        dt.from_name(spelling)
    with pytest.raises(KeyError, match=re.escape(repr(spelling))):
        DType(spelling)


def test_is_dtype_knows_names_only():
    assert all(DType.is_dtype(dtype.name) for dtype in dt.ALL)
    assert not any(DType.is_dtype(text) for text in ("float32", "i32", "bool", "", "complex64"))


@pytest.mark.parametrize("dtype", dt.ALL, ids=str)
def test_one_instance_each(dtype):
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.copy(dtype) is copy.deepcopy(dtype) is dtype
    assert copy.deepcopy([dtype])[0] is dtype
    assert {dtype: 1}[DType(dtype.name)] == 1
    assert [other for other in dt.ALL if other == dtype] == [dtype]
    assert isinstance(dtype, Type)


@pytest.mark.parametrize("attribute", ["name", "bits", "numpy", "_format", "anything"])
def test_frozen(attribute):
    with pytest.raises(AttributeError):
        setattr(dt.int32, attribute, None)
    with pytest.raises(AttributeError):
        delattr(dt.int32, attribute)
    assert dt.int32.bits == 32


@pytest.mark.parametrize("predicate", sorted(PREDICATES))
def test_predicates(predicate):
    holds = {dtype.codegen_name() for dtype in dt.ALL if getattr(dtype, predicate)()}
    assert holds == PREDICATES[predicate]
    assert getattr(Type(), predicate)() is False


def test_no_predicate_is_untested():
    assert {name for name in dir(DType) if name.startswith("is_")} == {*PREDICATES, "is_dtype"}


def test_type_defaults():
    plain = Type()
    assert plain.shape == ()
    assert plain.scalar is plain


@pytest.mark.parametrize("dtype", dt.ALL, ids=str)
def test_promotion_kind(dtype):
    if dtype is dt.void:
        with pytest.raises(TypeError, match="void"):
            dtype.kind()
        return
    expected = {Category.BOOL: Kind.BOOLEAN, Category.FLOAT: Kind.FLOATING}
    assert dtype.kind() is expected.get(dtype.category, Kind.INTEGRAL)


def test_promotion_order():
    assert DType.KIND.BOOLEAN < DType.KIND.INTEGRAL < DType.KIND.FLOATING


@pytest.mark.parametrize("dtype", dt.INTEGERS, ids=str)
def test_integer_range(dtype):
    if dtype is dt.int1:
        low, high = 0, 1
    else:
        low, high = np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max
    assert (dtype.get_int_min_value(), dtype.get_int_max_value()) == (low, high)
    assert dtype.int_bitwidth == dtype.bits
    signed = dtype.codegen_name() in SIGNED
    assert dtype.int_signedness is (Signedness.SIGNED if signed else Signedness.UNSIGNED)
    assert dt.get_int_dtype(dtype.bits, signed) is dtype


def test_int_dtype_of_any_sign_for_one_bit_and_none_for_other_widths():
    assert dt.get_int_dtype(1, True) is dt.get_int_dtype(1, False) is dt.int1
    with pytest.raises(ValueError, match="signed integer type of 128 bits"):
        dt.get_int_dtype(128, True)


@pytest.mark.parametrize("dtype", (dt.void, *dt.FLOATS), ids=str)
def test_integer_facts_of_other_types(dtype):
    for fact in ("int_bitwidth", "int_signedness"):
        assert not hasattr(dtype, fact)
    with pytest.raises(AttributeError, match="not an integer"):
        dtype.get_int_min_value()
    with pytest.raises(AttributeError, match="not an integer"):
        dtype.get_int_max_value()


@pytest.mark.parametrize("dtype", (dt.void, *dt.INTEGERS), ids=str)
def test_float_facts_of_other_types(dtype):
    for fact in ("format", "fp_mantissa_width", "exponent_bias"):
        assert not hasattr(dtype, fact)


@pytest.mark.parametrize("dtype, exponent, mantissa, bias, largest, inf, nan, zero", FORMATS)
def test_float_formats(dtype, exponent, mantissa, bias, largest, inf, nan, zero):
    layout = dtype.format
    assert (layout.exponent_bits, layout.mantissa_bits, layout.bias) == (exponent, mantissa, bias)
    assert (dtype.fp_mantissa_width, dtype.exponent_bias) == (mantissa, bias)
    assert layout.bits == dtype.bits
    assert layout.largest == largest
    assert (layout.has_inf, layout.has_nan, layout.has_negative_zero) == (inf, nan, zero)
    assert layout.saturates is dtype.is_fp8()
    assert (layout.infinity_pattern is None, layout.nan_pattern is None) == (not inf, not nan)
    assert len([row for row in FORMATS if row[0] is dtype]) == 1


@pytest.mark.parametrize(
    "dtype", [dtype for dtype in dt.FLOATS if dtype is not dt.float8e4b15], ids=str
)
def test_float_limits_against_ml_dtypes(dtype):
    info, layout = ml_dtypes.finfo(dtype.numpy), dtype.format
    assert layout.largest == float(info.max)
    assert layout.smallest_normal == float(info.smallest_normal)
    assert layout.smallest_subnormal == float(info.smallest_subnormal)
    assert layout.epsilon == float(info.eps)
    assert layout.mantissa_bits == info.nmant


@pytest.mark.parametrize("dtype", dt.FLOATS, ids=str)
def test_special_patterns(dtype):
    if dtype is dt.float8e4b15:
        assert dtype.format.nan is NanEncoding.ABSENT
        assert dtype.format.largest_pattern == 0x7F
        return

    def value(pattern):
        return float(np.array([pattern], f"u{dtype.itemsize}").view(dtype.numpy)[0])

    layout = dtype.format
    assert value(layout.largest_pattern) == layout.largest
    assert np.isnan(value(layout.nan_pattern))
    assert value(layout.sign_pattern | 1) == -layout.smallest_subnormal
    if layout.has_inf:
        assert value(layout.infinity_pattern) == np.inf


def test_limits_against_torch():
    torch = pytest.importorskip("torch")
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        info, layout = torch.finfo(getattr(torch, name)), dt.from_name(name).format
        assert (layout.largest, layout.smallest_normal) == (info.max, info.smallest_normal)
    for name in (*STANDARD, *SIGNED, *UNSIGNED - {"int1"}, "int", "half", "float", "double"):
        assert dt.from_name(name).bits == getattr(torch, name).itemsize * 8


@pytest.mark.parametrize("dtype", dt.VALUES, ids=str)
def test_from_numpy(dtype):
    expected = dt.uint8 if dtype is dt.float8e4b15 else dtype
    assert dt.from_numpy(dtype.numpy) is expected
    assert dt.from_numpy(np.zeros(3, dtype.numpy)[::2].dtype) is expected


def test_from_numpy_sees_c_integer_names():
    for name in ("byte", "short", "intc", "long", "longlong", "ubyte", "uintc", "ulonglong"):
        numpy_dtype = np.dtype(name)
        assert dt.from_numpy(numpy_dtype).numpy == numpy_dtype


@pytest.mark.parametrize(
    "numpy_dtype",
    [
        "c8",
        "c16",
        "O",
        ">i4",
        ">f8",
        ">f2",
        "S4",
        "U4",
        "V4",
        "V",
        "M8[s]",
        "m8[s]",
        "i4,f4",
        "3i4",
    ],
)
def test_from_numpy_refuses(numpy_dtype):
    with pytest.raises(KeyError):
        dt.from_numpy(np.dtype(numpy_dtype))


def test_from_numpy_refuses_foreign_eight_bit_floats():
    with pytest.raises(KeyError):
        dt.from_numpy(np.dtype(ml_dtypes.float8_e4m3b11fnuz))


@pytest.mark.parametrize("dtype", dt.ALL, ids=str)
def test_compute_type(dtype):
    narrow = dtype.codegen_name() in FLOAT8 | {"float16", "bfloat16"}
    assert dtype.compute is (dt.float32 if narrow else dtype)
