"""Every generated case of the operations as a kernel on the GPU, and further extents of each.

Integer results are equal bit for bit with 1, 2, 4 and 8 warps: each of these is compared with the
reference rule by a class that is exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.backends.nvptx.gpu.batches import Batch, plan
from tests.backends.nvptx.gpu.compiling import Farm
from tests.backends.nvptx.gpu.device import Device
from tests.backends.nvptx.gpu.running import COUNTED, run_batch


@pytest.mark.gpu
@pytest.mark.parametrize("batch", list(plan()), ids=lambda batch: batch.name)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cases(
    batch: Batch, farm: Farm, device: Device, record_property: Callable[[str, object], None]
) -> None:
    with np.errstate(all="ignore"):
        wrong = run_batch(device, batch, farm.parts(batch), lambda: farm.singly(batch))
    record_property(f"{COUNTED}cases on the GPU", len(batch.cases))
    assert wrong == []
