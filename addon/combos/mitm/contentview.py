"""The view of a model's turn in mitmproxy's tools: what became of the request, then what the model said.

Chosen by itself for answers to requests for a model; for requests it can be chosen by hand.
"""

import json
from collections.abc import Iterator

from mitmproxy import contentviews
from mitmproxy.contentviews import Contentview, Metadata
from mitmproxy.http import HTTPFlow

from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Now
from combos.mitm.attempt_flows import is_attempt_record
from combos.mitm.judge import dialect_of, judge
from combos.wire.envelope import failure_facts
from combos.wire.readable import answer_lines, read_answer, read_request, request_lines

_WINS, _BY_HAND, _NEVER = 2.0, 0.0, -1.0


class ModelTurnContentview(Contentview):
    """Shows trail, decision and verdict, then status, usage, text and tool calls."""

    @property
    def name(self) -> str:
        """As it is chosen in the tools."""
        return "Model turn"

    def render_priority(self, data: bytes, metadata: Metadata) -> float:
        """Above every view of mitmproxy for answers, at the end of the list for requests, never for other traffic."""
        flow = metadata.flow
        if not isinstance(flow, HTTPFlow) or not data or dialect_of(flow) is None:
            return _NEVER
        return _WINS if metadata.http_message is flow.response else _BY_HAND

    def prettify(self, data: bytes, metadata: Metadata) -> str:
        """The view. Raises `ValueError` for what is no turn of a model."""
        flow = metadata.flow
        dialect = dialect_of(flow) if isinstance(flow, HTTPFlow) else None
        if not isinstance(flow, HTTPFlow) or dialect is None:
            raise ValueError("not a request for a model")
        if metadata.http_message is flow.request:
            try:
                return "\n".join(request_lines(read_request(dialect, data)))
            except ProxyError as error:
                raise ValueError(error.message) from None
        return "\n".join([*_fate(flow), *_said(flow, dialect, data)])


def register() -> None:
    """Add the view to mitmproxy's. After a reload of the script it takes the place of the one before."""
    contentviews.add(ModelTurnContentview())


def _said(flow: HTTPFlow, dialect: Dialect, data: bytes) -> Iterator[str]:
    """The answer: the turn, or the error with its body as it came. Raises `ValueError`."""
    response = flow.response
    if response is None or response.status_code < 300:
        yield from answer_lines(read_answer(dialect, data))
        return
    facts = failure_facts(response.status_code, response.headers.fields, response.raw_content)
    kinds = ", ".join(dict.fromkeys(word for word in (facts.error_type, facts.code) if word))
    yield f"status: {response.status_code}{f' ({kinds})' if kinds else ''}: {facts.message or response.reason}"
    yield from ("", _indented(data))


def _indented(data: bytes) -> str:
    try:
        return json.dumps(json.loads(data), indent=2, ensure_ascii=False)
    except ValueError:
        return data.decode(errors="replace")


def _fate(flow: HTTPFlow) -> Iterator[str]:
    """What became of the request: one block of lines and a blank one, or nothing for traffic of others."""
    seen = flow.metadata.get("combos")
    lines: list[str] = []
    if seen is None:
        lines += _verdict(flow)
    elif is_attempt_record(seen):
        lines += [f"attempt {seen['attempt']}: {seen['target']}", *_verdict(flow)]
    elif "comment" in seen:
        lines += [str(seen["comment"]), *_decision(seen.get("decision")), *map(attempt_line, seen["attempts"])]
    yield from lines
    if lines:
        yield ""


def _verdict(flow: HTTPFlow) -> list[str]:
    # The cooldown counts from the answer: a date in a header is meant for that time.
    at = int((flow.timestamp_start or 0) * 1000)
    judgement = judge(flow, Now(0, at))
    return [] if judgement.verdict is None else [str(judgement)]


def _decision(made: dict[str, object] | None) -> list[str]:
    if made is None:
        return []
    effort = f", effort {made['effort']}" if made["effort"] else ""
    target = f"{made['provider']}/{made['model']}" if made["provider"] else "no target"
    return [f"decision: {made['backend']} {made['gate']}: {target}{effort}, {made['latency_ms']} ms"]


def attempt_line(seen: dict[str, object]) -> str:
    """One attempt of a request's metadata, as a line."""
    status = seen["status"] or seen["result"]
    if seen["rule"] is None:
        return f"  {seen['target']} {status}"
    cooldown = (
        f"cooldown {seen['cooldown_ms']} ms by {seen['cooldown_source']}" if seen["cooldown_ms"] else "no cooldown"
    )
    return f"  {seen['target']} {status}, rule {seen['rule']}, {cooldown}"
