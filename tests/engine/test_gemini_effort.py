"""The effort of a decision in Gemini's own words, by the family of the model."""

from typing import Any

import pytest

from combos.core.registry import Target
from combos.engine.events import Decided, Started
from combos.engine.gemini_effort import gemini_effort
from combos.engine.record import DecisionRecord
from decisions import provider, registry, target
from playbook import World, decides, sends

PATH = ("generationConfig", "thinkingConfig")
LADDER = ["low", "medium", "high", "max"]


def gemini(model: str, ladder: list[str] | None = None) -> Target:
    row = provider(adapter="google", baseUrl="https://generativelanguage.example", reasoningEfforts=ladder or LADDER)
    return registry([target(f"vertex/{model}")], providers={"vertex": row}).combos["main"].targets[0]


def thinking(**config: Any) -> dict[str, Any]:
    return {"generationConfig": {"thinkingConfig": config, "temperature": 1}}


@pytest.mark.parametrize(
    ("model", "document", "effort", "config"),
    [
        ("gemini-3-pro", {}, "low", {"thinkingLevel": "LOW"}),
        ("gemini-3-pro", {}, "max", {"thinkingLevel": "HIGH"}),
        ("gemini-2.5-pro", {}, "low", {"thinkingBudget": 2048}),
        ("gemini-2.5-pro", {}, "max", {"thinkingBudget": 32768}),
        (
            "gemini-3-pro",
            thinking(thinkingBudget=9, includeThoughts=True),
            "medium",
            {"includeThoughts": True, "thinkingLevel": "MEDIUM"},
        ),
        ("gemini-3-pro", thinking(thinkingLevel="HIGH", includeThoughts=True), None, {"includeThoughts": True}),
        ("gemini-3-pro", thinking(thinkingLevel="HIGH"), None, None),
        ("gemini-2.0-flash", thinking(thinkingBudget=5), "low", None),
    ],
)
def test_the_only_effort_in_the_body(model: str, document: Any, effort: str | None, config: Any) -> None:
    assert gemini_effort(document, gemini(model), effort) == {PATH: config}


@pytest.mark.parametrize(
    ("document", "effort"),
    [({}, None), ({"generationConfig": None}, None), (thinking(thinkingLevel="LOW"), "low"), (thinking(), None)],
)
def test_what_is_right_stays(document: Any, effort: str | None) -> None:
    assert gemini_effort(document, gemini("gemini-3-pro"), effort) == {}


def test_an_effort_that_the_ladder_has_lost() -> None:
    changes = gemini_effort({}, gemini("gemini-3-pro", ["low", "high"]), "medium")
    assert changes == {PATH: {"thinkingLevel": "LOW"}}


def test_in_a_turn() -> None:
    row = {
        "adapter": "google",
        "baseUrl": "http://127.0.0.1:7101",
        "apiKey": "k",
        "allowPrivateNetwork": True,
        "reasoningEfforts": LADDER,
    }
    combo = {"strategy": "jev", "targets": [target("vertex/gemini-3-pro")]}
    world = World({"providers": {"vertex": row}, "combos": {"main": combo}}, fails_open=False)
    body = b'{"contents":[{"parts":[{"text":"hi"}]}]}'
    play = world.turn(path="/v1beta/models/combo/main:generateContent", body=body)
    play.rewrites = True  # the invariant knows effort members at the top of a body only
    play >> Started() << decides("vertex/gemini-3-pro")
    (
        play
        >> Decided(DecisionRecord("typesafe", "apply", "vertex", "gemini-3-pro", "low", 1))
        << sends("vertex/gemini-3-pro")
    )
    sent = play.sends[0].request.body
    assert sent == body[:-1] + b',"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}}'
