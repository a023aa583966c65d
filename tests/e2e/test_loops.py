"""A target that is the proxy itself, under every name and at every port of its own, is not asked."""

import json
import socket
from pathlib import Path

import pytest

from combos.core.config import parse_config
from combos.core.errors import ConfigError
from ports import free_port
from rawclient import answer_of, request_bytes, talk
from stage import Case, stage, until
from wires import R

OK = R.answers("fine", stream=False)
NAMES = (
    "127.0.0.1", "localhost", "LOCALHOST.", "loop.localhost", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]", "127.0.0.1.",
)  # fmt: skip
ODD_NUMBERS = ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.0x", "017700000001", "[::ffff:0x7f000001]")


@pytest.mark.parametrize("place", ["proxy", "listener"])
async def test_no_name_of_the_proxy_is_asked(place: str, confdir: Path) -> None:
    port, admin = free_port(), free_port()
    target = port if place == "proxy" else admin
    cases = [
        Case(R, beta=OK, urls={"alpha": f"http://{name}:{target}/v1"}, targets=["alpha/m", "beta/m2"])
        for name in (*NAMES, socket.gethostname())
        if not isinstance(faults(f"http://{name}:{target}/v1"), ConfigError)
    ]
    assert len(cases) > 5
    options = {"combos_admin_listen": f"127.0.0.1:{admin}"}
    async with stage(confdir, *cases, combos_options=options, listen_port=port) as on:
        await until(lambda: on.combos.admin_address is not None)
        for case in cases:
            answer = await on.ask(case, stream=False)
            assert b"fine" in answer.body, case._urls
            assert len(case.records) == 1, "the request did not come back"
            assert case.calls == ["beta"]
        # A model id of a provider that is the proxy: whichever port the request came in by, it ends.
        body = json.dumps(R.request(f"{cases[0].provider('alpha')}/m", stream=False)).encode()
        for entrance in (port, admin):
            fields = [(b"Host", b"127.0.0.1:%d" % entrance)]
            async with talk(entrance, request_bytes("POST", "/v1/responses", fields, body)) as started:
                answer = await answer_of(started)
                assert answer.status in (502, 503, 508), answer


def faults(url: str) -> ConfigError | None:
    row = {"adapter": "openai-responses", "baseUrl": url, "apiKey": "x-key", "allowPrivateNetwork": True}
    try:
        parse_config({"providers": {"a": row}})
    except ConfigError as error:
        return error
    return None


@pytest.mark.parametrize("name", ODD_NUMBERS)
def test_addresses_that_only_resolvers_read_are_no_addresses(name: str) -> None:
    assert isinstance(faults(f"http://{name}:8080/v1"), ConfigError)


async def test_a_loop_over_another_proxy_ends(confdir: Path) -> None:
    """The provider's own proxy sends the request back to us: the mark in it is recognised."""
    port = free_port()
    case = Case(R, beta=OK, urls={"alpha": "http://vendor.test:80/v1"}, targets=["alpha/m", "beta/m2"])
    case._providers = {"alpha": {"proxy": f"http://127.0.0.1:{port}"}}
    async with stage(confdir, case, listen_port=port) as on:
        answer = await on.ask(case, stream=False)
        assert b"fine" in answer.body
        assert case.calls == ["beta"]
