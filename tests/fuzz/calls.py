"""One small body for each function of the language, to be mutated.

The kernel's parameters are x (64 fp32), y (64 fp16), i (64 int32), o (256 fp32) and k (256 int32),
the numbers n = 5, m = 7 and f = 2.5, and B = 8, which is known.
"""

from __future__ import annotations

HELPERS = """
@jit
def add(a, b):
    return a + b

@jit
def pair_max(a, p, b, q):
    better = a > b
    return tl.where(better, a, b), tl.where(better, p, q)

@jit
def steps(x):
    count = 0
    while x > 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = x - 1
        count += 1
    return count
"""

OPENING = """at = tl.arange(0, 16)
v = tl.load(x + at)
h = tl.load(y + at)
w = tl.load(i + at)
t = tl.load(x + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, B)[None, :])
g = tl.load(i + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, B)[None, :])
"""
CLOSING = "tl.store(o + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, B)[None, :], t + 1)"

CALLS = tuple(
    """\
v = tl.add(tl.mul(v, 2.0), tl.sub(v, f, sanitize_overflow=False))

v = tl.where(v > 1, tl.abs(v), tl.minimum(v, 0.5))
w = tl.maximum(w, n)

v = tl.clamp(v, -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL) + tl.fma(v, v, v)

v = tl.fdiv(v, f, ieee_rounding=True) + tl.div_rn(v, 3.0) + tl.sqrt_rn(tl.abs(v))

v = tl.floor(v) + tl.ceil(v * 1.5)
w = tl.umulhi(w, n).to(tl.int32)

v = tl.sqrt(tl.exp(tl.log(tl.abs(v) + 1)))
v = tl.rsqrt(tl.exp2(tl.log2(v * v + 1)))

v = tl.sin(v) + tl.cos(v) + tl.erf(v) + tl.tanh(v) + tl.math.exp(v)

v = tl.sigmoid(v) + tl.softmax(v)
t = tl.softmax(t, dim=1)

t = tl.zeros((4, B), tl.float32) + tl.full([4, B], 1.5, dtype=tl.float32) + tl.zeros_like(t)

t = tl.broadcast_to(tl.expand_dims(tl.sum(t, axis=1), 1), (4, B))

a, b = tl.broadcast(v[:, None], w[None, :])
v = tl.sum(a * b, 1)

t = tl.trans(tl.permute(t, (1, 0)).reshape(B, 4)).view(4, B)

t = tl.trans(t).T + tl.reshape(tl.ravel(t), (4, B))
v = tl.squeeze(tl.unsqueeze(v, 0), 0)

v = tl.cat(v, v, dim=0)[:16] + tl.interleave(v, v)[::2]
a, b = tl.split(tl.join(v, v))
v = a - b

t = tl.flip(t, 1) + tl.roll(t, n, dim=0) + tl.shift(t, -1, 1.0, dim=1)

v = v[3:16:2].sum() + v[::-1] + v[n] + tl.set(v, (slice(2, 5),), 7.0)
t = tl.set(t, (1, n), f)

t = t + t[:, 2:3] + t[n - 4] + tl.set(t, (n - 5, slice(None, 4)), 0.0)

v = tl.gather(v, w % 16, 0)
t = tl.gather(t, tl.abs(g) % 4, axis=0)

v = v + tl.sum(v) + tl.sum(t, axis=0, keep_dims=True).sum() + tl.sum(h, dtype=tl.float32)

t = t + tl.max(t, 1, keep_dims=True) - tl.min(t, axis=0)[None, :]

a, b = tl.max(t, axis=1, return_indices=True)
t = t + a[:, None] + b[:, None]

w = w + tl.argmax(v, 0) + tl.argmin(v, axis=0, tie_break_left=False)
v = v + w

w = w ^ tl.xor_sum(w) | tl.reduce_or(w, 0)
w = w + tl.any(w, 0) + tl.all(w > 0) + tl.count(w)

v = tl.reduce(v, 0, add) + v
a, b = tl.reduce((v, w), 0, pair_max)
v = v + a + b

t = tl.cumsum(t, axis=1, reverse=True) + tl.cumprod(t, 0, exclusive=True)
w = tl.cumsum(w)

t = tl.associative_scan(t, 1, add)
a, b = tl.associative_scan((v, w), axis=0, combine_fn=pair_max, reverse=True)
v = a + b

t = tl.sort(t, dim=1, descending=True)
v = tl.bitonic_merge(v) + tl.topk(v, 4).sum()

a, b = tl.topk(v, 3, return_indices=True)
v = v + a.sum() + b.sum()
w = tl.argsort(v, descending=True)

a, b = tl.sort(v, values=w)
v = a
w = b

w = tl.histogram(w, 16, mask=w > 0) + tl.histogram(tl.abs(w), num_bins=16)

w = tl.map_elementwise(steps, w % 40)
tl.store(k + at, w)

t = tl.dot(t, tl.trans(t), input_precision='ieee').sum() + t

t = tl.dot(t[:, :4], t, acc=t, out_dtype=tl.float32, max_num_imprecise_acc=None)

tl.atomic_add(k + at, w, mask=w > 0, sem='relaxed', scope='gpu')
tl.atomic_xchg(o + at, v)

w = tl.atomic_max(k + at, w) + tl.atomic_min(k + at, n) + tl.atomic_and(k + at, 7)

w = tl.atomic_or(k + at, w) + tl.atomic_xor(k + at, 3, sem='acq_rel')
n = tl.atomic_cas(k, 0, n)

tl.atomic_store(k + at, w, sem='release')
w = tl.atomic_load(k + at, sem='acquire')

p = tl.make_block_ptr(x, (8, 8), (8, 1), (1, n - 3), (4, B), (1, 0))
t = tl.load(p, boundary_check=(0, 1), padding_option='zero')

p = tl.make_block_ptr(
    o, shape=(8, m), strides=(8, 1), offsets=(0, 0), block_shape=(4, B), order=(1, 0)
)
for j in range(2):
    tl.store(p, t, boundary_check=(1,))
    p = tl.advance(p, (4, 0))

d = tl.make_tensor_descriptor(
    x, shape=[8, m], strides=[8, 1], block_shape=[4, B], padding_option='zero'
)
t = d.load([n, 0]) + tl.load_tensor_descriptor(d, [0, 1])

d = tl.make_tensor_descriptor(o, [8, 8], [8, 1], [4, B])
d.store([n, 0], t)
tl.store_tensor_descriptor(d, [0, 2], t)
d.atomic_add([1, 1], t)

v = v + tl.rand(n, at) + tl.randn(seed=n, offset=at, n_rounds=7)
w = tl.randint(n, at).to(tl.int32)

a, b, c, d = tl.rand4x(n, at)
a, b, c, d = tl.randint4x(n, at)
v = v + a
a, b, c, d = tl.randn4x(n, at)

a, b, c, d = tl.philox(n, at, 0, 0, 0)
w = (a ^ b).to(tl.int32)
v = tl.uint_to_uniform_float(c)

a, b = tl.pair_uniform_to_normal(tl.abs(v) % 1, tl.abs(v) % 1)
v = a + b

a, b, c, d = tl.philox_impl(at.to(tl.uint32), n, 0, 0, 1, 2)
w = a.to(tl.int32)

a, b = tl.swizzle2d(at // 4, at % 4, 4, 4, 2)
w = a * 4 + b + tl.cdiv(w, 3)

at = tl.multiple_of(tl.max_contiguous(at, 16), [16])
v = tl.max_constancy(tl.load(x + at), [1])
tl.assume(n > 0)

tl.debug_barrier()
tl.static_assert(B == 8, 'B')
tl.static_print('B', B)
tl.device_assert(n > 0, 'n')

v = tl.expect_zero(v, v == v)
if n > 100:
    tl.device_print('v', v, hex=False)
    print('w', w)

v = tl.load(x + at, mask=at < n, other=1.0, cache_modifier='.cg', volatile=True)
v += tl.load(x + at, eviction_policy='evict_last')

tl.store(o + at, v, mask=at < m, cache_modifier='.wb', eviction_policy='evict_first')
(o + 1).store(f)

w = tl.cast(v, tl.int32) + h.to(tl.int32)
h = v.to(tl.float16, fp_downcast_rounding='rtz')
w = v.to(tl.int32, bitcast=True) % 7

v = (v.to(tl.float8e5).to(tl.float32) + h.to(tl.bfloat16)).to(tl.float32)
n = tl.to_tensor(3) + n

for j in tl.range(0, n, 2, num_stages=2, loop_unroll_factor=2):
    v += tl.load(x + at + j)

for j in tl.static_range(3):
    v = v * j
while tl.condition(n > 0):
    n -= 1

c = tl.tuple((n, m, f))
v = v + c[0] + c[2] + len(c)
q: tl.constexpr = tl.cdiv(B, 3)
v = v + q

c = (v, w)
for j in range(2):
    c = (c[0] + 1.0, c[1] + j)
v = c[0] + c[1]

w = w + tl.program_id(0) + tl.num_programs(axis=1) + tl.arange(0, 16)
v = v + n if n > 3 else v - m

done = tl.atomic_poll(k, 0, sem='acquire')
w = w + done.to(tl.int32)

h = tl.load(y + at, mask=(at < n) & (at % 2 == 0), other=0)
v = v + h * 2.0

q = t[:, :4]
q = tl.sum(q * q, axis=0)
if tl.sum(q) > f:
    t = t * 2
else:
    t = t - 1

w = (w << 2) >> 1 & 15 | 1 ^ n
w = -w // 3 % m + ~w
v = v / 2 % 3
v = -v if n < m else v + f
""".rstrip().split("\n\n")
)
"""What stands between ``OPENING`` and ``CLOSING``, one body a paragraph."""
