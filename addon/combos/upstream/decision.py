"""Asks for a decision: one request to a System One service, or one internal turn with a model, within its deadline.

Whatever goes wrong becomes the name of a gate and is never raised; only cancellation passes through, and closes the
socket. What is asked and what an answer is worth is decided in `combos.decision`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from combos.core.facts import Headers
from combos.core.registry import Registry
from combos.decision import model, probe, systemone
from combos.decision.decide import Call, Means, ModelCall, Question, ServiceCall, conclude, prepare, question_of
from combos.decision.gates import Closed, Gate
from combos.decision.model import ModelReply
from combos.decision.service import Hosted, Secrets
from combos.decision.systemone import Answer
from combos.engine.commands import Decide, OutboundRequest, Timeouts
from combos.engine.record import DecisionRecord
from combos.upstream import exchange
from combos.upstream.faults import UpstreamFault
from combos.wire.bodies import BodyError, decode
from combos.wire.headers import get

logger = logging.getLogger(__name__)

_HEADERS: Headers = ((b"Content-Type", b"application/json"),)

type Invoke = Callable[[Registry, bytes], Awaitable[ModelReply]]
"""Runs an internal turn for the body of a Responses request. Raises `Closed` when there is no reply to read."""


class Sender(Protocol):
    """What a decision needs of the upstream session."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts, secrets: Headers = ()) -> exchange.Answer:
        """Send and wait for the head. Raises `UpstreamFault`."""


class Decider:
    """Makes decisions, any number at a time. `secrets` is read anew for each; without `invoke` no model is asked."""

    def __init__(
        self,
        sender: Sender,
        secrets: Callable[[], Secrets],
        invoke: Invoke | None = None,
        hosted: Hosted | None = None,
    ) -> None:
        self._sender = sender
        self._secrets = secrets
        self._invoke = invoke
        self.hosted = hosted or Hosted()

    async def answer(self, ask: Decide) -> DecisionRecord:
        """The decision that a turn asks for."""
        return await self.decide(question_of(ask), ask.registry)

    async def decide(self, question: Question, registry: Registry) -> DecisionRecord:
        """Ask once and say what comes of it: a choice, or the first candidate and the gate that closed."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        ended = await self._outcome(question, registry)
        record = conclude(question, ended, round((loop.time() - started) * 1000))
        logger.debug(
            f"combos: decision by {record.backend}: {record.gate}, {record.target} {record.effort},"
            f" {record.latency_ms} ms, confidence {record.confidence}, usage {record.usage}"
        )
        return record

    async def _outcome(self, question: Question, registry: Registry) -> Answer | Gate:
        means = Means(self._secrets(), self.hosted, has_models=self._invoke is not None)
        try:
            call = prepare(question, registry, means)
            async with asyncio.timeout(question.deadline_ms / 1000):
                return await self._call(call, question.deadline_ms, registry)
        except Closed as closed:
            return closed.gate
        except TimeoutError:
            return Gate.TIMEOUT
        except UpstreamFault as fault:
            logger.debug(f"combos: decision: {fault}")
            return Gate.NETWORK
        except Exception as error:  # a decision never fails a request; the kind is said, the text may hold anything
            logger.warning(f"combos: a decision ended with an unexpected {type(error).__name__}")
            return Gate.NETWORK

    async def _call(self, call: Call, deadline_ms: int, registry: Registry) -> Answer:
        match call:
            case ServiceCall():
                return systemone.read_reply(await self._ask(call, deadline_ms), call.options)
            case ModelCall(body=body, options=options):
                if self._invoke is None:
                    raise Closed(Gate.MISSING_KEY)
                return model.read_reply(await self._invoke(registry, body), options)

    async def _ask(self, call: ServiceCall, deadline_ms: int) -> bytes:
        """The decoded body of a 2xx answer. Error bodies are not read: some echo what was sent."""
        service = call.service
        request = OutboundRequest("POST", service.url, _HEADERS, call.body, service.provider)
        # The deadline around the call is the one that counts.
        later = 2 * deadline_ms
        answer = await self._sender.send(request, Timeouts(later, later, later), service.credentials)
        try:
            if 300 <= answer.status < 400:
                raise Closed(Gate.REDIRECT)
            if not 200 <= answer.status < 300:
                raise Closed(Gate.HTTP)
            body = await _bounded(answer)
        finally:
            answer.close()
        try:
            return decode(get(answer.headers, "content-encoding"), body, systemone.REPLY_MAX)
        except BodyError:
            raise Closed(Gate.MALFORMED) from None


async def probe_provider(decider: Decider, registry: Registry, name: str) -> dict[str, object]:
    """Test connection of a decision row, ready for JSON: `{ok, latencyMs, message|error}` or `{applicable, …}`."""
    if not probe.is_testable(name, registry, decider.hosted):
        return {"applicable": False, "reason": "retargeted", "latencyMs": 0}
    return probe.provider_result(await decider.decide(probe.provider_question(name), registry))


async def probe_decision(decider: Decider, registry: Registry, body: object) -> dict[str, object]:
    """The answer to `POST /api/combos/decision-test`: `{ok, backend, gate, latencyMs, effort?}`.

    May spend a call. Raises `probe.TrialRefused` for a body that is to be answered with 400.
    """
    return probe.trial_result(await decider.decide(probe.trial_question(body, registry), registry))


async def _bounded(answer: exchange.Answer) -> bytes:
    parts = bytearray()
    while data := await answer.read_some():
        parts += data
        if len(parts) > systemone.REPLY_MAX:
            raise Closed(Gate.MALFORMED)
    return bytes(parts)
