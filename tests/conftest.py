"""Fixtures that more than one directory of tests uses."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from mitmproxy.certs import CertStore

import stage

# How long an example takes tells what else the machine does. All other settings stay as they are.
settings.register_profile("any-machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


@pytest.fixture(scope="session")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One certificate authority for all tests with a real proxy: making one takes a while.

    It is made here, whole: whichever test comes first may be one in which no file can be written.
    """
    folder = tmp_path_factory.mktemp("mitmproxy")
    CertStore.create_store(folder, "mitmproxy", key_size=2048)
    return folder


@pytest.fixture(params=["proxy", "listener"])
def entrance(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the clients of a stage enter: at a port of the proxy, and at the addon's own listener."""
    monkeypatch.setattr(stage, "at_listener", request.param == "listener")
    return str(request.param)
