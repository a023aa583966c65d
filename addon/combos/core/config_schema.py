"""The JSON schema of the configuration file, made from the models. Editors complete and check the file with it."""

from combos.core.config import Config
from combos.core.names import COMBO_ID_PATTERN, PROVIDER_NAME_PATTERN

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, object]:
    """Draft 2020-12. Unknown keys are allowed, as they are in the file; rules between objects are not in it."""
    schema = Config.model_json_schema(by_alias=True, mode="validation")
    members = schema["properties"]
    members["providers"]["propertyNames"] = {"pattern": f"^{PROVIDER_NAME_PATTERN}$"}
    members["combos"]["propertyNames"] = {"pattern": f"^{COMBO_ID_PATTERN}$"}
    schema["$defs"]["ComboConfig"]["properties"]["targets"]["minItems"] = 1
    return {"$schema": SCHEMA_ID, **schema, "title": "Combos configuration"}
