"""What is refused before a target is asked, and which refusal fits when none can be."""

import base64

import pytest

from combos.core.facts import TransportFault
from combos.engine.events import Failed, Started
from combos.engine.record import Outcome
from playbook import World, config, discards, finishes, header, provider, replies, sends

CHATGPT = {"adapter": "openai-responses", "baseUrl": "https://chatgpt.com/backend-api/codex", "authMode": "forward"}
TOKEN = base64.urlsafe_b64encode(b"\x80" + bytes(8 + 16 + 48 + 32)).decode()
TASK = {
    "input": [
        {
            "type": "agent_message",
            "author": "a",
            "recipient": "b",
            "content": [{"type": "encrypted_content", "encrypted_content": TOKEN}],
        }
    ]
}
IMAGE = {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:x"}]}]}


def test_images_are_refused_by_a_text_only_combo_before_anything_else() -> None:
    world = World(config(imageInput="disabled", alias="team/daily", strategy="round-robin"))
    for model in ("combo/main", "team/daily"):
        play = world.turn(model, **IMAGE) >> Started()
        play << replies(400, code='Combo \\"main\\" does not accept image input') << finishes(Outcome.REFUSED)
    assert world.state.peek_rotation("main").weights == {}
    world.turn() >> Started() << sends("alpha/m1")


def test_images_pass_by_default() -> None:
    World(config()).turn(**IMAGE) >> Started() << sends("alpha/m1")


def encrypted(**combo: object) -> World:
    return World(config("alpha/m1", "delta/m", "delta/n", providers={"delta": CHATGPT}, **combo))


def test_an_encrypted_task_goes_to_native_targets_only() -> None:
    play = encrypted().turn(**TASK) >> Started() << sends("delta/m") >> Failed(0, TransportFault.RESET)
    play << discards(0) << sends("delta/n") >> Failed(1, TransportFault.RESET)
    play << replies(502) << discards(1) << finishes(Outcome.EXHAUSTED)


def test_a_readable_task_goes_anywhere() -> None:
    encrypted().turn() >> Started() << sends("alpha/m1")


def test_without_a_native_target_the_task_is_refused() -> None:
    play = World(config()).turn(**TASK) >> Started()
    play << replies(400, code="unreadable_encrypted_agent_task") << finishes(Outcome.REFUSED)


def test_native_cooling_and_another_available_is_refused_as_well() -> None:
    world = encrypted()
    play = world.turn(**TASK) >> Started() << sends("delta/m")
    play >> Failed(0, TransportFault.RESET) << discards(0) << sends("delta/n") >> Failed(1, TransportFault.RESET)
    again = world.turn(**TASK) >> Started()
    again << replies(400, code="unreadable_encrypted_agent_task") << finishes(Outcome.REFUSED)


def test_nothing_available_at_all_is_unavailable() -> None:
    world = encrypted()
    world.unusable = {"alpha": "no_credentials", "delta": "no_credentials"}
    play = world.turn(**TASK) >> Started() << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)
    assert header(play.log[0], b"retry-after") is None


def test_the_wait_looks_at_native_targets_only() -> None:
    world = encrypted(waitForCooldownMs=90_000, cooldownMs=60_000)
    play = world.turn(**TASK) >> Started() << sends("delta/m") >> Failed(0, TransportFault.RESET) << discards(0)
    play << sends("delta/n") >> Failed(1, TransportFault.RESET)
    waiting = (world.turn(**TASK) >> Started()).pending
    assert [type(c).__name__ for c in waiting] == ["Wait"]


@pytest.mark.parametrize(
    ("beta", "status", "code"),
    [
        (provider("beta", "M", disabled=True), 400, "unsupported_by_target"),
        (provider("beta", "C"), 400, "unsupported_by_target"),
        (provider("beta", "R"), 503, "combo_unavailable"),
    ],
)
def test_dialects_alone_may_exclude_every_target(beta: dict[str, object], status: int, code: str) -> None:
    world = World(config(providers={"alpha": provider("alpha", "M"), "beta": beta}))
    world.unusable = {"beta": "no_credentials"}
    world.turn(background=True) >> Started() << replies(status, code=code)
