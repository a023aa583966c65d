"""Every field case is played at both entrances: a port of the proxy, and the addon's own listener."""

import pytest

import stage


@pytest.fixture(params=["proxy", "listener"], autouse=True)
def entrance(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the clients of the test enter."""
    monkeypatch.setattr(stage, "at_listener", request.param == "listener")
    return str(request.param)
