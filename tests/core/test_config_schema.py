"""The published schema is the one of the models, and the example is a valid configuration without a key in it."""

import json
from pathlib import Path

import pytest

from combos.core.config import Config, config_warnings, save_problems
from combos.core.config_combo import ComboConfig
from combos.core.config_document import key_names
from combos.core.config_provider import ProviderConfig
from combos.core.config_schema import json_schema
from combos.core.config_text import parse_config_text
from combos.core.config_types import ConfigModel
from combos.core.secrets import is_reference

FOLDER = Path(__file__).parents[2] / "config"


def test_the_published_schema_is_fresh() -> None:
    published = (FOLDER / "combos.schema.json").read_text(encoding="utf-8")
    fresh = json.dumps(json_schema(), indent=2) + "\n"
    assert published == fresh, "write json_schema() to config/combos.schema.json"


def test_the_example_is_valid_and_complete() -> None:
    made = parse_config_text((FOLDER / "combos.example.json").read_bytes())
    assert config_warnings(made) == ()
    assert save_problems(made) == ()
    assert {combo.strategy.value for combo in made.combos.values()} == {"failover", "round-robin", "jev"}


def test_the_example_holds_references_only() -> None:
    made = parse_config_text((FOLDER / "combos.example.json").read_bytes())
    keys = [row.api_key for row in made.providers.values() if row.api_key]
    keys += [entry.key for row in made.providers.values() for entry in row.api_key_pool]
    keys += [entry.key for entry in made.api_keys]
    assert keys
    assert all(is_reference(key.get_secret_value()) for key in keys)


@pytest.mark.parametrize(
    ("name", "model"), [("ComboConfig", ComboConfig), ("ProviderConfig", ProviderConfig), ("", Config)]
)
def test_every_field_is_in_the_schema(name: str, model: type[ConfigModel]) -> None:
    schema = json_schema()
    part = schema["$defs"][name] if name else schema
    assert list(part["properties"]) == list(key_names(model).values())
    assert part["additionalProperties"] is True


def test_bounds_are_in_the_schema() -> None:
    definitions = json_schema()["$defs"]
    combo = definitions["ComboConfig"]["properties"]
    sticky = {key: value for key, value in combo["stickyLimit"].items() if key != "description"}
    assert sticky == {"default": 1, "maximum": 100, "minimum": 1, "type": "integer"}
    assert combo["strategy"]["enum"] == ["failover", "round-robin", "random", "least-used", "reset-window", "jev"]


def test_every_field_says_what_it_means() -> None:
    schema = json_schema()
    parts = {"": schema, **schema["$defs"]}
    bare = [f"{part}.{key}" for part in parts for key, field in parts[part].get("properties", {}).items()
            if not field.get("description")]  # fmt: skip
    assert bare == []


def test_no_field_has_a_title() -> None:
    schema = json_schema()
    parts = [schema, *schema["$defs"].values()]
    titles = [member.get("title") for part in parts for member in part.get("properties", {}).values()]
    assert set(titles) == {None}
    assert schema["title"] == "Combos configuration"
