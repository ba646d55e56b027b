"""Targets, the feature gate, compiling, linking."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import weakref

import llvmlite
import pytest

from tritium.backends import features, llvm
from tritium.backends.emit import Builder, Module, const, float_, i64, ptr, vec, void
from tritium.backends.llvm import LLVMError

SQUARE = "define i64 @square(i64 %x) {\n %y = mul i64 %x, %x\n ret i64 %y\n}\n"
X86 = "x86_64-unknown-linux-gnu"
ARM = "aarch64-unknown-linux-gnu"
Integer = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


def test_from_text_to_a_call() -> None:
    times: dict[str, float] = {}
    library = llvm.compile_and_link(SQUARE, llvm.host_target(), ["square"], times=times)
    assert Integer(library.address("square"))(-12) == 144
    assert set(times) == {"parse", "optimise", "codegen", "link"}
    assert all(0 < seconds < 60 for seconds in times.values())
    before = times["parse"]
    llvm.optimise(SQUARE, llvm.host_target(), times)
    assert times["parse"] > before


def test_an_object_is_bytes_that_link_later() -> None:
    image = llvm.emit_object(llvm.optimise(SQUARE, llvm.host_target()))
    assert isinstance(image, bytes)
    first, second = (llvm.link(image, ["square"]) for _ in range(2))
    assert first.address("square") != second.address("square")
    del first
    assert Integer(second.address("square"))(7) == 49


def mapped(address: int) -> bool:
    with open("/proc/self/maps", encoding="ascii") as maps:
        ranges = (line.split(" ", 1)[0].split("-") for line in maps)
        return any(int(low, 16) <= address < int(high, 16) for low, high in ranges)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/maps")
def test_dropping_a_library_unmaps_it() -> None:
    library = llvm.compile_and_link(SQUARE, llvm.host_target(), ["square"])
    address = library.address("square")
    gone = weakref.ref(library)
    assert mapped(address)
    del library
    assert gone() is None
    assert not mapped(address)


@pytest.mark.parametrize(
    "text, message",
    [
        ("define i64 @f(i64 %x) {\n ret i32 %x\n}", "ret i32"),
        ("define i64 @f(i64 %x) {\n ret i64 %y\n}", "undefined value"),
        (
            (
                "define i64 @f(i1 %c) {\n br i1 %c, label %a, label %b\na:\n %x = add i64 1, 2\n"
                " br label %b\nb:\n ret i64 %x\n}"
            ),
            "does not dominate",
        ),
    ],
)
def test_bad_ir_is_an_error_that_shows_it(text: str, message: str) -> None:
    with pytest.raises(LLVMError, match=message) as caught:
        llvm.optimise(text, llvm.host_target())
    assert caught.value.ir == text


def test_an_unknown_symbol_is_an_error() -> None:
    text = "declare i64 @nowhere(i64)\n" + SQUARE.replace(
        "mul i64 %x, %x", "call i64 @nowhere(i64 %x)"
    )
    with pytest.raises(LLVMError, match="linking square"):
        llvm.compile_and_link(text, llvm.host_target(), ["square"])


def test_a_missing_export_is_an_error() -> None:
    with pytest.raises(LLVMError, match="cube"):
        llvm.compile_and_link(SQUARE, llvm.host_target(), ["cube"])


def test_library_functions_exist() -> None:
    assert [name for name in llvm.LIBRARY_FUNCTIONS if llvm.library_function(name) is None] == []
    text = "define double @f(double %x, double %y) {\n %z = frem double %x, %y\n ret double %z\n}"
    library = llvm.compile_and_link(text, llvm.host_target(), ["f"])
    Double = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
    assert Double(library.address("f"))(-7.5, 2.0) == -1.5


def test_an_export_may_be_named_as_a_library_function() -> None:
    text = SQUARE.replace("square", "exp")
    library = llvm.compile_and_link(text, llvm.host_target(), ["exp"])
    assert Integer(library.address("exp"))(3) == 9


def test_compiling_in_threads() -> None:
    results: dict[int, int] = {}

    def compile_one(number: int) -> None:
        text = SQUARE.replace("mul i64 %x, %x", f"mul i64 %x, {number}")
        library = llvm.compile_and_link(text, llvm.host_target(), ["square"])
        results[number] = Integer(library.address("square"))(3)

    threads = [threading.Thread(target=compile_one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: 3 * number for number in range(8)}


def test_always_inline_is_honoured() -> None:
    module = Module()
    helper = module.function(
        "helper", i64, [(i64, "x")], linkage="internal", attributes=("nounwind", "alwaysinline")
    )
    b = Builder(helper.entry)
    b.ret(b.add(helper.params[0], const(i64, 3)))
    function = module.function("f", i64, [(i64, "x")])
    b = Builder(function.entry)
    b.ret(b.call("helper", i64, function.params))
    optimised = str(llvm.optimise(module.text(), llvm.host_target()))
    assert "helper" not in optimised
    assert "add i64 %x, 3" in optimised


def test_importing_needs_no_llvmlite() -> None:
    program = "import sys, tritium.backends.llvm; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


# ---- targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "version_version = '0.50.0'\nversion_full = 'de6d'\n",
        '__version__ = version = "0.50.0"\n',
        "def get_versions(default={}, verbose=False):\n    return {'version': '0.50.0'}\n",
        "version_json = '''{\"version\":\"0.50.0\"}'''\n",
    ],
)
def test_the_version_is_read_from_a_file(text: str) -> None:
    assert llvm._version_in(text) == "0.50.0"
    assert llvm._version_in("version_full = 'de6d'; subversion") == ""


def test_the_version_is_that_of_the_package() -> None:
    assert llvm.installed() == llvmlite.__version__


def test_the_host() -> None:
    host = llvm.host_target()
    assert host is llvm.host_target()
    assert host.jit
    assert host.vector_bits in (128, 256, 512)
    assert not host.has("no-such-feature")
    assert host.has()
    assert host.cpu in host.key


def test_features_can_be_taken_away() -> None:
    host = llvm.host_target()
    for name, bits in (("avx512f", 256), ("avx2", 128)):
        if host.has(name):
            less = llvm.host_target(None, ",".join(f"-{f}" for f in less_than(name)))
            assert not less.has(name)
            assert less.vector_bits == bits
            library = llvm.compile_and_link(SQUARE, less, ["square"])
            assert Integer(library.address("square"))(5) == 25


def less_than(name: str) -> list[str]:
    wide = sorted(f for f in llvm.host_target().feature_set if f.startswith("avx512"))
    return wide if name == "avx512f" else [*wide, "avx2"]


def test_a_cpu_this_machine_is_not() -> None:
    absent = "+amx-fp16" if not llvm.host_target().has("amx-fp16") else "+no-such-feature"
    with pytest.raises(ValueError, match=absent[1:]):
        llvm.host_target(None, absent)
    other = "neoverse-v2" if llvm.host_target().architecture == "x86_64" else "znver4"
    with pytest.raises(ValueError, match="can't run"):
        llvm.host_target(other)


@pytest.mark.parametrize(
    "triple, cpu, bits, register",
    [
        (X86, "x86-64", 128, "%xmm"),
        (X86, "x86-64-v3", 256, "%ymm"),
        (X86, "sapphirerapids", 512, "%zmm"),
        (ARM, "neoverse-n1", 128, ".4s"),
        (ARM, "neoverse-v2", 128, ".4s"),
    ],
)
def test_emitting_for_other_machines(triple: str, cpu: str, bits: int, register: str) -> None:
    target = llvm.cross_target(triple, cpu)
    assert target.vector_bits == bits
    assert not target.jit
    module = Module()
    type_ = vec(float_, bits // 32)
    function = module.function("f", void, [(ptr, "p")], attributes=target.attributes)
    b = Builder(function.entry)
    x = b.load(type_, function.params[0], align=4)
    b.store(b.fadd(x, x), function.params[0], align=4)
    b.ret()
    optimised = llvm.optimise(module.text(), target)
    assert register in llvm.assembly(optimised)
    assert llvm.emit_object(optimised)[:4] == b"\x7fELF"


def test_named_cpus_are_what_llvm_means_by_them() -> None:
    """Each listed x86 feature compiles its own instruction for the CPU that is said to have it."""
    samples = {
        "avx512vnni": "declare <16 x i32> @llvm.x86.avx512.vpdpwssd.512(<16 x i32>, <16 x i32>, "
        "<16 x i32>)\ndefine <16 x i32> @f(<16 x i32> %x) {\n %y = call <16 x i32> "
        "@llvm.x86.avx512.vpdpwssd.512(<16 x i32> %x, <16 x i32> %x, <16 x i32> %x)\n "
        "ret <16 x i32> %y\n}",
        "fma": "declare float @llvm.fma.f32(float, float, float)\ndefine float @f(float %x) {\n "
        "%y = call float @llvm.fma.f32(float %x, float %x, float %x)\n ret float %y\n}",
        "f16c": "define half @f(float %x) {\n %y = fptrunc float %x to half\n ret half %y\n}",
    }
    instructions = {"avx512vnni": "vpdpwssd", "fma": "vfmadd", "f16c": "vcvtps2ph"}
    for cpu in ("x86-64-v3", "haswell", "znver3", "x86-64-v4", "cascadelake", "znver4", "znver5"):
        target = llvm.cross_target(X86, cpu)
        for name, text in samples.items():
            if target.has(name):
                assert instructions[name] in llvm.assembly(llvm.optimise(text, target)), (cpu, name)


DOT = (
    "declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, "
    "<32 x bfloat>)\n"
)


@pytest.mark.parametrize(
    "text, triple, cpu, message",
    [
        (DOT, X86, "skylake-avx512", "avx512bf16"),
        ("declare void @llvm.x86.tilezero(i8)\n", X86, "znver4", "amx-tile"),
        ("declare void @llvm.x86.tdpbf16ps(i8, i8, i8)\n", X86, "haswell", "amx-bf16"),
        ("declare void @llvm.x86.made.up(i8)\n", X86, "znver4", "unlisted"),
        ("declare void @llvm.aarch64.neon.bfdot.v4f32.v8bf16()\n", ARM, "neoverse-n1", "bf16"),
        ("declare <vscale x 4 x float> @g()\n", ARM, "neoverse-n1", "sve"),
        (
            "define bfloat @f(float %x) {\n %y = fptrunc float %x to bfloat\n ret bfloat %y\n}",
            X86,
            "haswell",
            "fptrunc",
        ),
        (
            (
                "define <4 x half> @f(<4 x double> %x) {\n"
                " %y = fptrunc <4 x double> %x to <4 x half>\n"
                " ret <4 x half> %y\n}"
            ),
            X86,
            "znver4",
            "fptrunc",
        ),
    ],
)
def test_what_the_cpu_lacks_is_refused(text: str, triple: str, cpu: str, message: str) -> None:
    """Without the gate, LLVM would end the process."""
    with pytest.raises(LLVMError, match=message):
        llvm.optimise(text, llvm.cross_target(triple, cpu))


def test_what_the_cpu_has_passes() -> None:
    for cpu in ("cooperlake", "znver4", "sapphirerapids"):
        assert features.missing_features(DOT, llvm.cross_target(X86, cpu).feature_set) == {}


def test_the_list_of_needs_is_complete_for_known_prefixes() -> None:
    assert features.missing_features("call @llvm.x86.avx2.psrlv.d()", frozenset()) == {
        "llvm.x86.avx2.psrlv.d": ["avx2"]
    }
    assert features.missing_features("call @llvm.fma.f32()", frozenset()) == {}
