"""Fixtures that more than one directory of tests uses."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One certificate authority for all tests with a real proxy: making one takes a while."""
    return tmp_path_factory.mktemp("mitmproxy")
