"""One certificate authority for all tests with a real proxy."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mitmproxy")
