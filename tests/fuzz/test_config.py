"""Laws of the configuration: any text is a configuration or a list of problems, and no problem repeats a secret."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from combos.admin.redact import redacted
from combos.core.config import config_warnings, parse_config, save_problems, to_document
from combos.core.config_text import parse_config_text, parse_document
from combos.core.errors import ConfigError
from combos.core.registry import build_registry
from combos.core.secrets import is_reference, resolve_secret, secret_fault
from fuzzing import damaged, json_texts, json_values, law

EXAMPLE = json.loads((Path(__file__).parents[2] / "config" / "combos.example.json").read_text())
CANARY = "canary-0123456789"


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at]
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        found += places(inner, (*at, key))
    return found


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return copy


@law
@given(st.one_of(st.binary(max_size=80), damaged(), damaged(st.just(json.dumps(EXAMPLE)))))
def test_any_bytes_are_a_configuration_or_problems(text: bytes) -> None:
    try:
        config = parse_config_text(text)
    except ConfigError as error:
        assert error.problems
        assert str(error).encode()
        return
    build_registry(config, 1)


@law
@given(
    st.lists(
        st.tuples(
            st.integers(0, 999), st.one_of(json_values, st.just(CANARY), st.just([CANARY]), st.just({CANARY: 1}))
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_spoiled_configuration_loads_whole_or_not_at_all(faults: list[tuple[int, Any]]) -> None:
    document = EXAMPLE
    for number, value in faults:
        found = places(document)[1:]
        if found:
            document = with_value(document, found[number % len(found)], value)
    try:
        config = parse_config(document)
    except ConfigError as error:
        assert error.problems
        return
    save_problems(config)
    config_warnings(config)
    build_registry(config, 1)
    written = json.loads(json.dumps(to_document(config)))
    assert to_document(parse_config(written)) == to_document(config)
    json.dumps(redacted(config))


@law
@given(json_texts)
def test_a_document_is_read_as_json_reads_it(text: str) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    try:
        document = parse_document(raw)
    except ConfigError:
        return
    assert document == json.loads(raw)


@law
@given(st.text(max_size=30), st.sampled_from(["", "$", "${", "keychain:"]))
def test_a_reference_is_never_its_own_value(text: str, prefix: str) -> None:
    written = prefix + text
    found = resolve_secret(written, {"NAME": CANARY})
    if is_reference(written):
        assert getattr(found, "value", None) != written
    fault = secret_fault(written)
    assert fault is None or len(text) < 8 or text not in fault
