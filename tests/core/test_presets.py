"""Every preset makes a provider that the configuration accepts, and no key is in any of them."""

import pytest

from combos.core.config import parse_config
from combos.core.presets import PRESETS, Preset, preset
from combos.core.secrets import is_reference


@pytest.mark.parametrize("row", PRESETS, ids=lambda row: row.id)
def test_a_preset_is_a_valid_provider(row: Preset) -> None:
    made = row.document(row.id)
    for placeholder in ("{resource}", "{account}", "{gateway}"):
        made["baseUrl"] = made["baseUrl"].replace(placeholder, "filled")
    (provider,) = parse_config({"providers": {row.id: made}}).providers.values()
    assert provider.api_key is None or is_reference(provider.api_key.get_secret_value())


def test_names_are_unique_and_found() -> None:
    assert len({row.id for row in PRESETS}) == len(PRESETS)
    assert all(preset(row.id) is row for row in PRESETS)
    assert preset("nobody") is None


@pytest.mark.parametrize(
    ("name", "id", "key"),
    [
        ("openai", "openai", None),
        ("work", "openai", "${OPENAI_API_KEY}"),
        ("google", "google", "${GEMINI_API_KEY}"),
        ("huggingface", "huggingface", "${HF_TOKEN}"),
        ("jev", "jev", None),
        ("litellm", "litellm", None),
        ("ollama", "ollama", None),
    ],
)
def test_a_key_is_referred_to_when_its_variable_is_not_the_derived_one(name: str, id: str, key: str | None) -> None:
    found = preset(id)
    assert found is not None
    assert found.document(name).get("apiKey") == key


@pytest.mark.parametrize(
    ("id", "auth"), [("openai", "key"), ("litellm", "key, optional"), ("ollama", "local"), ("chatgpt-codex", "forward")]
)
def test_the_word_for_the_authentication(id: str, auth: str) -> None:
    found = preset(id)
    assert found is not None
    assert found.auth == auth


def test_a_server_that_may_go_without_a_key_does_until_it_gets_one() -> None:
    found = preset("litellm")
    assert found is not None
    assert found.document("litellm")["authMode"] == "local"
    assert "authMode" not in found.document("litellm", has_key=True)
