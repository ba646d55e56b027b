"""The same work written for numba: one loop over elements or rows, parallel from two threads on."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import prange

EPSILON = np.float32(1e-5)
ONE = np.float32(1.0)


def add(x, y, out):
    for i in prange(x.size):
        out[i] = x[i] + y[i]


def chain(x, y, z, out):
    for i in prange(x.size):
        out[i] = (math.exp(x[i]) + y[i]) * z[i]


def softmax(x, out):
    rows, columns = x.shape
    for row in prange(rows):
        largest = x[row, 0]
        for j in range(columns):
            largest = max(largest, x[row, j])
        total = np.float32(0.0)
        for j in range(columns):
            e = math.exp(x[row, j] - largest)
            out[row, j] = e
            total += e
        scale = ONE / total
        for j in range(columns):
            out[row, j] *= scale


def layernorm(x, weight, bias, out):
    rows, columns = x.shape
    for row in prange(rows):
        total = np.float32(0.0)
        for j in range(columns):
            total += x[row, j]
        mean = total / np.float32(columns)
        square = np.float32(0.0)
        for j in range(columns):
            square += (x[row, j] - mean) ** 2
        rstd = ONE / math.sqrt(square / np.float32(columns) + EPSILON)
        for j in range(columns):
            out[row, j] = (x[row, j] - mean) * rstd * weight[j] + bias[j]


def rmsnorm(x, weight, out):
    rows, columns = x.shape
    for row in prange(rows):
        square = np.float32(0.0)
        for j in range(columns):
            square += x[row, j] * x[row, j]
        rstd = ONE / math.sqrt(square / np.float32(columns) + EPSILON)
        for j in range(columns):
            out[row, j] = x[row, j] * rstd * weight[j]


def cross_entropy(x, target, loss):
    rows, columns = x.shape
    for row in prange(rows):
        largest = x[row, 0]
        for j in range(columns):
            largest = max(largest, x[row, j])
        total = np.float32(0.0)
        for j in range(columns):
            total += math.exp(x[row, j] - largest)
        loss[row] = math.log(total) + largest - x[row, target[row]]


LOOPS = {f.__name__: f for f in (add, chain, softmax, layernorm, rmsnorm, cross_entropy)}


@functools.cache
def build(name: str, threads: int) -> Callable[..., Any]:
    """The compiled loop ``name``; with fast math, else numba's reductions are scalar."""
    return numba.njit(parallel=threads > 1, fastmath=True, nogil=True)(LOOPS[name])
