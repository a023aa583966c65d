"""A decision as the usage ledger keeps it: the object `jevDecision`, judged when it is written and when it is read.

A required field that is not what it must be drops the whole object, an optional one only itself. It holds numbers and
names, no prompts and no credentials.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from combos.core.ladder import is_rung
from combos.decision.gates import Backend, Gate
from combos.decision.systemone import share, whole
from combos.engine.record import DecisionRecord

VERSION = 1
COMBO_ID_MAX = 128  # characters
NAME_MAX = 512  # characters of a provider or model
UNKNOWN_BACKEND = "unknown"  # of rows that were written without one

type Json = dict[str, object]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Stored(NamedTuple):
    """A decision of the ledger and the combo it was made for."""

    combo_id: str
    decision: DecisionRecord


def to_json(decision: DecisionRecord, combo_id: str) -> Json | None:
    """The object to write; None when nothing was selected or a required field cannot be kept."""
    made: Json = {
        "version": VERSION,
        "comboId": combo_id,
        "backend": decision.backend,
        "selected": {"provider": decision.provider, "model": decision.model, "effort": decision.effort},
        "gate": decision.gate,
        "latencyMs": decision.latency_ms,
        "confidence": decision.confidence,
        "chosenProbability": decision.probability,
        "usage": _usage_json(decision.usage),
    }
    stored = {name: value for name, value in made.items() if value is not None}
    return stored if from_json(stored) is not None else None


def from_json(value: object) -> Stored | None:
    """The decision in an object of the ledger, or None when it is not one."""
    row = _mapping(value)
    selected = _mapping(row.get("selected"))
    combo_id = _name(row.get("comboId"), COMBO_ID_MAX)
    provider, model = _name(selected.get("provider"), NAME_MAX), _name(selected.get("model"), NAME_MAX)
    backend, gate = _backend(row.get("backend")), row.get("gate")
    latency = whole(row.get("latencyMs"))
    effort = selected.get("effort")
    if row.get("version") != VERSION or combo_id is None or provider is None or model is None or latency is None:
        return None
    if backend is None or gate not in list(Gate) or not (effort is None or is_rung(effort)):
        return None
    decision = DecisionRecord(
        backend=backend,
        gate=str(gate),
        provider=provider,
        model=model,
        effort=None if effort is None else str(effort),
        latency_ms=latency,
        confidence=share(row.get("confidence")),
        probability=share(row.get("chosenProbability")),
        usage=_usage(row.get("usage")),
    )
    return Stored(combo_id, decision)


def _usage_json(usage: Mapping[str, int] | None) -> Json | None:
    if usage is None or "input_tokens" not in usage or "output_tokens" not in usage:
        return None
    read, written = usage["input_tokens"], usage["output_tokens"]
    return {"inputTokens": read, "outputTokens": written, "totalTokens": read + written}


def _usage(value: object) -> dict[str, int] | None:
    row = _mapping(value)
    read, written = whole(row.get("inputTokens")), whole(row.get("outputTokens"))
    return None if read is None or written is None else {"input_tokens": read, "output_tokens": written}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _name(value: object, limit: int) -> str | None:
    """A name of bounded length without control characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= limit:
        return None
    return None if _CONTROL.search(value) else value


def _backend(value: object) -> str | None:
    if value is None:
        return UNKNOWN_BACKEND
    return value if value in (*Backend, UNKNOWN_BACKEND) and isinstance(value, str) else None
