"""Contraction: a product and the sum or difference that reads it become one ``arith.fma``.

It runs only where a launch asks for it with ``enable_fp_fusion=True``: it changes results. Every
sum and difference of fp16, bf16, fp32 and fp64 with a product for an operand is fused, whatever
else reads the product, so that the text of a kernel alone says what is rounded:

- ``a * b + c`` and ``c + a * b`` become ``fma(a, b, c)``; of two products the left one is fused,
- ``a * b - c`` becomes ``fma(a, b, -c)``, and ``c - a * b`` becomes ``fma(-a, b, c)``.

A product that nothing else reads stays, for ``dce``.

Before::

    func @f(%p: *fp32, %x: fp32, %y: fp32, %z: fp32) ({
      %product = arith.mul %x, %y : fp32
      %sum = arith.add %z, %product : fp32
      memory.store %p, %sum, _
      control.return
    })

After::

    func @f(%p: *fp32, %x: fp32, %y: fp32, %z: fp32) ({
      %product = arith.mul %x, %y : fp32
      %sum = arith.fma %x, %y, %z : fp32
      memory.store %p, %sum, _
      control.return
    })
"""

from __future__ import annotations

from tritium.ir import Block, Function, Op, Value
from tritium.ir.dtypes import bfloat16, float16, float32, float64
from tritium.ops.arith import Add, Fma, Mul, Neg, Sub

from .pipeline import NoOptions, register_pass
from .structure import create, detach, set_ops

_FUSED = (float16, bfloat16, float32, float64)


@register_pass("contract")
def contract(function: Function, options: NoOptions) -> bool:
    """Fuse products into sums; returns whether there were any."""
    return _fuse(function.body.block)


def _fuse(block: Block) -> bool:
    changed = False
    kept: list[Op] = []
    for op in block.ops:
        for region in op.regions:
            changed |= _fuse(region.block)
        made = _fused(op) if isinstance(op, (Add, Sub)) else None
        if made is None:
            kept.append(op)
            continue
        changed = True
        new = made[-1].result
        new.name = op.result.name
        op.result.replace_all_uses_with(new)
        detach(op)
        kept += made
    set_ops(block, kept)
    return changed


def _fused(op: Add | Sub) -> list[Op] | None:
    """The operations that take the place of a sum or difference, the last with its result."""
    if op.result.scalar not in _FUSED:
        return None
    left, right = _product(op.x), _product(op.y)
    negated: list[Op] = []

    def negative(value: Value) -> Value:
        negated.append(create(Neg, loc=op.loc, x=value))
        return negated[-1].result

    if left is not None:
        x, y, z = left.x, left.y, negative(op.y) if isinstance(op, Sub) else op.y
    elif right is not None:
        x, y, z = negative(right.x) if isinstance(op, Sub) else right.x, right.y, op.x
    else:
        return None
    return [*negated, create(Fma, loc=op.loc, x=x, y=y, z=z)]


def _product(value: Value) -> Mul | None:
    maker = value.defining_op
    return maker if isinstance(maker, Mul) else None
