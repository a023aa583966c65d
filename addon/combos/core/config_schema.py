"""The JSON schema of the configuration file, made from the models. Editors complete and check the file with it."""

from typing import Any

from combos.core.config import Config
from combos.core.names import COMBO_ID_PATTERN, PROVIDER_NAME_PATTERN

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """Draft 2020-12. Unknown keys are allowed, as they are in the file; rules between objects are not in it."""
    schema = Config.model_json_schema(by_alias=True, mode="validation")
    members = schema["properties"]
    members["providers"]["propertyNames"] = {"pattern": f"^{PROVIDER_NAME_PATTERN}$"}
    members["combos"]["propertyNames"] = {"pattern": f"^{COMBO_ID_PATTERN}$"}
    schema["$defs"]["ComboConfig"]["properties"]["targets"]["minItems"] = 1
    return {"$schema": SCHEMA_ID, "title": "Combos configuration", **_untitled(schema)}


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    """Without the titles that pydantic makes of field names: editors show them in place of the key."""
    return {key: _untitled_value(key, value) for key, value in schema.items() if not _is_title(key, value)}


def _untitled_value(key: str, value: Any) -> Any:
    if key in ("properties", "$defs"):
        return {name: _untitled(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_untitled(member) if isinstance(member, dict) else member for member in value]
    return _untitled(value) if isinstance(value, dict) and key != "default" else value


def _is_title(key: str, value: object) -> bool:
    return key == "title" and isinstance(value, str)
