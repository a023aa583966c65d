"""One finished request as the usage ledger keeps it: a JSON object with every attempt, and no prompt and no key.

What nobody reported is null, never zero. Error texts of upstreams are cut, and everything in them that could be a
credential is masked. Texts that came from clients are bounded.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from combos.core.facts import Surface
from combos.core.ladder import for_model
from combos.core.registry import Registry
from combos.core.usage import Tokens, cost_usd, tokens_of
from combos.decision.stored import to_json
from combos.engine.record import AttemptRecord, Outcome, TurnRecord

VERSION = 1
TEXT_MAX = 300  # characters of a text that came from outside

_UNSERVED = frozenset({"cancelled", "overtaken"})
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
# Long words that hold a digit, and whatever follows a word for a credential: both may be one.
_SECRETS = re.compile(
    r"(?i)\b(?:sk|pk|key|bearer|token|api[-_]?key)[-_:=\s]+\S*[\d*]\S*|(?=\S*\d)[A-Za-z0-9_\-+/.=*]{20,}"
)

_AROUND = ".=/"  # what may stand around a name without being part of it

type Json = dict[str, Any]


def counts_in_ledger(record: TurnRecord) -> bool:
    """Whether a request is one for output. Counting tokens uses none."""
    return record.surface is not Surface.COUNT_TOKENS


def usage_document(record: TurnRecord, registry: Registry, epoch_ms: int) -> Json:
    """The object of a request that ended at `epoch_ms`; `registry` has the prices."""
    served = served_attempt(record)
    attempts = [_attempt(record, attempt, registry, is_served=attempt is served) for attempt in record.attempts]
    known = [attempt["usage"] for attempt in attempts if attempt["usage"] is not None]
    dialect, outcome = record.dialect, record.outcome
    made: Json = {
        "version": VERSION,
        "requestId": record.id,
        "timestamp": epoch_ms,
        "combo": record.combo,
        "requestedModel": bounded(record.requested_model),
        "resolvedModel": None if served is None else f"{served.provider}/{served.model}",
        "inboundProtocol": None if dialect is None else str(dialect),
        "outcome": None if outcome is None else str(outcome),
        "reason": bounded(record.reason) or None,
        "status": record.status,
        "durationMs": _since(record.started_ms, record.ended_ms),
        "firstOutputMs": None if served is None else _since(record.started_ms, record.committed_ms),
        "waitsMs": record.waits_ms[:],
        "usageStatus": _coverage(len(known), len(attempts)),
        "usage": _sum(known),
        "spend": {"sends": sum([attempt.sends for attempt in record.attempts])},
        "attempts": attempts,
    }
    decision = to_json(record.decision, record.combo or "") if record.decision is not None else None
    return made if decision is None else {**made, "jevDecision": decision}


def stored_text(document: Mapping[str, object]) -> str:
    """The document as it is written."""
    try:
        return orjson.dumps(document).decode()
    except TypeError:  # whole numbers beyond 64 bits
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def served_attempt(record: TurnRecord) -> AttemptRecord | None:
    """The attempt whose answer the client got, if the request ended well."""
    if record.outcome is not Outcome.SUCCESS:
        return None
    for attempt in reversed(record.attempts):
        if attempt.verdict is None and attempt.result not in _UNSERVED:
            return attempt
    return None


def attempt_tokens(attempt: AttemptRecord) -> Tokens:
    """The counts of an attempt."""
    return tokens_of(attempt.dialect, attempt.usage)


def attempt_cost(attempt: AttemptRecord, registry: Registry) -> float | None:
    """What an attempt cost in USD, as far as price and counts are known."""
    return _cost(attempt, attempt_tokens(attempt), registry)


def _cost(attempt: AttemptRecord, tokens: Tokens, registry: Registry) -> float | None:
    provider = registry.providers.get(attempt.provider)
    prices = None if provider is None else provider.config.model_costs
    return cost_usd(for_model(prices, attempt.model), tokens) if prices else None


def bounded(text: str) -> str:
    """A name on one line, cut."""
    if not text:
        return ""
    if len(text) <= TEXT_MAX and text.isprintable():  # nearly every text, and no control character is printable
        return text.strip()
    return _UNPRINTABLE.sub(" ", text[: 4 * TEXT_MAX]).strip()[:TEXT_MAX]


def clean(text: str, *known: str) -> str:
    """A text on one line, cut, with whatever could be a credential masked; words that are `known` stay."""

    if not text:
        return ""

    def masked(found: re.Match[str]) -> str:
        return found[0] if found[0].strip(_AROUND) in known else "****"

    line = _UNPRINTABLE.sub(" ", text[: 4 * TEXT_MAX])
    return _SECRETS.sub(masked, line).strip()[:TEXT_MAX]


def _attempt(record: TurnRecord, attempt: AttemptRecord, registry: Registry, *, is_served: bool) -> Json:
    tokens = attempt_tokens(attempt)
    usage = _counts(tokens)
    cost = None if usage is None else _cost(attempt, tokens, registry)
    dialect, verdict, cooldown, started = attempt.dialect, attempt.verdict, attempt.cooldown, attempt.started_ms
    return {
        "ordinal": attempt.ordinal,
        "provider": attempt.provider,
        "model": attempt.model,
        "dialect": None if dialect is None else str(dialect),
        "account": attempt.account,
        "served": is_served,
        "status": attempt.status,
        "result": bounded(attempt.result) or None,
        "rule": None if verdict is None else verdict.rule,
        "verdict": None if verdict is None else "hop" if verdict.hop else "stop",
        "cooldownMs": None if cooldown is None else cooldown.ms,
        "cooldownSource": None if cooldown is None else cooldown.source,
        "errorCode": bounded(attempt.error_code) or None,
        "upstreamError": clean(attempt.error_message, attempt.model, record.requested_model) or None,
        "startedMs": started - record.started_ms,
        "durationMs": _since(started, attempt.ended_ms),
        "firstOutputMs": _since(started, attempt.first_output_ms),
        "sendCount": attempt.sends,
        "dropped": [*attempt.dropped],
        "usageStatus": "unreported" if usage is None else "reported",
        "usage": usage,
        "costUsd": None if cost is None else round(cost, 9),
    }


def _counts(tokens: Tokens) -> Json | None:
    if not tokens.is_known:
        return None
    return {
        "inputTokens": tokens.input,
        "outputTokens": tokens.output,
        "totalTokens": tokens.total,
        "cacheReadInputTokens": tokens.cache_read,
        "cacheCreationInputTokens": tokens.cache_write,
        "reasoningOutputTokens": tokens.reasoning,
    }


def _sum(rows: list[Mapping[str, int | None]]) -> Json | None:
    """The known counts of all attempts together; a member is null when no attempt reported it."""
    if len(rows) < 2:
        return dict(rows[0]) if rows else None
    total: Json = {}
    for name in rows[0]:
        known = [value for row in rows if (value := row[name]) is not None]
        total[name] = sum(known) if known else None
    return total


def _coverage(known: int, attempts: int) -> str:
    if not known:
        return "unreported"
    return "reported" if known == attempts else "partial"


def _since(start: int, end: int | None) -> int | None:
    return None if end is None else end - start
