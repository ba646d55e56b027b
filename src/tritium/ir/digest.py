"""The hash by which texts and files are told apart: BLAKE2b of 32 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b
else:
    try:
        # hashlib would load OpenSSL, which takes longer than a warm start has.
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b


def digest(data: bytes | memoryview = b"") -> blake2b:
    """A hash object, as hashlib's, that has been given ``data``."""
    return blake2b(data, digest_size=32)
