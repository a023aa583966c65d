"""The configuration file as one frozen value: what its top level holds, and how a document becomes a `Config`.

A document is judged as a whole: shape, fields, then the rules between objects. Every broken rule is reported. Files,
environment and secrets behind references are not looked at.
"""

import contextlib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from combos.core.config_budget import Budgets
from combos.core.config_combo import ComboConfig, TargetConfig
from combos.core.config_decision_rules import model_fault
from combos.core.config_document import to_document, unknown_keys
from combos.core.config_problems import problems_of, shape_problems
from combos.core.config_provider import Adapter, AuthMode, ProviderConfig
from combos.core.config_rules import RULES, SAVE_RULES, WARNINGS, broken_rules
from combos.core.config_types import Between, ConfigModel, Flag, Key, LongText, ModelId, SecretText, Text
from combos.core.config_view import ConfigView
from combos.core.errors import ConfigError, ConfigProblem
from combos.core.limits import BYTES_MAX, INBOUND_BODY_DEFAULT, LEDGER_BYTES_DEFAULT, PORT_MAX

__all__ = [
    "Adapter",
    "AdmissionKey",
    "AuthMode",
    "ComboConfig",
    "Config",
    "ProviderConfig",
    "TargetConfig",
    "config_warnings",
    "decision_model_fault",
    "parse_config",
    "save_problems",
    "to_document",
    "unknown_keys",
]


class AdmissionKey(ConfigModel):
    """A key that admits clients which are not on this machine; a bare string in the file is the key alone."""

    key: Key
    """The key, or a reference to it (`${NAME}`). Clients send it where they send a vendor's key."""
    id: Text | None = None
    """Name of the key for people and programs."""
    name: LongText | None = None
    """Who it was given to."""

    @classmethod
    def _spelled_out(cls, data: Any) -> Any:
        return {"key": data} if isinstance(data, str) else data

    def written_short(self) -> object:
        return None if self.key_order else self.key.get_secret_value()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [SecretText().schema(), handler(schema)]}


class Config(ConfigModel):
    """The whole file."""

    schema_url: Text | None = Field(default=None, alias="$schema")
    """Address or path of the JSON schema, for editors."""
    port: Annotated[int, Between(0, PORT_MAX)] = 10100
    """Taken over from OpenCodex files and not used: mitmproxy's `listen_port` and `combos_admin_listen` decide."""
    hostname: Text = "127.0.0.1"
    """Taken over from OpenCodex files and not used: mitmproxy's `listen_host` decides."""
    default_provider: Text | None = None
    """Provider for bare model names that nothing else answers to, on the proxy's own address."""
    providers: Mapping[str, ProviderConfig] = Field(default_factory=dict)
    """The vendors, by the name that targets and selectors (`name/model`) use."""
    combos: Mapping[str, ComboConfig] = Field(default_factory=dict)
    """The combos, by id: `combo/<id>` is asked for."""
    disabled_models: tuple[ModelId, ...] = ()
    """Models left out of the lists. They still serve requests that name them."""
    api_keys: tuple[AdmissionKey, ...] = ()
    """Keys that admit clients which are not on this machine."""
    cors_allow_origins: tuple[Text, ...] = ()
    """Web origins, such as `https://tools.example.com`, whose pages may use the proxy and the management API."""
    codex_account_namespaces: Mapping[str, Text] = Field(default_factory=dict)
    """Names before a slash that belong to accounts of the ChatGPT backend: `name/model` is passed on untouched."""
    selector_exempt_hosts: tuple[Text, ...] = ()
    """Hosts whose own models are called `name/model`, such as `openrouter.ai`: through the forward proxy such a name is
    passed on untouched there, whatever the providers here are called. Combos and aliases are served there too."""
    blocked_model_redirects: Mapping[ModelId, ModelId] = Field(default_factory=dict)
    """Kept for OpenCodex and followed in renames; no request is redirected here."""
    fast_rows: Flag = True
    """Models with a priority tier are listed and served as `<model>--fast` too."""
    cursor_effort_rows: Flag = False
    """Models are served as `<model>--<effort>` too."""
    budgets: Budgets = Field(default_factory=Budgets)
    """What providers and combos may cost before they rest."""
    usage_ledger_max_bytes: Annotated[int, Between(1, BYTES_MAX)] = LEDGER_BYTES_DEFAULT
    """Size of the usage ledger at which its oldest records go."""
    max_inbound_body_bytes: Annotated[int, Between(1, BYTES_MAX)] = INBOUND_BODY_DEFAULT
    """Largest request body, as sent and decompressed; a larger one gets 413."""


def parse_config(document: object) -> Config:
    """Judge a parsed JSON document. Raises `ConfigError` with every broken rule."""
    problems = shape_problems(document)
    if problems or not isinstance(document, Mapping):
        raise ConfigError(problems)
    config, problems = _fields(document)
    problems += broken_rules(_view(config, document), RULES)
    if problems:
        raise ConfigError(problems)
    return config


def save_problems(config: Config) -> tuple[ConfigProblem, ...]:
    """What keeps a valid configuration from being saved by the CLI or the API; a file like it still loads."""
    return broken_rules(_view(config), SAVE_RULES)


def decision_model_fault(config: Config, combo_id: str | None, model: str) -> str | None:
    """Why a combo, or anybody, cannot let this model decide; None when it can, as far as the names say."""
    return model_fault(_view(config), combo_id, model)


def config_warnings(config: Config) -> tuple[ConfigProblem, ...]:
    """What is probably not meant: targets that can never be used, decision services that cannot, unknown keys."""
    return broken_rules(_view(config), WARNINGS) + unknown_keys(config)


def _view(config: Config, document: Mapping[str, object] | None = None) -> ConfigView:
    providers, combos = (document or {}).get("providers", {}), (document or {}).get("combos", {})
    return ConfigView(
        config,
        frozenset(config.providers) | frozenset(providers if isinstance(providers, Mapping) else ()),
        frozenset(config.combos) | frozenset(combos if isinstance(combos, Mapping) else ()),
    )


def _fields(document: Mapping[str, object]) -> tuple[Config, tuple[ConfigProblem, ...]]:
    """Check field by field. What is broken is left out of the value, so that the other rules still find faults."""
    try:
        return Config.model_validate(document, by_name=False), ()
    except ValidationError as error:
        broken = {item["loc"][0] for item in error.errors() if item["loc"]}
        parts: dict[str, object] = {key: value for key, value in document.items() if key not in broken}
        if "providers" in broken:
            parts["providers"] = _valid_members(ProviderConfig, document["providers"])
        if "combos" in broken:
            parts["combos"] = _valid_members(ComboConfig, document["combos"])
        return Config.model_validate(parts, by_name=False), problems_of(error)


def _valid_members(model: type[ConfigModel], members: object) -> dict[str, ConfigModel]:
    found = {}
    for name, member in members.items() if isinstance(members, Mapping) else ():
        with contextlib.suppress(ValidationError):  # reported already
            found[name] = model.model_validate(member, by_name=False)
    return found
