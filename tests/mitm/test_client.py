"""Whose credentials a provider gets on behalf of a client."""

import pytest
from mitmproxy.test import tflow, tutils

from combos.core.facts import Headers
from combos.core.registry import Provider, Registry, build_registry
from combos.mitm.client import Client
from configs import config, document, provider

KEY = "Bearer mine"
FORWARD = provider(adapter="openai-responses", authMode="forward")


class Source:
    """Stands for the service: says whose credentials it was asked for."""

    def __init__(self, admission: str = "") -> None:
        self.admission = admission
        self.asked = 0

    def unusable(self, provider: Provider, *, may_forward: bool) -> str | None:
        return None if may_forward else "no_credentials"

    def own_credentials(self, provider: Provider) -> Headers:
        return ((b"own", provider.name.encode()),)

    def forwarded_credentials(self, provider: Provider, caller: Headers) -> Headers:
        return tuple(pair for pair in caller if pair[0].lower() == b"authorization")

    def holds_own_key(self, flow: object, registry: Registry) -> bool:
        self.asked += 1
        return self.admission == KEY


def registry(**fields: object) -> Registry:
    return build_registry(config(document(**fields)), 1)


def client(origin: str | None, *, key: str | None = KEY, source: Source | None = None, **fields: object) -> Client:
    request = tutils.treq(headers=((b"authorization", key.encode()),) if key else ())
    return Client(source or Source(), tflow.tflow(req=request), registry(**fields), origin)


@pytest.mark.parametrize(
    ("origin", "key", "forwarded"),
    [
        (None, KEY, True),
        ("alpha.example", KEY, True),
        ("Alpha.Example", KEY, True),
        ("beta.example", KEY, False),
        ("example", KEY, False),
        ("alpha.example.evil.test", KEY, False),
        (None, None, False),
        ("alpha.example", None, False),
    ],
)
def test_credentials_go_where_the_client_sent_them(origin: str | None, key: str | None, forwarded: bool) -> None:
    asked = client(origin, key=key, providers={"alpha": FORWARD, "beta": provider()})
    alpha = asked.registry.providers["alpha"]
    mine = ((b"authorization", KEY.encode()),)
    assert asked.credentials(alpha) == (mine if forwarded else ((b"own", b"alpha"),))
    assert asked.forwarded(alpha) == (mine if forwarded else ())
    assert asked.unusable(alpha) == (None if forwarded else "no_credentials")


@pytest.mark.parametrize("admission", [KEY, "another"])
def test_a_key_that_admits_to_the_proxy_is_forwarded_to_nobody(admission: str) -> None:
    keys = [{"name": "laptop", "key": "mine"}]
    asked = client(None, source=Source(admission), apiKeys=keys, providers={"alpha": FORWARD})
    assert bool(asked.forwarded(asked.registry.providers["alpha"])) is (admission != KEY)


def test_a_credential_that_opens_nothing_here_is_the_clients_own() -> None:
    asked = client(None, source=Source("another-key"))
    assert asked.forwarded(asked.registry.providers["alpha"])


def test_a_provider_with_a_key_of_its_own_gets_that_and_the_clients_is_not_looked_at() -> None:
    source = Source()
    asked = client(None, source=source)
    alpha = asked.registry.providers["alpha"]
    assert asked.credentials(alpha) == ((b"own", b"alpha"),)
    assert asked.unusable(alpha) == "no_credentials"
    assert source.asked == 0


def test_whose_key_it_is_is_asked_once() -> None:
    source = Source()
    asked = client(None, source=source, providers={"alpha": FORWARD})
    alpha = asked.registry.providers["alpha"]
    for _ in range(2):
        assert asked.credentials(alpha) == ((b"authorization", KEY.encode()),)
    assert source.asked == 1
