"""PTX of every elementwise operation in every type: a program, as LLVM may end its process.

    python -m tests.backends.nvptx.op_table sm_90a DIRECTORY [MNEMONIC ...]

For each operation it says its mnemonic, then writes DIRECTORY/MNEMONIC.ptx.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.backends.test_rules import MNEMONICS, cases, kind_of, operation

from tritium.backends import llvm
from tritium.backends.common.rules import register_type
from tritium.backends.emit import Builder, Module, const, i32, i64, pointer, void
from tritium.backends.nvptx.rules import apply
from tritium.backends.nvptx.target import GpuTarget, gpu_target
from tritium.ir.core import Op


def write(module: Module, name: str, op: Op, target: GpuTarget) -> None:
    """A kernel whose thread t computes element t."""
    count = len(op.operands) + 1
    params = [(pointer(1), f"p{number}") for number in range(count)]
    function = module.function(name, void, params, convention="ptx_kernel")
    b = Builder(function.entry)
    thread = b.zext(b.call("llvm.nvvm.read.ptx.sreg.tid.x", i32, ()), i64)
    values = []
    for value, param in zip(op.operands, function.params):
        type_ = register_type(value.scalar)
        size = 8 if type_.is_pointer else max(8, type_.bits) // 8
        values.append(b.load(type_, b.gep(param, b.mul(thread, const(i64, size))), align=size))
    made = apply(b, target, op, values)
    size = 8 if made.type.is_pointer else max(8, made.type.bits) // 8
    b.store(made, b.gep(function.params[-1], b.mul(thread, const(i64, size))), align=size)
    b.ret()


def ptx_of(mnemonic: str, target: GpuTarget) -> str:
    """One kernel for each kind of case."""
    module = Module(mnemonic)
    kinds = {kind_of(case): case for case in cases()[mnemonic]}
    for place, case in enumerate(kinds.values()):
        op = operation(case.op, kind_of(case)[1], **case.attributes)
        write(module, f"case_{place}", op, target)
    return llvm.assembly(llvm.optimise(module.text(), target.llvm))


def main(arch: str, directory: str, wanted: Sequence[str]) -> None:
    target = gpu_target(arch)
    for mnemonic in wanted or MNEMONICS:
        print(mnemonic, flush=True)
        (Path(directory) / f"{mnemonic}.ptx").write_text(ptx_of(mnemonic, target))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
