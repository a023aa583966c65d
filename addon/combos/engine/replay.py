"""Conversations that go on by `previous_response_id`: what is kept of an answered turn, and how a request gets it back.

Targets share no storage, so a known id becomes the full history, for whichever target is asked. What to do about an id
that is not known is decided by `speech`.
"""

from collections.abc import Callable
from dataclasses import replace

from combos.core import errors
from combos.core.facts import Dialect, Now, Surface
from combos.core.replay import Exchange
from combos.engine.attempt import Attempt
from combos.engine.request import TurnRequest
from combos.engine.state import EngineState
from combos.wire.history import continued, kept_output, previous_response
from combos.wire.json_text import loads
from combos.wire.request import compaction_trigger, parent_thread


def replayed(request: TurnRequest, state: EngineState, clock: Callable[[], Now]) -> TurnRequest:
    """The request with the history behind the id it names, once, before anything else looks at it. `clock` is asked
    only when there is such an id.

    Unchanged for an id that is not known. An answer that another caller or thread got, and one whose history cannot be
    put before the new items, is refused: that is what the request says then.
    """
    facts = request.facts
    previous = previous_response(facts.document) if facts.dialect is Dialect.RESPONSES else ""
    exchange = state.replay.get(previous, clock().mono_ms) if previous else None
    if exchange is None:
        return request
    lost = replace(request, refusal=errors.previous_response_not_found(previous))
    if (exchange.caller, exchange.thread) != (request.caller, parent_thread(request.fields)):
        return lost
    try:
        body = continued(facts.body, exchange.body, exchange.output)
        document = loads(body)
    except ValueError:
        return lost
    return replace(request, facts=replace(facts, body=body, document=document, model_at=None), makers=exchange.makers)


def keep(request: TurnRequest, attempt: Attempt, state: EngineState, now: Now) -> None:
    """Remember a turn that ended, under the id that the client was told.

    Not for compactions, nor for a request whose own history is not known. One that asked for `store: false` is kept
    only in its own format: a translated answer never was the target's to keep.
    """
    response = attempt.response
    if response is None or attempt.kept:
        return
    attempt.kept = True
    stored = request.facts.document.get("store") is not False
    if not _is_kept(request) or not (stored or attempt.voice is None):
        return
    output, response_id = kept_output(response, stored=stored), response.get("id")
    if output is None or (output == b"[]" and attempt.has_output) or not isinstance(response_id, str):
        return
    own = () if attempt.voice is not None else (attempt.pick.target.provider_name,)
    thread = parent_thread(request.fields)
    exchange = Exchange(request.caller, thread, request.facts.body, output, request.makers.union(own))
    state.replay.put(response_id, exchange, now.mono_ms)


def _is_kept(request: TurnRequest) -> bool:
    facts = request.facts
    if facts.surface is not Surface.RESPONSES or facts.dialect is not Dialect.RESPONSES or request.decides:
        return False
    return not previous_response(facts.document) and not compaction_trigger(facts)
