import pytest

from combos.core.eligibility import Constraints, Reason, reason_out, standing_reason
from combos.core.facts import Dialect
from combos.core.registry import Provider, Target, make_target
from playbook import World, config, provider

CHATGPT = {"adapter": "openai-responses", "baseUrl": "https://chatgpt.com/backend-api/codex/", "authMode": "forward"}


def asked(**changes: object) -> Constraints:
    base: dict[str, object] = {
        "can_speak": lambda target: target.dialect is Dialect.RESPONSES,
        "encrypted": False,
        "unusable": lambda _: None,
        "spent": lambda _: False,
        "tried": (),
        "cooling_ms": lambda _: 0,
    }
    return Constraints(**{**base, **changes})  # type: ignore[arg-type]


@pytest.fixture
def alpha() -> Target:
    return World(config()).registry.combos["main"].targets[0]


def made(fields: dict[str, object]) -> Target:
    world = World(config(providers={"delta": fields}))
    return make_target(world.registry.providers["delta"], "m")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"unusable": lambda _: "no_credentials"}, "no_credentials"),
        ({"unusable": lambda _: "self_loop"}, "self_loop"),
        ({"can_speak": lambda _: False}, "unsupported_by_target"),
        ({"encrypted": True}, "encrypted_task"),
        ({"spent": lambda _: True}, "quota"),
        ({"tried": {"alpha/m1"}}, "tried"),
        ({"cooling_ms": lambda _: 1}, "cooling"),
    ],
)
def test_reasons(alpha: Target, changes: dict[str, object], reason: str | None) -> None:
    assert reason_out(alpha, asked(**changes)) == reason


def test_the_first_reason_shows() -> None:
    everything = asked(
        can_speak=lambda _: False,
        encrypted=True,
        unusable=lambda _: "no_credentials",
        spent=lambda _: True,
        tried={"delta/m"},
        cooling_ms=lambda _: 9,
    )
    missing = Target("x/m", "x", "m", None, None)
    assert reason_out(missing, everything) == Reason.PROVIDER_MISSING
    assert reason_out(made(provider("delta", disabled=True)), everything) == Reason.PROVIDER_DISABLED
    assert reason_out(made(provider("delta")), everything) == Reason.UNSUPPORTED


def test_a_decision_service_is_no_target() -> None:
    service = {"adapter": "jev-decision", "baseUrl": "https://api.typesafe.ai/v1/systemone"}
    world = World(config(providers={"delta": service}))
    row: Provider = world.registry.providers["delta"]
    assert reason_out(make_target(row, "m"), asked()) == Reason.DECISION_ONLY


def test_cooling_is_the_one_reason_that_waiting_removes(alpha: Target) -> None:
    assert standing_reason(alpha, asked(cooling_ms=lambda _: 5)) is None


@pytest.mark.parametrize(
    ("changes", "reads"),
    [
        ({}, True),
        ({"baseUrl": "https://chatgpt.com/backend-api/codex"}, True),
        ({"baseUrl": "https://api.openai.com/v1"}, False),
        ({"baseUrl": "https://chatgpt.com.evil.example/backend-api/codex"}, False),
        ({"authMode": "key", "apiKey": "k"}, False),
    ],
)
def test_only_the_native_backend_reads_encrypted_tasks(changes: dict[str, object], reads: bool) -> None:
    reason = reason_out(made({**CHATGPT, **changes}), asked(encrypted=True))
    assert reason == (None if reads else Reason.ENCRYPTED_TASK)
