"""The configuration under which the proxy is run: providers of every dialect, and many combos over them.

A *private* combo is asked by one client at a time, so that it is known beforehand which targets a request has to reach.
*Shared* combos are asked by everybody, with every strategy.
"""

import itertools
import random
from dataclasses import dataclass, field
from typing import Any

ADAPTERS = {
    "chat": "openai-chat",
    "responses": "openai-responses",
    "messages": "anthropic",
    "gemini": "google",
}


@dataclass(frozen=True)
class Provider:
    """One provider. `listens`: `plain`, `tls`, `dead` (nobody does), `mute` (TLS is expected and not spoken)."""

    name: str
    dialect: str
    listens: str = "plain"
    keys: int = 1

    def key(self, number: int = 0) -> str:
        """A credential that must reach nobody else."""
        return f"canary-key-{self.name}-{number}"

    @property
    def answers(self) -> bool:
        """Whether requests to it arrive anywhere."""
        return self.listens in ("plain", "tls")


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("chat-a", "chat"),
        Provider("chat-b", "chat"),
        Provider("resp-a", "responses"),
        Provider("resp-b", "responses"),
        Provider("msg-a", "messages"),
        Provider("msg-b", "messages"),
        Provider("gem-a", "gemini"),
        Provider("gem-b", "gemini"),
        Provider("tls-c", "chat", "tls"),
        Provider("tls-m", "messages", "tls"),
        Provider("pool", "chat", keys=4),
        Provider("dead", "responses", "dead"),
        Provider("mute", "chat", "mute"),
    )
}


@dataclass(frozen=True)
class Target:
    """One target of a combo."""

    provider: str
    model: str

    @property
    def key(self) -> str:
        """As records name it."""
        return f"{self.provider}/{self.model}"

    @property
    def place(self) -> Provider:
        """Its provider."""
        return PROVIDERS[self.provider]


@dataclass(frozen=True)
class Combo:
    """One combo. `strict`: which target a request must reach is known."""

    id: str
    targets: tuple[Target, ...]
    fields: dict[str, Any] = field(default_factory=dict, hash=False)
    strict: bool = True

    def document(self) -> dict[str, Any]:
        """As the configuration file has it."""
        return {
            "targets": [{"provider": target.provider, "model": target.model} for target in self.targets],
            "cooldownMs": 1,
            **self.fields,
        }


SHAPES = 40
_CONNECT_MS = 10_000


def shape(number: int) -> tuple[Target, ...]:
    """The targets of the private combos of one shape: the same for every seed."""
    rng = random.Random(f"shape {number}")
    count = rng.choice((1, 2, 2, 3, 3, 4))
    names = rng.sample(sorted(PROVIDERS), count)
    models = [rng.choice(("m1", "m2")) for _ in names]
    if count > 1 and rng.random() < 0.2:
        names[1], models[0], models[1] = names[0], "m1", "m2"
    return tuple(Target(name, model) for name, model in zip(names, models, strict=True))


_SHARED: tuple[dict[str, Any], ...] = (
    {"strategy": "round-robin"},
    {"strategy": "round-robin", "stickyLimit": 3, "affinity": "conversation"},
    {"strategy": "random"},
    {"strategy": "least-used"},
    {"strategy": "reset-window"},
    {"waitForCooldownMs": 50},
    {"waitForCooldownMs": 30, "cooldownMs": 20},
    {"hedgeAfterMs": 5},
    {"hedgeAfterMs": 30, "strategy": "random"},
    {"firstOutputTimeoutMs": 40},
    {"contextOverflow": "hop"},
    {"cooldownMs": 300},
)


def shared() -> list[Combo]:
    """The combos that everybody asks."""
    made = []
    for number, (fields, again) in enumerate(itertools.product(_SHARED, range(2))):
        rng = random.Random(f"shared {number} {again}")
        names = rng.sample([name for name in sorted(PROVIDERS) if PROVIDERS[name].answers], 4)
        made.append(Combo(f"all{number}", tuple(Target(name, "m1") for name in names), fields, strict=False))
    return made


def private(copies: int) -> list[list[Combo]]:
    """The private combos: for each shape, as many as may be in use at once."""
    return [[Combo(f"own{number}-{copy}", shape(number)) for copy in range(copies)] for number in range(SHAPES)]


def provider_document(provider: Provider, origins: dict[str, str], patience_ms: int) -> dict[str, Any]:
    """A provider as the configuration file has it."""
    base = f"{origins[provider.listens]}/{provider.name}"
    made: dict[str, Any] = {
        "adapter": ADAPTERS[provider.dialect],
        "baseUrl": base if provider.dialect == "messages" else f"{base}/v1",
        "allowPrivateNetwork": True,
        "liveModels": False,
        "connectTimeoutMs": max(_CONNECT_MS, patience_ms),
        "headTimeoutMs": patience_ms,
        "idleTimeoutMs": patience_ms,
    }
    if provider.keys == 1:
        return {**made, "apiKey": provider.key()}
    pool = [{"id": f"k{number}", "key": provider.key(number)} for number in range(provider.keys)]
    return {**made, "apiKeyPool": pool, "apiKeyPoolStrategy": "round-robin"}


def document(combos: list[Combo], origins: dict[str, str], patience_ms: int) -> dict[str, Any]:
    """The whole configuration."""
    providers = PROVIDERS.values()
    return {
        "providers": {provider.name: provider_document(provider, origins, patience_ms) for provider in providers},
        "combos": {combo.id: combo.document() for combo in combos},
    }
