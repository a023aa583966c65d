"""Every field case is played at both entrances."""

import pytest


@pytest.fixture(autouse=True)
def at_both(entrance: str) -> str:
    """Where the clients of the test enter."""
    return entrance
