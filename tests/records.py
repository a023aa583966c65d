"""Finished requests for tests of the books: a hop from alpha to beta unless said otherwise."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from combos.admin.ledger_file import Batch
from combos.admin.usage_sums import Document
from combos.core.facts import Cooldown, Dialect, Scope, Surface, Verdict
from combos.core.registry import Registry, build_registry
from combos.engine.record import AttemptRecord, DecisionRecord, Outcome, TurnRecord
from configs import config, document, provider

AT = 1_790_856_000_000
"""2026-10-01 12:00:00 UTC."""

PRICED = provider(modelCosts={"m1": {"input": 1, "output": 10}, "m2": {"input": 2, "output": 20}}, models=["m1", "m2"])
HOP = Verdict("status-retryable", hop=True, scope=Scope.TARGET)


def registry(**fields: Any) -> Registry:
    """Providers alpha and beta with prices, combo main over both."""
    targets = [{"provider": "alpha", "model": "m1"}, {"provider": "beta", "model": "m2"}]
    made = document(providers={"alpha": PRICED, "beta": PRICED}, combos={"main": {"targets": targets}}, **fields)
    return build_registry(config(made), 1)


def attempt(ordinal: int = 0, provider: str = "alpha", model: str = "m1", **fields: Any) -> AttemptRecord:
    """An attempt that answered with 25 tokens in and 7 out."""
    made = {
        "status": 200,
        "started_ms": 1_010 + 1_000 * ordinal,
        "ended_ms": 1_910 + 1_000 * ordinal,
        "first_output_ms": 1_110 + 1_000 * ordinal,
        "result": "completed",
        "usage": {"input_tokens": 25, "output_tokens": 7},
        "dialect": Dialect.RESPONSES,
    }
    return AttemptRecord(ordinal, provider, model, **{**made, **fields})


def failure(ordinal: int = 0, provider: str = "alpha", model: str = "m1", **fields: Any) -> AttemptRecord:
    """An attempt that a rule refused with a 503 and without usage."""
    made = {
        "status": 503,
        "verdict": HOP,
        "result": "http 503",
        "cooldown": Cooldown(60_000, "default"),
        "usage": None,
        "first_output_ms": None,
    }
    return attempt(ordinal, provider, model, **{**made, **fields})


def turn(*attempts: AttemptRecord, **fields: Any) -> TurnRecord:
    """A request for `combo/main` that took three seconds and ended well."""
    made = {
        "outcome": Outcome.SUCCESS,
        "status": 200,
        "ended_ms": 4_000,
        "committed_ms": 2_110,
        "id": "r1",
        "dialect": Dialect.RESPONSES,
        "surface": Surface.RESPONSES,
    }
    rows = list(attempts) or [failure(), attempt(1, "beta", "m2")]
    return TurnRecord("combo/main", fields.pop("combo", "main"), 1_000, attempts=rows, **{**made, **fields})


def decision(**fields: Any) -> DecisionRecord:
    """An applied decision for alpha/m1."""
    made = {
        "backend": "typesafe",
        "gate": "apply",
        "provider": "alpha",
        "model": "m1",
        "effort": "high",
        "latency_ms": 200,
        "confidence": 0.8,
        "probability": 0.9,
        "usage": {"input_tokens": 400, "output_tokens": 6},
    }
    return DecisionRecord(**{**made, **fields})


def append(connection: sqlite3.Connection, documents: Iterable[Document]) -> None:
    """Store records in a ledger's file, with what they add to the sums."""
    batch = Batch()
    for made in documents:
        batch.add(made)
    batch.write(connection)
