"""Configuration documents for tests: small valid ones, and the problems of broken ones."""

from typing import Any

from combos.core.config import Config, parse_config
from combos.core.errors import ConfigError

TARGET = {"provider": "alpha", "model": "m1"}


def provider(**fields: Any) -> dict[str, Any]:
    """A valid provider object with some fields of its own."""
    return {"adapter": "openai-chat", "baseUrl": "https://alpha.example/v1", **fields}


def combo(**fields: Any) -> dict[str, Any]:
    """A valid combo object with some fields of its own."""
    return {"targets": [TARGET], **fields}


def document(**fields: Any) -> dict[str, Any]:
    """A valid document: providers alpha and beta, combo main."""
    return {"providers": {"alpha": provider(), "beta": provider()}, "combos": {"main": combo()}, **fields}


def with_provider(**fields: Any) -> dict[str, Any]:
    """A document whose provider alpha has the given fields."""
    return document(providers={"alpha": provider(**fields), "beta": provider()})


def with_combo(**fields: Any) -> dict[str, Any]:
    """A document whose combo main has the given fields."""
    return document(combos={"main": combo(**fields)})


def config(value: object = None) -> Config:
    """The configuration of a document, by default the small valid one."""
    return parse_config(document() if value is None else value)


def problems(value: object) -> dict[str, str]:
    """Path → message of everything that is wrong with a document; empty when it is valid."""
    try:
        parse_config(value)
    except ConfigError as error:
        return {problem.path: problem.message for problem in error.problems}
    return {}
