"""Targets as they are written on the command line: `provider/model[:weight],…`."""

from typing import Any


class TargetError(ValueError):
    """A text that names no targets; the message says why."""


def parse_targets(text: str) -> list[dict[str, Any]]:
    """Target objects in order. Raises `TargetError`.

    The text after the last colon is a weight only when it is an integer and the colon comes after the first slash, so
    that `ollama/qwen3:4b` is a model; `ollama/x:7` reads as weight 7, and `ollama/x:7:1` is the model `x:7`.
    """
    found = [_target(part.strip()) for part in text.split(",") if part.strip()]
    if not found:
        raise TargetError("names no target: write provider/model[:weight],…")
    return found


def parse_target_keys(text: str) -> list[str]:
    """`provider/model,…` without weights. Raises `TargetError`."""
    keys = [part.strip() for part in text.split(",") if part.strip()]
    for key in keys:
        if not all(key.partition("/")):
            raise TargetError(f"{key!r} is no target: write provider/model")
    return keys


def _target(text: str) -> dict[str, Any]:
    provider, slash, rest = text.partition("/")
    if not provider or not slash or not rest:
        raise TargetError(f"{text!r} is no target: write provider/model[:weight]")
    model, colon, weight = rest.rpartition(":")
    if colon and model and _is_integer(weight):
        return {"provider": provider, "model": model, "weight": int(weight)}
    return {"provider": provider, "model": rest}


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-").removeprefix("+")
    return digits.isascii() and digits.isdecimal() and len(digits) < 19
