"""Every place of a configuration that may refer to the keychain is looked at."""

from combos.core.keychain import keychain_names
from configs import config


def test_references_in_keys_pools_and_admission_keys() -> None:
    parsed = config(
        {
            "providers": {
                "a": {"adapter": "anthropic", "baseUrl": "https://a.example", "apiKey": "keychain:a"},
                "b": {
                    "adapter": "openai-chat",
                    "baseUrl": "https://b.example/v1",
                    "apiKeyPool": [{"id": "one", "key": "keychain:b/one"}, {"id": "two", "key": "sk-literal"}],
                },
                "c": {"adapter": "openai-chat", "baseUrl": "https://c.example/v1", "apiKey": "${C_KEY}"},
            },
            "apiKeys": ["keychain:door", "plain"],
        }
    )
    assert keychain_names(parsed) == {"a", "b/one", "door"}
