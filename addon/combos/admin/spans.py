"""Finished requests as OpenTelemetry spans with the GenAI attributes: one span per request, a child per attempt.

Made afterwards, from the record, so that tracing costs a request nothing while it runs. The conventions are still in
development: this is the only place that knows them. Where spans go is set up outside, by the SDK of the user's choice
(`opentelemetry-instrument mitmdump …`); without one they go nowhere.
"""

import importlib
from collections.abc import Mapping
from typing import Any, Protocol

from yarl import URL

from combos import __version__
from combos.admin.usage_record import attempt_tokens, bounded, served_attempt
from combos.core.config_provider import Adapter
from combos.core.facts import Now
from combos.core.registry import Registry
from combos.engine.record import AttemptRecord, Outcome, TurnRecord

# Well-known values of gen_ai.provider.name: by host first, since many vendors speak a common format.
_HOSTS = {
    "api.openai.com": "openai",
    "chatgpt.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "api.x.ai": "x_ai",
    "api.deepseek.com": "deepseek",
    "api.mistral.ai": "mistral_ai",
    "api.groq.com": "groq",
    "api.cohere.com": "cohere",
    "api.perplexity.ai": "perplexity",
}
_FAULTLESS = frozenset({Outcome.SUCCESS, Outcome.CANCELLED})

type Attributes = dict[str, str | int | float | bool]


class TracingError(Exception):
    """The package is not installed; the text says so."""


class Api(Protocol):
    """What is used of `opentelemetry.trace`."""

    SpanKind: Any
    StatusCode: Any

    def get_tracer(self, name: str, version: str) -> Any:
        """A tracer."""

    def set_span_in_context(self, span: Any) -> Any:
        """A context for children."""


def tracing_api() -> Api:
    """The package's trace module. Raises `TracingError`."""
    try:
        api: Api = importlib.import_module("opentelemetry.trace")
    except ImportError:
        raise TracingError("the package opentelemetry-api is not installed") from None
    return api


class Spans:
    """Makes the spans of one process."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._tracer = api.get_tracer("combos", __version__)

    def turn(self, record: TurnRecord, registry: Registry, now: Now) -> None:
        """Make the spans of a finished request."""
        root = self._tracer.start_span(
            f"chat {record.combo or 'direct'}",
            kind=self._api.SpanKind.SERVER,
            attributes=_request(record),
            start_time=_instant(record.started_ms, now),
        )
        context = self._api.set_span_in_context(root)
        for attempt in record.attempts:
            self._attempt(attempt, registry, context, now)
        if record.outcome not in _FAULTLESS:
            root.set_attribute("error.type", record.outcome.value if record.outcome else "unknown")
            root.set_status(self._api.StatusCode.ERROR)
        root.end(end_time=_instant(record.ended_ms or now.mono_ms, now))

    def _attempt(self, attempt: AttemptRecord, registry: Registry, context: Any, now: Now) -> None:
        span = self._tracer.start_span(
            f"chat {attempt.model}",
            context=context,
            kind=self._api.SpanKind.CLIENT,
            attributes=_of_attempt(attempt, registry),
            start_time=_instant(attempt.started_ms, now),
        )
        if attempt.verdict is not None:
            span.set_status(self._api.StatusCode.ERROR)
        span.end(end_time=_instant(attempt.ended_ms or now.mono_ms, now))


def _request(record: TurnRecord) -> Attributes:
    served = served_attempt(record)
    return _present(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "combos",
            "gen_ai.request.model": bounded(record.requested_model),
            "gen_ai.response.model": served.model if served is not None else None,
            "combos.combo": record.combo,
            "combos.request.id": record.id or None,
            "combos.attempts": len(record.attempts),
            "combos.outcome": record.outcome.value if record.outcome else None,
            "http.response.status_code": record.status,
        }
    )


def _of_attempt(attempt: AttemptRecord, registry: Registry) -> Attributes:
    provider = registry.providers.get(attempt.provider)
    url = URL(provider.config.base_url) if provider is not None else URL()
    tokens = attempt_tokens(attempt)
    return _present(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _vendor(url.host, provider.config.adapter if provider else None, attempt.provider),
            "gen_ai.request.model": attempt.model,
            "gen_ai.response.model": bounded(attempt.response_model) if attempt.response_model else None,
            "gen_ai.usage.input_tokens": tokens.input,
            "gen_ai.usage.output_tokens": tokens.output,
            "server.address": url.host,
            "server.port": url.port,
            "http.response.status_code": attempt.status,
            "error.type": attempt.verdict.rule if attempt.verdict else None,
            "combos.provider": attempt.provider,
        }
    )


def _vendor(host: str | None, adapter: Adapter | None, name: str) -> str:
    if adapter is Adapter.AZURE_OPENAI:
        return "azure.ai.openai"
    return _HOSTS.get(host or "", name)


def _present(values: Mapping[str, str | int | None]) -> Attributes:
    return {name: value for name, value in values.items() if value is not None}


def _instant(mono_ms: int, now: Now) -> int:
    """Epoch nanoseconds of a monotonic instant."""
    return (now.epoch_ms - (now.mono_ms - mono_ms)) * 1_000_000
