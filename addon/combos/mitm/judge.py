"""What the rules say today about an answer that a flow holds: hop or stop, by which rule, and how long it would cool.

The flow may be running, finished, or read from a file years later; only what it holds is judged.
"""

from mitmproxy.http import HTTPFlow, Response

from combos.core.cooldown import cooldown_for
from combos.core.facts import Cooldown, Dialect, Now, TransportFault, Verdict
from combos.core.failure_facts import FailureFacts
from combos.core.failures import classify
from combos.core.transport import transport_facts
from combos.core.values import dataclass
from combos.wire.bodies import BodyError, decode
from combos.wire.dialect import FailureTerminal, Terminal, inspector, whole_answer
from combos.wire.envelope import failure_facts, stream_failure_facts
from combos.wire.headers import get
from combos.wire.request import surface_of

_DECODED_MAX = 64 * 1024 * 1024
_CUT = frozenset({"eof", "malformed"})  # what a body that was kept in part looks like


@dataclass(frozen=True, slots=True)
class Judgement:
    """`seen` says what there is: `status 429`, the name of a fault. `verdict` is None for what is no failure."""

    seen: str
    verdict: Verdict | None = None
    cooldown: Cooldown | None = None

    def __str__(self) -> str:
        if self.verdict is None:
            return self.seen
        return f"{self.seen}, rule {self.verdict.rule}: {self.action}, {self.rest}"

    @property
    def action(self) -> str:
        """`hop`, `stop`, or empty."""
        return "" if self.verdict is None else "hop" if self.verdict.hop else "stop"

    @property
    def rest(self) -> str:
        """The cooldown in words."""
        if self.cooldown is None:
            return "no cooldown"
        return f"cooldown {self.cooldown.ms / 1000:g} s by {self.cooldown.source}"


def judge(flow: HTTPFlow, now: Now, cooldown_ms: int | None = None) -> Judgement:
    """Judge the answer in a flow; `cooldown_ms` is the combo's setting."""
    response = flow.response
    if response is None or (flow.error is not None and flow.error.msg in set(TransportFault)):
        return _broken(flow, now, cooldown_ms)
    seen = f"status {response.status_code}"
    if response.status_code >= 300:
        return _failed(seen, failure_facts(*_answer(response)), now, cooldown_ms)
    terminal = _terminal(flow, response)
    if not isinstance(terminal, FailureTerminal) or (terminal.kind in _CUT and not terminal.event):
        return Judgement(seen)
    return _failed(seen, stream_failure_facts(terminal, response.headers.fields), now, cooldown_ms)


def dialect_of(flow: HTTPFlow) -> Dialect | None:
    """The dialect of the flow's request, from its path; None when it is no request for a model."""
    place = surface_of(flow.request.path)
    return None if place is None or flow.request.method != "POST" else place[0]


def _broken(flow: HTTPFlow, now: Now, cooldown_ms: int | None) -> Judgement:
    seen = flow.error.msg if flow.error else "no answer"
    if seen not in set(TransportFault):
        return Judgement(seen)
    return _failed(seen, transport_facts(TransportFault(seen)), now, cooldown_ms)


def _failed(seen: str, facts: FailureFacts, now: Now, cooldown_ms: int | None) -> Judgement:
    verdict = classify(facts)
    return Judgement(seen, verdict, cooldown_for(verdict, facts, cooldown_ms=cooldown_ms, now=now))


def _answer(response: Response) -> tuple[int, tuple[tuple[bytes, bytes], ...], bytes | None]:
    return response.status_code, response.headers.fields, response.raw_content


def _terminal(flow: HTTPFlow, response: Response) -> Terminal | None:
    """How an answer of success ended; None when that cannot be told."""
    dialect, headers = dialect_of(flow), response.headers.fields
    if dialect is None or not response.raw_content:
        return None
    try:
        body = decode(get(headers, "content-encoding"), response.raw_content, _DECODED_MAX)
    except BodyError:
        return None
    if not (get(headers, "content-type") or "").startswith("text/event-stream"):
        return whole_answer(dialect, body).terminal
    stream = inspector(dialect)
    stream.feed(body)
    stream.close()
    return stream.terminal
