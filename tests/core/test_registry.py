"""Which combo or target a model id names."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.config_provider import Adapter
from combos.core.facts import Dialect
from combos.core.registry import (
    ComboRoute,
    DirectRoute,
    Registry,
    Route,
    UnknownCombo,
    build_registry,
    is_canonical_chatgpt,
    known_models,
)
from configs import combo, config, document, provider

CHATGPT = provider(adapter="openai-responses", authMode="forward", baseUrl="https://chatgpt.com/backend-api/codex")
DOCUMENT: dict[str, Any] = {
    "providers": {
        "alpha": provider(
            alias="Al",
            models=["m1", "m2--fast", "vendor/x", "alpha/whole"],
            defaultModel="dm",
            modelAliases={"m1": "short", "m3": "twice"},
        ),
        "beta": provider(models=["m1", "only-beta"], modelAliases={"m4": "twice", "m5": "once"}),
        "off": provider(disabled=True, models=["off-model"], defaultModel="off-default", modelAliases={"o": "offal"}),
        "openai": CHATGPT,
        "openai-apikey": provider(adapter="openai-responses"),
        "anthropic-team": provider(adapter="anthropic"),
        "groq": provider(),
        "row": provider(adapter="jev-decision", models=["jm"], defaultModel="jd", alias="rw"),
    },
    "combos": {
        "main": combo(alias="team/daily"),
        "sol": combo(alias="gpt-5.6-sol", nativeAlias=True, displayName="Mine"),
        "daily--fast": combo(alias="daily"),
    },
    "codexAccountNamespaces": {"work": "@main"},
}


def registry(**top: Any) -> Registry:
    return build_registry(config({**DOCUMENT, **top}), 3)


def seen(route: Route | None) -> str | None:
    """A route as one text: `combo:<id>`, `<target key>`, `unknown:<id>`, with `+<tier or effort>`."""
    match route:
        case None:
            return None
        case UnknownCombo(id=combo_id):
            return f"unknown:{combo_id}"
        case ComboRoute(combo=found):
            text = f"combo:{found.id}"
        case DirectRoute(target=target):
            text = target.key
    return text + "".join(f"+{effect}" for effect in (route.service_tier, route.effort) if effect)


EXPLICIT = [
    ("combo/main", "combo:main"),
    ("team/daily", "combo:main"),
    ("gpt-5.6-sol", "combo:sol"),
    ("combo/sol", "combo:sol"),
    ("daily", "combo:daily--fast"),
    ("combo/MAIN", "unknown:MAIN"),
    ("combo/nope", "unknown:nope"),
    ("combo/a/b", "unknown:a/b"),
    ("combo/team/daily", "unknown:team/daily"),
    ("combo/", None),
    ("combo", None),
    ("Combo/main", None),
    (" combo/main", None),
    ("combo/main ", "unknown:main "),
    ("Daily", None),
    ("team/Daily", None),
    ("main", None),
    ("alpha/m1", "alpha/m1"),
    ("alpha/anything/at:all", "alpha/anything/at:all"),
    ("Alpha/m1", None),
    ("AL/m1", "alpha/m1"),
    ("al/m1", "alpha/m1"),
    ("alpha/short", "alpha/m1"),
    ("alpha/whole", "alpha/alpha/whole"),
    ("al/alpha/whole", "alpha/alpha/whole"),
    ("off/x", "off/x"),
    ("row/jm", None),
    ("rw/jm", None),
    ("work/gpt-5.6-sol", None),
    ("openai-apikey/gpt-5.6-sol", "openai-apikey/gpt-5.6-sol"),
    ("openai/gpt-5.6-sol", "openai/gpt-5.6-sol"),
    ("vendor/x", None),
    ("absent/m", None),
    ("alpha/", None),
    ("/m1", None),
    ("gpt-5.5", None),
    ("", None),
]


@pytest.mark.parametrize(("model", "expected"), EXPLICIT)
def test_resolve(model: str, expected: str | None) -> None:
    assert seen(registry().resolve(model)) == expected


FAST = [
    ("combo/main--fast", "combo:main+priority"),
    ("team/daily--fast", "combo:main+priority"),
    ("gpt-5.6-sol--fast", "combo:sol+priority"),
    ("alpha/m1--fast", "alpha/m1+priority"),
    ("alpha/anything--fast", "alpha/anything+priority"),
    ("combo/daily--fast", "combo:daily--fast"),
    ("daily--fast", "combo:daily--fast+priority"),
    ("alpha/m2--fast", "alpha/m2--fast"),
    ("alpha/m2--fast--fast", "alpha/m2--fast+priority"),
    ("off/m--fast", "off/m--fast"),
    ("combo/nope--fast", "unknown:nope--fast"),
    ("combo/main-fast", "unknown:main-fast"),
    ("combo/main--fast--fast", "unknown:main--fast--fast"),
    ("combo/main--slow", "unknown:main--slow"),
    ("--fast", None),
    ("absent/m--fast", None),
]


@pytest.mark.parametrize(("model", "expected"), FAST)
def test_fast_suffix(model: str, expected: str | None) -> None:
    assert seen(registry().resolve(model)) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [("combo/main--fast", "unknown:main--fast"), ("alpha/m1--fast", "alpha/m1--fast"), ("combo/main", "combo:main")],
)
def test_fast_suffix_can_be_switched_off(model: str, expected: str) -> None:
    assert seen(registry(fastRows=False).resolve(model)) == expected


@pytest.mark.parametrize(
    ("model", "off", "on"),
    [
        ("combo/main--high", "unknown:main--high", "combo:main+high"),
        ("combo/main--minimal", "unknown:main--minimal", "combo:main+minimal"),
        ("team/daily--ultra", None, "combo:main+ultra"),
        ("alpha/m1--low", "alpha/m1--low", "alpha/m1+low"),
        ("combo/main--none", "unknown:main--none", "unknown:main--none"),
        ("combo/main--HIGH", "unknown:main--HIGH", "unknown:main--HIGH"),
        ("combo/main--fast--high", "unknown:main--fast--high", "unknown:main--fast--high"),
    ],
)
def test_effort_suffix(model: str, off: str | None, on: str | None) -> None:
    assert seen(registry().resolve(model)) == off
    assert seen(registry(cursorEffortRows=True).resolve(model)) == on


BARE = [
    ("gpt-5.5", "openai/gpt-5.5"),
    ("o3-mini", "openai/o3-mini"),
    ("codex-auto-review", "openai/codex-auto-review"),
    ("codex-mini", None),
    ("dm", "alpha/dm"),
    ("off-default", None),
    ("off-model", None),
    ("offal", None),
    ("jd", None),
    ("jm", None),
    ("claude-opus-4-8", "anthropic-team/claude-opus-4-8"),
    ("llama-3", "groq/llama-3"),
    ("mixtral-8", "groq/mixtral-8"),
    ("gemma-3", "groq/gemma-3"),
    ("m1", "alpha/m1"),
    ("only-beta", "beta/only-beta"),
    ("vendor/x", "alpha/vendor/x"),
    ("short", "alpha/m1"),
    ("once", "beta/m5"),
    ("twice", None),
    ("unlisted", None),
    ("work/gpt-5.5", None),
    ("work/unlisted", None),
    ("", None),
    ("gpt-5.5--fast", "openai/gpt-5.5+priority"),
    ("only-beta--fast", "beta/only-beta+priority"),
    ("once--fast", "beta/m5+priority"),
    ("m2--fast", "alpha/m2--fast"),
    ("unlisted--fast", None),
]


@pytest.mark.parametrize(("model", "expected"), BARE)
def test_resolve_bare(model: str, expected: str | None) -> None:
    assert seen(registry().resolve_bare(model)) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("unlisted", "beta/unlisted"),
        ("absent/m", "beta/absent/m"),
        ("unlisted--fast", "beta/unlisted--fast"),
        ("twice", None),
        ("work/gpt-5.5", None),
        ("m1", "alpha/m1"),
    ],
)
def test_default_provider_takes_the_rest(model: str, expected: str | None) -> None:
    assert seen(registry(defaultProvider="beta").resolve_bare(model)) == expected


def test_a_disabled_default_provider_takes_nothing() -> None:
    assert registry(defaultProvider="off").resolve_bare("unlisted") is None


@pytest.mark.parametrize(
    "providers", [{"alpha": provider(models=["gpt-5.5"])}, {"openai": {**CHATGPT, "disabled": True}}]
)
def test_native_ids_need_the_native_provider(providers: dict[str, Any]) -> None:
    made = build_registry(config({"providers": providers}), 1)
    assert made.resolve_bare("gpt-5.5") is None


def test_effort_suffix_of_bare_ids() -> None:
    made = registry(cursorEffortRows=True)
    assert seen(made.resolve_bare("gpt-5.5--high")) == "openai/gpt-5.5+high"
    assert seen(made.resolve_bare("m1--low")) == "alpha/m1+low"


def test_without_combos_the_namespace_belongs_to_a_provider_of_that_name() -> None:
    made = build_registry(config({"providers": {"combo": provider()}}), 1)
    assert seen(made.resolve("combo/x")) == "combo/x"
    assert seen(build_registry(config({}), 1).resolve("combo/x")) == "unknown:x"


def test_an_alias_of_two_providers_names_none() -> None:
    rows = {"a": provider(alias="x"), "b": provider(alias="X")}
    made = build_registry(config({"providers": rows}), 1)
    assert made.resolve("x/m") is None


def test_a_provider_name_beats_another_providers_alias() -> None:
    rows = {"a": provider(alias="b"), "b": provider()}
    made = build_registry(config({"providers": rows}), 1)
    assert seen(made.resolve("b/m")) == "b/m"
    assert seen(made.resolve("B/m")) == "a/m"


@pytest.mark.parametrize(
    ("adapter", "dialect"),
    [
        ("openai-responses", Dialect.RESPONSES),
        ("openai-chat", Dialect.CHAT),
        ("anthropic", Dialect.MESSAGES),
        ("google", Dialect.GEMINI),
        ("azure-openai", Dialect.RESPONSES),
        ("azure", Dialect.RESPONSES),
        ("ollama-native", Dialect.CHAT),
    ],
)
def test_dialects(adapter: str, dialect: Dialect) -> None:
    made = build_registry(config(document(providers={"alpha": provider(adapter=adapter)})), 1)
    assert made.combos["main"].targets[0].dialect is dialect


def test_an_adapter_of_one_model() -> None:
    row = provider(adapter="openai-chat", modelAdapters={"m": "anthropic"})
    targets = [{"provider": "alpha", "model": model} for model in ("m", "m:4b", "n")]
    made = build_registry(config(document(providers={"alpha": row}, combos={"c": {"targets": targets}})), 1)
    found = [(target.adapter, target.dialect) for target in made.combos["c"].targets]
    messages = (Adapter.ANTHROPIC, Dialect.MESSAGES)
    assert found == [messages, messages, (Adapter.OPENAI_CHAT, Dialect.CHAT)]


def test_targets() -> None:
    targets = [
        {"provider": "alpha", "model": "m", "weight": 3},
        {"provider": "absent", "model": "a/b", "lastResort": True},
    ]
    row = provider(reasoningEfforts=["low", "high"])
    made = build_registry(config(document(providers={"alpha": row}, combos={"c": {"targets": targets}})), 1)
    first, second = made.combos["c"].targets
    assert (first.key, first.weight, first.last_resort, first.ladder) == ("alpha/m", 3, False, ("low", "high"))
    assert first.provider is made.providers["alpha"]
    assert (second.key, second.provider, second.dialect, second.ladder) == ("absent/a/b", None, None, None)
    assert (second.provider_name, second.model, second.weight, second.last_resort) == ("absent", "a/b", 1, True)


def test_registry_carries_its_configuration() -> None:
    made = registry()
    assert made.generation == 3
    assert list(made.combos) == ["main", "sol", "daily--fast"]
    assert made.aliases["team/daily"] is made.combos["main"]
    assert made.combos["main"].config is made.config.combos["main"]


def test_canonical_chatgpt() -> None:
    rows = registry().providers
    assert [name for name, row in rows.items() if is_canonical_chatgpt(row)] == ["openai"]


def test_known_models() -> None:
    row = config(
        {"providers": {"a": provider(models=["x"], retainModels=["y"], selectedModels=["z"], defaultModel="d")}}
    ).providers["a"]
    assert known_models(row) == {"x", "y", "z", "d"}


MODELS = st.text(max_size=12) | st.builds(
    "{}{}{}".format,
    st.sampled_from(["combo/", "alpha/", "al/", "team/", "work/", "row/", ""]),
    st.sampled_from(["main", "daily", "m1", "short", "gpt-5.5", "x", ""]),
    st.sampled_from(["", "--fast", "--high", "--fast--high", "-fast"]),
)


@given(MODELS)
def test_the_combo_namespace_never_reaches_a_provider(model: str) -> None:
    made = registry(cursorEffortRows=True, defaultProvider="beta")
    route = made.resolve(model)
    if model.startswith("combo/") and model != "combo/":
        assert isinstance(route, ComboRoute | UnknownCombo)


@given(MODELS | st.sampled_from([name for name, _ in EXPLICIT]), st.booleans())
def test_names_that_are_looked_up_lead_where_reading_them_does(model: str, has_combos: bool) -> None:
    providers = {**DOCUMENT["providers"], "combo": provider()}
    made = registry() if has_combos else registry(combos={}, providers=providers)
    slow = copy.copy(made)
    object.__setattr__(slow, "names", {})
    assert made.resolve(model) == slow.resolve(model)


def test_the_names_of_combos() -> None:
    names = {"combo/main", "team/daily", "combo/sol", "gpt-5.6-sol", "combo/daily--fast", "daily"}
    made = registry()
    assert set(made.names) == names
    assert all(made.resolve(name) is made.names[name] for name in names)


@given(MODELS)
def test_decision_services_and_account_ids_are_never_targets(model: str) -> None:
    made = registry(cursorEffortRows=True, defaultProvider="beta")
    for route in (made.resolve(model), made.resolve_bare(model)):
        if isinstance(route, DirectRoute):
            assert route.target.dialect is not None
            assert not model.startswith("work/")
