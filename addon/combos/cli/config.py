"""`ocx config`: is the file valid, what is in it, where a value comes from, its schema, its path."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from combos.admin.redact import hinted, redacted
from combos.admin.regular_file import read_regular
from combos.cli.files import config_option, existing, json_option, located
from combos.cli.grammar import Group
from combos.cli.output import Failed, emit_json, refusals, say, table
from combos.core.config import AuthMode, Config, ProviderConfig, config_warnings, save_problems
from combos.core.config_document import key_names
from combos.core.config_problems import path_of
from combos.core.config_schema import json_schema
from combos.core.config_text import parse_config_text
from combos.core.errors import ConfigError, ConfigProblem
from combos.core.limits import CONFIG_BYTES_MAX
from combos.core.secrets import MissingSecret, provider_secret


@click.group("config", cls=Group)
def config() -> None:
    """The configuration file.

    \b
    ocx config validate
    ocx config show --origin
    """


@config.command("path")
@json_option
@config_option
def path(config: str | None, as_json: bool) -> None:
    """Print where the file is."""
    found = located(config)
    if as_json:
        emit_json({"path": str(found.path), "origin": found.origin, "exists": found.path.exists()})
        return
    click.echo(found.path)
    say(f"Named by {found.origin}; {'it exists' if found.path.exists() else 'there is no such file yet'}.")


@config.command("schema")
def schema() -> None:
    """Print the JSON schema of the file, for editors."""
    emit_json(json_schema(), pretty=True)


@config.command("validate")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@json_option
@config_option
def validate(file: Path | None, config: str | None, as_json: bool) -> None:
    """Say everything that is wrong with a file. Exit code 1 when it cannot be used."""
    found = file or located(config).path
    if file is None and config is None and not os.path.lexists(found):
        raise Failed(f"{found} does not exist\nTry: ocx provider add openai")
    problems, warnings = _judged(found, may_wait=file is not None)
    if as_json:
        rows = {"problems": _rows(problems), "warnings": _rows(warnings)}
        emit_json({"valid": not problems, "path": str(found), **rows})
    for warning in warnings:
        say(f"Warning: {warning}")
    if problems:
        raise Failed("\n".join([f"{found} is not valid:", *(f"  {problem}" for problem in problems)]))
    say(f"{found} is valid.")


@config.command("show")
@click.option(
    "--origin", is_flag=True, help="Line by line: what the file says, defaults, keys; with where each is from."
)
@json_option
@config_option
def show(config: str | None, origin: bool, as_json: bool) -> None:
    """Print the configuration as JSON: keys masked, references as they are."""
    with refusals("Try: ocx config validate"):
        found = existing(config).config()
    if not origin:
        emit_json(redacted(found, hinted), pretty=not as_json)
        return
    rows, file = list(_origins(found)), located(config)
    if as_json:
        settings = [dict(zip(("setting", "value", "origin"), row, strict=True)) for row in rows]
        emit_json({"path": str(file.path), "origin": file.origin, "settings": settings})
    else:
        say(f"{file.path}, named by {file.origin}")
        table(("Setting", "Value", "Origin"), rows)


def _judged(path: Path, *, may_wait: bool) -> tuple[tuple[ConfigProblem, ...], tuple[ConfigProblem, ...]]:
    """Problems and warnings. Only a file that was named may be a pipe."""
    try:
        text = path.read_bytes() if may_wait else read_regular(path, CONFIG_BYTES_MAX)
        found = parse_config_text(text)
    except FileNotFoundError:
        raise Failed(f"{path} does not exist") from None
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    except ConfigError as error:
        return error.problems, ()
    return (), tuple(dict.fromkeys((*config_warnings(found), *save_problems(found))))


def _rows(problems: tuple[ConfigProblem, ...]) -> list[dict[str, str]]:
    return [{"path": problem.path, "message": problem.message} for problem in problems]


def _origins(found: Config) -> Iterator[tuple[str, str, str]]:
    """All that the file says, top-level values by default, and what every provider's key stands for here."""
    shown: dict[str, Any] = redacted(found, hinted)
    for name, key in key_names(Config).items():
        value = getattr(found, name)
        if isinstance(value, str | int | bool) and key not in shown:
            yield key, json.dumps(value), "default"
    keys = {path_of(("providers", name, "apiKey")): row for name, row in _key_rows(found)}
    for path, text in _leaves((), shown):
        if path not in keys:
            yield path, text, "file"
    for path, row in keys.items():
        yield path, *row


def _key_rows(found: Config) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, provider in found.providers.items():
        if provider.auth_mode in (AuthMode.KEY, AuthMode.OAUTH):
            yield name, _key_origin(name, provider)


def _leaves(parts: tuple[str | int, ...], value: object) -> Iterator[tuple[str, str]]:
    """Path and JSON of every value that holds no further names."""
    if isinstance(value, Mapping) and value:
        members: Iterable[tuple[str | int, object]] = value.items()
    elif isinstance(value, list) and any(isinstance(member, Mapping) for member in value):
        members = enumerate(value)
    else:
        yield path_of(parts), json.dumps(value, ensure_ascii=False)
        return
    for name, member in members:
        yield from _leaves((*parts, name), member)


def _key_origin(name: str, provider: ProviderConfig) -> tuple[str, str]:
    if provider.api_key is None and provider.api_key_pool:
        return f"pool of {len(provider.api_key_pool)}", "file"
    secret = provider_secret(name, provider, os.environ)
    if isinstance(secret, MissingSecret):
        return "not set", secret.name or "none"
    if secret.source == "literal":
        return hinted(secret.reveal()), "file"
    return "set", secret.source
