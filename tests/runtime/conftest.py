"""What tests of launches share."""

from __future__ import annotations

import pytest
from tests.runtime.adding import Adding


@pytest.fixture
def adding() -> Adding:
    """A kernel that has been launched natively."""
    return Adding()
