"""The examples at the sizes that are timed, with PyTorch's call of the same meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Call = Callable[[], object]
Array = NDArray[Any]
EXAMPLES: dict[str, Callable[[Any, Any, Any], list[Timed]]] = {}
"""By file: from the module, a generator and torch (or None), what is timed."""


class Timed(NamedTuple):
    """A call of an example, PyTorch's, and whether products of matrices take most of the time."""

    name: str
    ours: Call
    torch: Call | None
    dot: bool = False


Maker = Callable[[Any, Any, Any], "list[Timed]"]


def example(make: Maker) -> Maker:
    """Decorator: the cases of the example of that name."""
    EXAMPLES[make.__name__] = make
    return make


def normal(random: np.random.Generator, *shape: int) -> Array:
    return random.standard_normal(shape, dtype=np.float32)


def tensors(torch: Any, *arrays: Array, grad: bool = False) -> Any:
    """Tensors of the same memory; None without torch."""
    if torch is None:
        return (None,) * len(arrays)
    return tuple(torch.from_numpy(x).requires_grad_(grad) for x in arrays)


def beside(torch: Any, call: Call) -> Call | None:
    return None if torch is None else call


def gradients(torch: Any, result: Call, inputs: tuple[Any, ...], dout: Any) -> Call | None:
    """PyTorch's backward pass of ``result()``, whose graph is made now."""
    if torch is None:
        return None
    out = result()
    return lambda: torch.autograd.grad(out, inputs, dout, retain_graph=True)


@example
def vector_add(module: Any, random: Any, torch: Any) -> list[Timed]:
    x, y = normal(random, 2, 4_000_000)
    s, t = tensors(torch, x, y)
    return [Timed("", lambda: module.add(x, y), beside(torch, lambda: s + t))]


def softmax_rows(module: Any, random: Any, torch: Any, columns: int) -> list[Timed]:
    x = normal(random, 4_000_000 // columns, columns)
    (t,) = tensors(torch, x)
    return [Timed("", lambda: module.softmax(x), beside(torch, lambda: t.softmax(1)))]


@example
def softmax(module: Any, random: Any, torch: Any) -> list[Timed]:
    return softmax_rows(module, random, torch, 781)


@example
def softmax_online(module: Any, random: Any, torch: Any) -> list[Timed]:
    return softmax_rows(module, random, torch, 20011)


@example
def layernorm(module: Any, random: Any, torch: Any) -> list[Timed]:
    x, (w, b) = normal(random, 4000, 1000), normal(random, 2, 1000)
    t, v, c = tensors(torch, x, w, b)
    peer = beside(torch, lambda: torch.nn.functional.layer_norm(t, (1000,), v, c))
    return [Timed("", lambda: module.layernorm(x, w, b, 1e-5), peer)]


@example
def layernorm_backward(module: Any, random: Any, torch: Any) -> list[Timed]:
    x, dout, (w, b) = *normal(random, 2, 4000, 1000), normal(random, 2, 1000)
    _, mean, rstd = module.forward(x, w, b)
    t, v, c = tensors(torch, x, w, b, grad=True)
    (d,) = tensors(torch, dout)
    peer = gradients(torch, lambda: torch.nn.functional.layer_norm(t, (1000,), v, c), (t, v, c), d)
    return [Timed("backward", lambda: module.backward(dout, x, w, mean, rstd), peer)]


@example
def rmsnorm(module: Any, random: Any, torch: Any) -> list[Timed]:
    x, dout, w = *normal(random, 2, 4000, 1000), normal(random, 1000)
    _, rstd = module.forward(x, w)
    t, v = tensors(torch, x, w, grad=True)
    s, u, d = tensors(torch, x, w, dout)

    def peer(x: Any, weight: Any) -> Any:
        return torch.nn.functional.rms_norm(x, (1000,), weight, 1e-6)

    return [
        Timed("forward", lambda: module.forward(x, w), beside(torch, lambda: peer(s, u))),
        Timed(
            "backward",
            lambda: module.backward(dout, x, w, rstd),
            gradients(torch, lambda: peer(t, v), (t, v), d),
        ),
    ]


@example
def cross_entropy(module: Any, random: Any, torch: Any) -> list[Timed]:
    x, targets = normal(random, 512, 8003), random.integers(0, 8003, 512)
    _, lse = module.forward(x, targets)
    s, i = tensors(torch, x, targets)
    (t,) = tensors(torch, x, grad=True)

    def peer(x: Any, reduction: str) -> Any:
        return torch.nn.functional.cross_entropy(x, i, reduction=reduction)

    return [
        Timed(
            "forward", lambda: module.forward(x, targets), beside(torch, lambda: peer(s, "none"))
        ),
        Timed(
            "backward",
            lambda: module.backward(x, lse, targets),
            gradients(torch, lambda: peer(t, "mean"), (t,), None),
        ),
    ]


@example
def dropout(module: Any, random: Any, torch: Any) -> list[Timed]:
    x = normal(random, 4_000_000)
    (t,) = tensors(torch, x)
    peer = beside(torch, lambda: torch.nn.functional.dropout(t, 0.25))
    return [Timed("", lambda: module.dropout(x, 0.25, 7), peer)]


@example
def rope(module: Any, random: Any, torch: Any) -> list[Timed]:
    x = normal(random, 4096, 16, 64)
    angle = module.angles(4096, 32)
    cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    t, c, s = tensors(torch, x, cos, sin)

    def peer() -> Any:
        a, b = t.chunk(2, -1)
        cosine, sine = c[:, None], s[:, None]
        return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)

    return [Timed("", lambda: module.rope(x, cos, sin), beside(torch, peer))]


@example
def swiglu(module: Any, random: Any, torch: Any) -> list[Timed]:
    a, b, dout = normal(random, 3, 4_000_000)
    s, t, d = tensors(torch, a, b, dout)
    inputs = tensors(torch, a, b, grad=True)

    def peer(a: Any, b: Any) -> Any:
        return torch.nn.functional.silu(a) * b

    return [
        Timed("forward", lambda: module.forward(a, b), beside(torch, lambda: peer(s, t))),
        Timed(
            "backward",
            lambda: module.backward(dout, a, b),
            gradients(torch, lambda: peer(*inputs), inputs, d),
        ),
    ]


@example
def matmul(module: Any, random: Any, torch: Any) -> list[Timed]:
    a, b = normal(random, 2, 768, 768)
    s, t = tensors(torch, a, b)
    return [Timed("", lambda: module.matmul(a, b), beside(torch, lambda: s @ t), True)]


@example
def matmul_grouped_order(module: Any, random: Any, torch: Any) -> list[Timed]:
    cases = []
    for name, (operand, result) in module.types().items():
        a, b = (normal(random, 2, 512, 512) * 4).astype(operand)
        peer = None
        if torch is not None and not name.startswith("float8"):
            s, t = (torch.from_numpy(x.astype("f4")).to(getattr(torch, name)) for x in (a, b))
            # torch.mm of int8 has int8 results, which wrap: another product.
            product = torch._int_mm if name == "int8" else torch.mm
            peer = lambda s=s, t=t, product=product: product(s, t)  # noqa: E731
        ours = lambda a=a, b=b, result=result: module.matmul(a, b, result)  # noqa: E731
        cases.append(Timed(name, ours, peer, True))
    return cases


@example
def matmul_batched(module: Any, random: Any, torch: Any) -> list[Timed]:
    a, b = normal(random, 16, 256, 128), normal(random, 16, 128, 192)
    s, t = tensors(torch, a, b)
    return [Timed("", lambda: module.matmul(a, b), beside(torch, lambda: s @ t), True)]


@example
def matmul_pointer_table(module: Any, random: Any, torch: Any) -> list[Timed]:
    shapes = random.integers(100, 400, (12, 3))
    pairs = [(normal(random, m, k), normal(random, k, n)) for m, n, k in shapes]
    both = [tensors(torch, *pair) for pair in pairs]
    peer = beside(torch, lambda: [s @ t for s, t in both])
    return [Timed("", lambda: module.matmuls(pairs), peer, True)]


@example
def attention(module: Any, random: Any, torch: Any) -> list[Timed]:
    cases = []
    for D, causal in ((64, False), (64, True), (128, True)):
        q, k, v, dout = normal(random, 4, 8, 512, D)
        out, lse = module.forward(q, k, v, causal)
        plain = [x[None] for x in tensors(torch, q, k, v)] if torch is not None else []
        inputs = tensors(torch, q, k, v, grad=True)
        grads = tensors(torch, dout)

        def peer(q: Any, k: Any, v: Any, causal: bool = causal) -> Any:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        name = f"D {D}{', causal' if causal else ''}"
        cases.append(
            Timed(
                f"forward, {name}",
                lambda q=q, k=k, v=v, c=causal: module.forward(q, k, v, c),
                beside(torch, lambda peer=peer, plain=plain: peer(*plain)),
                True,
            )
        )
        args = (q, k, v, out, dout, lse, causal)
        back = gradients(
            torch,
            lambda peer=peer, inputs=inputs: peer(*(x[None] for x in inputs))[0],
            inputs,
            grads[0],
        )
        cases.append(
            Timed(f"backward, {name}", lambda args=args: module.backward(*args), back, True)
        )
    return cases


@example
def conv2d(module: Any, random: Any, torch: Any) -> list[Timed]:
    x, weight = normal(random, 4, 56, 56, 64), normal(random, 3, 3, 64, 64)
    s, w = tensors(torch, x, weight)
    peer = None
    if torch is not None:
        last = (
            s.permute(0, 3, 1, 2),
            w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last),
        )
        peer = lambda: torch.nn.functional.conv2d(*last, padding=1)  # noqa: E731
    return [Timed("", lambda: module.conv2d(x, weight, 1, 1), peer, True)]


@example
def kmeans(module: Any, random: Any, torch: Any) -> list[Timed]:
    x, centre = normal(random, 100_000, 32), normal(random, 64, 32)
    s, c = tensors(torch, x, centre)

    def peer() -> Any:
        nearest = torch.cdist(s, c).argmin(1)
        sums = torch.zeros_like(c).index_add_(0, nearest, s)
        return sums / torch.bincount(nearest, minlength=64).clamp(min=1)[:, None]

    return [Timed("", lambda: module.step(x, centre), beside(torch, peer), True)]


@example
def matmul_split_k(module: Any, random: Any, torch: Any) -> list[Timed]:
    a, b = normal(random, 128, 20_000), normal(random, 20_000, 128)
    s, t = tensors(torch, a, b)
    return [Timed("", lambda: module.matmul(a, b), beside(torch, lambda: s @ t), True)]


@example
def prefix_sum(module: Any, random: Any, torch: Any) -> list[Timed]:
    x = random.integers(-1000, 1000, 4_000_000, np.int32)
    (t,) = tensors(torch, x)
    peer = beside(torch, lambda: torch.cumsum(t, 0, dtype=torch.int32))
    return [Timed("", lambda: module.prefix_sum(x), peer)]


@example
def histogram(module: Any, random: Any, torch: Any) -> list[Timed]:
    x = random.random(4_000_000, dtype=np.float32)
    (t,) = tensors(torch, x)
    peer = beside(torch, lambda: torch.histc(t, 100, 0, 1))
    return [Timed("", lambda: module.histogram(x, 100), peer)]


@example
def topk(module: Any, random: Any, torch: Any) -> list[Timed]:
    x = normal(random, 1000, 1000)
    (t,) = tensors(torch, x)
    return [Timed("", lambda: module.topk(x, 8), beside(torch, lambda: torch.topk(t, 8)))]
