"""PTX is generated in this process or in another one, and LLVM's end is an error."""

from __future__ import annotations

import pytest
from tests.backends.nvptx import op_table
from tests.backends.test_rules import MNEMONICS, cases, kind_of, operation

from tritium.backends.emit import Module
from tritium.backends.llvm import LLVMError
from tritium.backends.nvptx import codegen
from tritium.backends.nvptx.target import gpu_target

TEXT = """
declare float @llvm.{name}.f32(float)
define ptx_kernel void @kernel(ptr addrspace(1) %p) {{
  %x = load float, ptr addrspace(1) %p
  %y = call float @llvm.{name}.f32(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a"])
def test_what_is_known_is_compiled_here(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, times = gpu_target(arch), {}
    monkeypatch.setattr(codegen, "_elsewhere", None)
    ptx = codegen.to_ptx(TEXT.format(name="floor"), target, times)
    assert "cvt.rmi.f32.f32" in ptx
    assert f".target {arch}" in ptx
    assert {"parse", "optimise", "codegen"} <= set(times)


def test_what_is_unknown_is_compiled_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    target, text = gpu_target("sm_90a"), TEXT.format(name="roundeven")
    assert codegen.unsure(text, target) == ["llvm.roundeven.f32"]
    elsewhere = codegen.to_ptx(text, target)
    assert "cvt.rni.f32.f32" in elsewhere
    assert elsewhere == codegen._here(text, target)


def test_what_ends_llvm_is_an_error() -> None:
    target, text = gpu_target("sm_90a"), TEXT.format(name="log2")
    with pytest.raises(LLVMError, match=r"no code for sm_90a of llvm.log2.f32: ") as caught:
        codegen.to_ptx(text, target)
    assert caught.value.ir == text


def test_what_is_known_depends_on_the_architecture() -> None:
    text = "declare float @llvm.nvvm.ff.to.e4m3x2.rn(float, float)\n%1 = frem float %a, %b\n"
    for arch, expected in (("sm_90a", 1), ("sm_89", 1), ("sm_80", 2)):
        assert len(codegen.unsure(text, gpu_target(arch))) == expected
    assert codegen.unsure(text, gpu_target("sm_90a")) == ["frem"]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_every_operation_is_known(arch: str) -> None:
    target, unknown = gpu_target(arch), {}
    for mnemonic in MNEMONICS:
        module = Module(mnemonic)
        for place, case in enumerate({kind_of(each): each for each in cases()[mnemonic]}.values()):
            op = operation(case.op, kind_of(case)[1], **case.attributes)
            op_table.write(module, f"case_{place}", op, target)
        found = codegen.unsure(module.text(), target)
        if found:
            unknown[mnemonic] = found
    assert unknown == {}
