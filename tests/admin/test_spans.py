"""Requests as spans: one and its children, times, attributes, faults."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from combos.admin import spans as module
from combos.admin.spans import Spans, TracingError, tracing_api
from combos.core.facts import Now
from combos.core.registry import build_registry
from combos.engine.record import Outcome
from configs import config, document, provider
from records import AT, attempt, failure, registry, turn

NOW = Now(4_000, AT)


@dataclass
class Span:
    name: str
    parent: Any
    kind: str
    attributes: dict[str, Any]
    start_ns: int
    end_ns: int = 0
    status: str = ""

    def set_attribute(self, name: str, value: Any) -> None:
        self.attributes[name] = value

    def set_status(self, status: str) -> None:
        self.status = status

    def end(self, end_time: int) -> None:
        self.end_ns = end_time


@dataclass
class Recorder:
    """Stands for `opentelemetry.trace` and its tracer."""

    spans: list[Span] = field(default_factory=list)

    class SpanKind:
        SERVER = "server"
        CLIENT = "client"

    class StatusCode:
        ERROR = "error"

    def get_tracer(self, name: str, version: str) -> "Recorder":
        assert (name, bool(version)) == ("combos", True)
        return self

    def set_span_in_context(self, span: Any) -> Any:
        return span

    def start_span(self, name: str, *, context: Any = None, kind: str, attributes: Any, start_time: int) -> Span:
        self.spans.append(Span(name, context, kind, dict(attributes), start_time))
        return self.spans[-1]


def spans_of(record: Any) -> list[Span]:
    recorder = Recorder()
    Spans(recorder).turn(record, registry(), NOW)
    return recorder.spans


def test_one_span_per_request_and_a_child_per_attempt() -> None:
    root, first, second = spans_of(turn())
    assert (root.name, root.kind, root.parent, root.status) == ("chat main", "server", None, "")
    assert root.attributes["gen_ai.request.model"] == "combo/main"
    assert root.attributes["gen_ai.response.model"] == "m2"
    assert root.attributes["combos.outcome"] == "success"
    assert (first.parent, second.parent) == (root, root)
    assert (first.kind, first.status, first.attributes["error.type"]) == ("client", "error", "status-retryable")
    assert (second.status, second.attributes["gen_ai.usage.input_tokens"]) == ("", 25)
    assert "gen_ai.usage.input_tokens" not in first.attributes
    assert second.attributes["server.address"] == "alpha.example"
    assert second.attributes["server.port"] == 443


def test_what_an_upstream_says_is_in_no_span() -> None:
    said = "Incorrect API key provided: canary-0123456789"
    made = spans_of(turn(failure(error_message=said, result=said), attempt(1, "beta", "m2")))
    assert "canary" not in repr([(one.name, one.status, one.attributes) for one in made])


def test_times_are_those_of_the_record() -> None:
    root, first, _ = spans_of(turn())
    assert (root.start_ns, root.end_ns) == ((AT - 3_000) * 10**6, AT * 10**6)
    assert (first.start_ns, first.end_ns) == ((AT - 2_990) * 10**6, (AT - 2_090) * 10**6)


@pytest.mark.parametrize(("outcome", "fault"), [(Outcome.EXHAUSTED, "exhausted"), (Outcome.CANCELLED, None)])
def test_a_failed_request_is_a_fault_and_a_cancelled_one_is_not(outcome: Outcome, fault: str | None) -> None:
    root, *_ = spans_of(turn(failure(), outcome=outcome))
    assert (root.attributes.get("error.type"), root.status) == (fault, "error" if fault else "")


def test_vendors_have_their_well_known_names() -> None:
    def vendor(**fields: Any) -> str:
        recorder = Recorder()
        made = document(providers={"alpha": provider(**fields), "beta": provider()})
        Spans(recorder).turn(turn(attempt()), build_registry(config(made), 1), NOW)
        return str(recorder.spans[1].attributes["gen_ai.provider.name"])

    assert vendor(baseUrl="https://api.anthropic.com", adapter="anthropic") == "anthropic"
    assert vendor(baseUrl="https://x.openai.azure.com/openai", adapter="azure-openai") == "azure.ai.openai"
    assert vendor() == "alpha"


def test_the_real_interface_takes_what_is_made() -> None:
    api = tracing_api()
    Spans(api).turn(turn(), registry(), NOW)


def test_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> Any:
        raise ImportError

    monkeypatch.setattr(module.importlib, "import_module", missing)
    with pytest.raises(TracingError, match="opentelemetry-api is not installed"):
        tracing_api()
