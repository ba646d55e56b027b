from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ir.random_ir import runnable_function
from tests.passes.meaning import check_meaning

from tritium.passes import DEFAULT, PASSES


@pytest.mark.parametrize("pipeline", [*sorted(PASSES), DEFAULT])
@given(st.integers(0, 1 << 32))
@settings(max_examples=60)
def test_random_functions_keep_their_meaning(pipeline: str, seed: int) -> None:
    check_meaning(runnable_function(Random(seed)), pipeline)
