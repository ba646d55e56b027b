"""Code generators: lowerings of the tile IR to machine code, and the only users of LLVM."""

from __future__ import annotations
