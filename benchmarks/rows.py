"""The row cases: softmax, layer normalisation, cross-entropy and RMS normalisation."""

from __future__ import annotations

import numpy as np

from . import kernels
from .arrays import Array
from .case import Case, Output, Setup, add_compiled, launcher, make_arrays
from .specs import Spec

EPSILON = 1e-5


def softmax(spec: Spec, setup: Setup) -> Case:
    arrays = make_arrays(setup)
    rows, columns = spec.shape
    x, out = arrays.normal(spec.shape, spec.dtype, 2.0), arrays.empty(spec.shape, spec.dtype)
    e = np.exp(x.exact - x.exact.max(axis=1, keepdims=True))
    exact = e / e.sum(axis=1, keepdims=True)
    block = kernels.next_power_of_2(columns)
    case = Case(
        spec,
        launcher("softmax", (rows,), x, out, columns, columns, BLOCK=block),
        [Output(out, exact, 1e-5, exact)],
        2.0 * out.numpy.nbytes,
        "B",
    )
    if setup.torch is not None:
        operation = setup.torch.ops.aten._softmax.out
        case.add("torch", lambda: operation(x.torch, 1, False, out=out.torch))
    if setup.numpy(spec):

        def calls() -> None:
            np.subtract(x.numpy, x.numpy.max(axis=1, keepdims=True), out=out.numpy)
            np.exp(out.numpy, out=out.numpy)
            np.divide(out.numpy, out.numpy.sum(axis=1, keepdims=True), out=out.numpy)

        case.add("NumPy", calls)
    _add_numba(case, setup, x, out)
    add_compiled(case, setup, lambda x, out: out.copy_(x.softmax(1)), x, out)
    return case


def layernorm(spec: Spec, setup: Setup) -> Case:
    arrays = make_arrays(setup)
    rows, columns = spec.shape
    x, out = arrays.normal(spec.shape, spec.dtype, 2.0), arrays.empty(spec.shape, spec.dtype)
    weight, bias = arrays.normal((columns,), spec.dtype), arrays.normal((columns,), spec.dtype)
    mean, rstd = arrays.empty((rows, 1), spec.dtype), arrays.empty((rows, 1), spec.dtype)
    average = x.exact.mean(axis=1, keepdims=True)
    scaling = 1.0 / np.sqrt(x.exact.var(axis=1, keepdims=True) + EPSILON)
    exact = (x.exact - average) * scaling * weight.exact + bias.exact
    scale = np.abs(exact) + np.abs(weight.exact) + np.abs(bias.exact)
    case = Case(
        spec,
        launcher(
            "layernorm", (rows,), x, weight, bias, out, mean, rstd, columns, columns, EPSILON,
            BLOCK=kernels.next_power_of_2(columns),
        ),
        [Output(out, exact, 1e-5, scale), Output(mean, average, 1e-6, 2.0),
         Output(rstd, scaling, 1e-5, scaling)],
        2.0 * out.numpy.nbytes,
        "B",
    )  # fmt: skip
    if setup.torch is not None:
        operation = setup.torch.ops.aten.native_layer_norm.out
        given = (x.torch, [columns], weight.torch, bias.torch, EPSILON)
        kept = {"out0": out.torch, "out1": mean.torch, "out2": rstd.torch}
        case.add("torch", lambda: operation(*given, **kept))
    if setup.numpy(spec):

        def calls() -> None:
            np.subtract(x.numpy, x.numpy.mean(axis=1, keepdims=True), out=out.numpy)
            variance = np.einsum("ij,ij->i", out.numpy, out.numpy)[:, None] / columns
            np.divide(out.numpy, np.sqrt(variance + EPSILON), out=out.numpy)
            np.multiply(out.numpy, weight.numpy, out=out.numpy)
            np.add(out.numpy, bias.numpy, out=out.numpy)

        case.add("NumPy", calls)
    _add_numba(case, setup, x, weight, bias, out)
    if setup.compiles(spec):
        normal = setup.torch.nn.functional.layer_norm
        add_compiled(
            case,
            setup,
            lambda x, w, b, out: out.copy_(normal(x, (columns,), w, b, EPSILON)),
            x, weight, bias, out,
        )  # fmt: skip
    return case


def rmsnorm(spec: Spec, setup: Setup) -> Case:
    arrays = make_arrays(setup)
    rows, columns = spec.shape
    x, out = arrays.normal(spec.shape, spec.dtype, 2.0), arrays.empty(spec.shape, spec.dtype)
    weight = arrays.normal((columns,), spec.dtype)
    scaling = 1.0 / np.sqrt((x.exact**2).mean(axis=1, keepdims=True) + EPSILON)
    exact = x.exact * scaling * weight.exact
    block = kernels.next_power_of_2(columns)
    case = Case(
        spec,
        launcher("rmsnorm", (rows,), x, weight, out, columns, columns, EPSILON, BLOCK=block),
        [Output(out, exact, 1e-5, exact)],
        2.0 * out.numpy.nbytes,
        "B",
    )
    if setup.torch is not None:
        _add_torch_rmsnorm(case, setup, x, weight, out, arrays.empty((rows, 1), spec.dtype))
    if setup.numpy(spec):

        def calls() -> None:
            square = np.einsum("ij,ij->i", x.numpy, x.numpy)[:, None] / columns
            np.divide(x.numpy, np.sqrt(square + EPSILON), out=out.numpy)
            np.multiply(out.numpy, weight.numpy, out=out.numpy)

        case.add("NumPy", calls)
    _add_numba(case, setup, x, weight, out)
    return case


def _add_torch_rmsnorm(
    case: Case, setup: Setup, x: Array, weight: Array, out: Array, kept: Array
) -> None:
    """torch has no ``out=`` form of rms_norm on the CPU: its steps with one, and it as it is."""
    torch = setup.torch
    columns = x.numpy.shape[1]

    def eager() -> None:
        torch.linalg.vector_norm(x.torch, dim=1, keepdim=True, out=kept.torch)
        kept.torch.square_().div_(columns).add_(EPSILON).rsqrt_()
        torch.mul(x.torch, kept.torch, out=out.torch)
        torch.mul(out.torch, weight.torch, out=out.torch)

    case.add("torch", eager)
    normal = torch.nn.functional.rms_norm
    case.add(
        "torch rms_norm",
        lambda: out.torch.copy_(normal(x.torch, (columns,), weight.torch, EPSILON)),
    )
    add_compiled(
        case,
        setup,
        lambda x, w, out: out.copy_(normal(x, (columns,), w, EPSILON)),
        x, weight, out,
    )  # fmt: skip


def cross_entropy(spec: Spec, setup: Setup) -> Case:
    arrays = make_arrays(setup)
    rows, columns = spec.shape
    x = arrays.normal(spec.shape, spec.dtype, 2.0)
    target, loss = arrays.integers((rows,), columns), arrays.empty((rows,), spec.dtype)
    largest = x.exact.max(axis=1)
    total = np.exp(x.exact - largest[:, None]).sum(axis=1)
    chosen = np.take_along_axis(x.exact, target.numpy[:, None], axis=1)[:, 0]
    exact = np.log(total) + largest - chosen
    block = kernels.next_power_of_2(columns)
    case = Case(
        spec,
        launcher("cross_entropy", (rows,), x, target, loss, columns, columns, BLOCK=block),
        [Output(loss, exact, 2e-6, np.abs(exact) + 10.0)],
        1.0 * x.numpy.nbytes,
        "B",
    )
    # Every peer needs the logarithms of all probabilities, or their size, on its way.
    if setup.torch is not None:
        aten = setup.torch.ops.aten
        logs, weight = arrays.empty(spec.shape, spec.dtype), arrays.empty((), spec.dtype)

        def eager() -> None:
            aten._log_softmax.out(x.torch, 1, False, out=logs.torch)
            aten.nll_loss_forward.output(
                logs.torch, target.torch, None, 0, -100,
                output=loss.torch, total_weight=weight.torch,
            )  # fmt: skip

        case.add("torch", eager)
    if setup.numpy(spec):
        place, scratch = np.arange(rows), arrays.empty(spec.shape, spec.dtype)

        def calls() -> None:
            high = x.numpy.max(axis=1, keepdims=True)
            np.subtract(x.numpy, high, out=scratch.numpy)
            np.exp(scratch.numpy, out=scratch.numpy)
            np.log(scratch.numpy.sum(axis=1), out=loss.numpy)
            loss.numpy += high[:, 0] - x.numpy[place, target.numpy]

        case.add("NumPy", calls)
    _add_numba(case, setup, x, target, loss)
    if setup.compiles(spec):
        entropy = setup.torch.nn.functional.cross_entropy
        add_compiled(
            case,
            setup,
            lambda x, target, loss: loss.copy_(entropy(x, target, reduction="none")),
            x, target, loss,
        )  # fmt: skip
    return case


def _add_numba(case: Case, setup: Setup, *args: Array) -> None:
    if setup.numba(case.spec):
        from . import numba_peers

        loop = numba_peers.build(case.spec.kernel, setup.threads)
        given = [array.numpy for array in args]
        case.add("numba", lambda: loop(*given))


BUILDERS = {
    "softmax": softmax,
    "layernorm": layernorm,
    "rmsnorm": rmsnorm,
    "cross_entropy": cross_entropy,
}
