"""The reference of the configuration: the file from its models, mitmproxy's options, the environment."""

from collections.abc import Iterator, Sequence
from typing import Any

from combos.core.config import ProviderConfig
from combos.core.config_provider import Adapter
from combos.core.config_rules import RULES, SAVE_RULES, WARNINGS
from combos.core.config_schema import json_schema
from combos.core.config_view import Rule
from combos.core.presets import PRESETS
from combos.core.registry import Provider, make_target
from combos.engine.outbound import target_url
from combos.engine.speech import Words
from combos.mitm.options import OPTIONS, Option
from combos.upstream.credentials import key_header
from combos.wire.request import request_facts
from manual import examples
from manual.environment import VARIABLES
from manual.markdown import code, codes, json_block, table
from manual.schema import Definitions, Schema, default, object_of, words

HEAD = """# Configuration

What can be written into the configuration file, which options mitmproxy takes, which environment variables count.

Made by `./scripts/docs` from the models, the options and the rules themselves; a test fails when this page is behind.

## How the file is read

One JSON file. The first of these names it: the mitmproxy option `combos_config`, the variable `COMBOS_CONFIG`,
`$COMBOS_HOME/config.json`, `~/.combos/config.json`. `ocx config path` prints it, `ocx config validate` checks it.

- Fields and the rules between them are checked as a whole. Every broken rule is reported with its place, such as
  `combos.main.targets[0].weight`; a file that breaks one is not used, and the last good one stays in force.
- An edit is in force within a second. Requests under way end under the configuration they began with.
- Unknown keys are kept and warned about. Values are never converted: `"5"` is no number.
- `none` under *Default*: nothing is assumed, and the *Meaning* says what follows.
- Keys are best written as references: `${NAME}` or `$NAME` for an environment variable, `keychain:<provider>` for the
  system's keychain (service `combos.provider-api-key.v1`, with the Python package `keyring`). A reference that leads
  nowhere is no key: the provider's targets are out with `no_credentials`.
- `config/combos.schema.json` is the JSON schema; `{"$schema": "…"}` at the top of the file lets an editor use it.
- Ids of combos and aliases have 1 to 64 letters, digits, dots, underscores or hyphens and begin with a letter or digit;
  an alias may be two such names joined by a slash. Names of providers also end with a letter or digit.
- Maps by model id are looked up exactly, then without what follows a `:`, then without regard to case.

A small file:

"""

SMALL: dict[str, Any] = {
    "providers": {
        "anthropic": {"adapter": "anthropic", "baseUrl": "https://api.anthropic.com"},
        "backup": {"adapter": "anthropic", "baseUrl": "https://gateway.example.com", "apiKey": "${BACKUP_API_KEY}"},
    },
    "combos": {
        "main": {
            "targets": [
                {"provider": "anthropic", "model": "claude-opus-4-8"},
                {"provider": "backup", "model": "claude-opus-4-8"},
            ]
        }
    },
}

# Heading of each object, in the order of the page, with what its example is.
SECTIONS: tuple[tuple[str, str, int, Sequence[object]], ...] = (
    ("Config", "The top level", 2, ()),
    ("AdmissionKey", "API key", 3, [{"apiKeys": examples.DOCUMENT["apiKeys"]}]),
    ("ProviderConfig", "Provider", 2, [{"providers": {"openrouter": examples.PROVIDER, "ollama": examples.LOCAL}}]),
    ("PoolKey", "Pool key", 3, ()),
    ("AccountFile", "Account", 3, [{"providers": {"chatgpt": examples.ACCOUNTS}}]),
    ("ModelCost", "Cost", 3, ()),
    ("RequestPacing", "Pacing", 3, [{"providers": {"gateway": examples.KEPT_PROVIDER}}]),
    ("PacingRule", "Pacing rule", 3, ()),
    (
        "ComboConfig",
        "Combo",
        2,
        [{"combos": {"main": examples.COMBO}}, {"combos": {"native": examples.NATIVE_COMBO}},
         {"combos": {"decided": examples.DECIDING_COMBO}}],
    ),
    ("TargetConfig", "Target", 3, ()),
    ("Budgets", "Budgets", 2, [{"budgets": examples.DOCUMENT["budgets"]}]),
    ("Budget", "Budget", 3, ()),
)  # fmt: skip
LINKS = {name: heading for name, heading, _, _ in SECTIONS}

TOP_EXAMPLE = {
    key: value
    for key, value in examples.DOCUMENT.items()
    if key not in ("providers", "combos", "apiKeys", "budgets", "defaultProvider")
}


def page() -> str:
    """The whole page."""
    return "".join((HEAD, json_block(SMALL), *_objects(), *_rules(), *_options(), *_environment()))


def _objects() -> Iterator[str]:
    schema = json_schema()
    defs: Definitions = schema["$defs"]
    for name, heading, level, shown in SECTIONS:
        part = object_of(schema if name == "Config" else defs[name])
        yield f"\n{'#' * level} {heading}\n\n{_sentence(name, part)}\n\n"
        yield table(("Field", "Value", "Default", "Meaning"), _fields(part, defs))
        for example in [TOP_EXAMPLE] if name == "Config" else shown:
            yield "\n" + json_block(example)
        if name == "ProviderConfig":
            yield from _adapters()
            yield from _presets()


def _sentence(name: str, part: Schema) -> str:
    return " ".join(str(part.get("description") or "The whole file.").split())


def _fields(part: Schema, defs: Definitions) -> Iterator[tuple[str, ...]]:
    for key, field in part["properties"].items():
        yield code(key), words(field, defs, LINKS), default(key, part), field["description"].replace("\n", " ")


def _adapters() -> Iterator[str]:
    yield "\n### Adapters\n\nWhat is added to `baseUrl`, and where the key travels.\n\n"
    yield table(("`adapter`", "Dialect", "Asked at", "Key"), (_adapter(adapter) for adapter in Adapter))


def _adapter(adapter: Adapter) -> tuple[str, ...]:
    base = "https://host" if adapter is not Adapter.JEV_DECISION else "https://host/systemone"
    config = ProviderConfig(adapter=adapter, base_url=base)
    header = key_header(config, "KEY")
    key = code(b": ".join(header).decode())
    target = make_target(Provider("row", config), "MODEL")
    if target.dialect is None:
        return code(adapter), "decisions", "`{baseUrl}`", key
    return code(adapter), target.dialect.value, code(_asked_at(target, base)), key


def _asked_at(target: Any, base: str) -> str:
    facts = request_facts("/v1/responses", b'{"model":"m","stream":true,"input":"x"}')
    said = Words(body=b"", stream=True, context=None)
    return target_url(base, target, facts, said).replace(base, "{baseUrl}")


def _presets() -> Iterator[str]:
    yield "\n### Presets\n\n`ocx provider add <preset>` writes these. A `{placeholder}` has to be filled in.\n\n"
    rows = ((code(row.id), code(row.adapter.value), code(row.base_url), _key_of(row)) for row in PRESETS)
    yield table(("Preset", "Adapter", "Address", "Key"), rows)


def _key_of(row: Any) -> str:
    named = codes(row.variables)
    return named if row.auth == "key" else f"{row.auth}{f': {named}' if named else ''}"


def _rules() -> Iterator[str]:
    yield "\n## Rules between fields\n\nA file that breaks one of these is not used:\n\n"
    yield _rule_table(RULES)
    yield "\nThe command line and the API do not save what breaks one of these; a file like it still loads:\n\n"
    yield _rule_table(SAVE_RULES)
    yield "\nThe log and `ocx config validate` warn about these as well, and about keys that mean nothing:\n\n"
    yield _rule_table([row for row in WARNINGS if row not in SAVE_RULES])


def _rule_table(rules: Sequence[tuple[str, Rule]]) -> str:
    return table(("Rule", "Holds"), ((name, (rule.__doc__ or "").replace("\n    ", " ")) for name, rule in rules))


def _options() -> Iterator[str]:
    yield "\n## mitmproxy options\n\n"
    yield "Set with `--set name=value`, in mitmproxy's own `config.yaml`, or in its options view.\n\n"
    rows = ((code(row.name), _kind(row), code(_written(row.default)) or "empty", row.help) for row in OPTIONS)
    yield table(("Option", "Value", "Default", "Meaning"), rows)


def _kind(row: Option) -> str:
    if row.choices is not None:
        return codes(row.choices)
    if row.type is bool:
        return "`true`, `false`"
    return "string" if row.type is str else f"integer from {row.minimum}"


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _environment() -> Iterator[str]:
    yield "\n## Environment variables\n\n"
    yield table(("Variable", "Read by", "Meaning"), ((code(row.name), row.reader, row.meaning) for row in VARIABLES))
    yield (
        "\n`HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the proxy's own environment are not used towards vendors: a"
        " provider's\n`proxy` and `noProxy` are, and mitmproxy's `upstream:` mode.\n"
    )
