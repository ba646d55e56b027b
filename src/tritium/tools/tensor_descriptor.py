"""Tensor descriptors made on the host."""

from __future__ import annotations

from tritium.runtime.descriptors import TensorDescriptor as TensorDescriptor

__all__ = ["TensorDescriptor"]
