"""What kernels import as ``tl``: the language's functions, types and iterators.

The names come from the tables of operations; ``__init__.pyi`` beside this file lists them for
editors and type checkers and is written from the same tables by ``scripts/generate_stubs.py``.
"""

from __future__ import annotations

from tritium.ops import families as _families  # noqa: F401 - fills the tables
from tritium.ops.emit import SURFACE as _SURFACE

from . import core as core
from . import math as math
from . import names as _names
from . import random as random
from . import standard as standard

globals().update(_names.VALUES)
globals().update(_SURFACE)
