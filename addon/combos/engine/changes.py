"""What a target changes in the client's body: model, effort, the requested variant, members it must not see.

Changes by path in the client's own format, whether they are spliced into its bytes or applied before a translation.
"""

import json
from collections.abc import Mapping

from combos.core.effort import (
    Changes,
    EffortPolicy,
    crossing_changes,
    decided_changes,
    decided_crossing_changes,
    effort_changes,
    has_say,
    policy_for,
)
from combos.core.facts import Dialect
from combos.core.registry import Provider, Target, UnknownCombo
from combos.engine.billing_header import without_billing_header
from combos.engine.gemini_effort import gemini_effort
from combos.engine.request import TurnRequest
from combos.engine.select import Pick
from combos.wire.request import RequestFacts
from combos.wire.translate import TargetProfile, scrub

PASSTHROUGH = "internal_chat_message_metadata_passthrough"
_PASSTHROUGH = PASSTHROUGH.encode()
# Hosts that take the private member of Codex's input items; others reject members they do not know.
_PASSTHROUGH_BASES = ("https://api.openai.com/", "https://chatgpt.com/")

_EFFORT_PATHS: Mapping[Dialect, tuple[str, ...]] = {
    Dialect.RESPONSES: ("reasoning", "effort"),
    Dialect.CHAT: ("reasoning_effort",),
    Dialect.MESSAGES: ("output_config", "effort"),
    Dialect.GEMINI: ("generationConfig", "thinkingConfig", "thinkingLevel"),
}
# How values begin that only this proxy makes: sealed state, the same in Gemini's base64, a summary.
_OURS = ("cmb1.", "Y21iMS", "combos-summary:")


def body_changes(request: TurnRequest, pick: Pick, provider: Provider, *, crossing: bool) -> Changes:
    """The changes for the picked target; `crossing`: the body will be translated."""
    facts = request.facts
    native = provider.is_chatgpt
    document, variant = _with_variant(request)
    if pick.choice is not None:
        # The decision stands for what the caller, a suffix of the model id and the combo's defaults would ask for.
        variant = {("service_tier",): None} if "service_tier" in facts.document else {}
    effort = _effort(facts, document, pick, native=native, crossing=crossing)
    changes: Changes = {} if facts.dialect is Dialect.GEMINI else {("model",): pick.target.model}
    if variant or effort:
        changes |= {path: value for path, value in variant.items() if path[:1] not in effort} | effort
    if native and "user" in facts.document:
        changes[("user",)] = None
    if not crossing and facts.dialect is Dialect.MESSAGES:
        changes |= without_billing_header(facts, provider)
    return changes


def _effort(
    facts: RequestFacts, document: Mapping[str, object], pick: Pick, *, native: bool, crossing: bool
) -> Changes:
    """The changes by which the body asks for the effort that the target is to have."""
    target = pick.target
    combo = pick.origin.combo.config if pick.origin else None
    if pick.choice is None and not has_say(target, combo):
        return {}
    policy = policy_for(target, combo, native=native)
    if pick.choice is not None:
        return _decided(facts, target, policy, pick.choice.effort, crossing=crossing)
    if crossing:
        return crossing_changes(facts.dialect, document, policy)
    return effort_changes(facts.dialect, document, target.model, policy)


def _decided(
    facts: RequestFacts, target: Target, policy: EffortPolicy, effort: str | None, *, crossing: bool
) -> Changes:
    if crossing:
        return decided_crossing_changes(facts.dialect, facts.document, policy, effort)
    if facts.dialect is Dialect.GEMINI:
        return gemini_effort(facts.document, target, effort)
    return decided_changes(facts.dialect, facts.document, target.model, policy, effort)


def _with_variant(request: TurnRequest) -> tuple[Mapping[str, object], Changes]:
    """The body as a suffix of the requested model id wants it, and the changes that make it so."""
    document = request.facts.document
    changes: Changes = {}
    if isinstance(request.route, UnknownCombo):
        return document, changes
    if request.route.service_tier is not None:
        changes[("service_tier",)] = request.route.service_tier
    effort = request.route.effort
    if effort is None:
        return document, changes
    path = _EFFORT_PATHS[request.facts.dialect]
    changes[path] = effort.upper() if request.facts.dialect is Dialect.GEMINI else effort
    return changed(document, {path: effort}), changes


def changed(document: Mapping[str, object], changes: Changes) -> dict[str, object]:
    """A copy of a parsed body with the changes in it; what is not changed is shared."""
    result = dict(document)
    for (name, *rest), value in changes.items():
        if rest:
            inner = result.get(name)
            if value is not None or isinstance(inner, Mapping):
                result[name] = changed(inner if isinstance(inner, Mapping) else {}, {tuple(rest): value})
        elif value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


def holds_ours(facts: RequestFacts) -> bool:
    """Whether something is in the body that only this proxy makes, or that it writes anew for most targets."""
    if facts.dialect is Dialect.CHAT:
        return False  # it has no place for such state
    if facts.dialect is not Dialect.RESPONSES:
        return any(state.startswith(_OURS) for state in _states(facts))
    for item in _objects(facts.document.get("input")):
        state = item.get("encrypted_content")
        if item.get("type") == "agent_message" or (isinstance(state, str) and state.startswith(_OURS)):
            return True
    return False


def holds_native_state(facts: RequestFacts) -> bool:
    """Whether a provider's own reasoning state is in the body."""
    return any(_states(facts))


def _states(facts: RequestFacts) -> list[str]:
    """The provider-bound state in the conversation, from wherever the dialect keeps it."""
    document = facts.document
    match facts.dialect:
        case Dialect.RESPONSES:
            found = [item.get("encrypted_content") for item in _objects(document.get("input"))]
        case Dialect.MESSAGES:
            blocks = _within(document.get("messages"), "content")
            found = [block.get("signature") or block.get("data") for block in blocks]
        case Dialect.GEMINI:
            parts = _within(document.get("contents"), "parts")
            found = [part.get("thoughtSignature") or part.get("thought_signature") for part in parts]
        case Dialect.CHAT:
            found = []
    return [state for state in found if isinstance(state, str)]


# Lists: every block of a long conversation is looked at with every request, and generators take longer for that.
def _objects(items: object) -> list[dict[str, object]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _within(turns: object, field: str) -> list[dict[str, object]]:
    return [inner for turn in _objects(turns) for inner in _objects(turn.get(field))]


def must_strip(facts: RequestFacts, provider: Provider) -> bool:
    """Whether Codex's private member is in the body and this provider would not take it."""
    if facts.dialect is not Dialect.RESPONSES or facts.body.find(_PASSTHROUGH) < 0:
        return False
    return not f"{provider.base}/".startswith(_PASSTHROUGH_BASES)


def cleaned(facts: RequestFacts, profile: TargetProfile, *, strips: bool, cleans: bool, foreign: str | None) -> Changes:
    """The top-level members without what this target must not see. Raises `Unsupported` for a sealed agent task."""
    document = json.loads(facts.body)  # the parsed document does not keep integers beyond 64 bits
    changes: Changes = {}
    if strips and isinstance(document.get("input"), list):
        document["input"] = [_without_passthrough(item) for item in document["input"]]
        changes[("input",)] = document["input"]
    if cleans:
        changes |= {(name,): value for name, value in scrub(document, facts.dialect, profile, foreign).items()}
    return changes


def _without_passthrough(item: object) -> object:
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if key != PASSTHROUGH}
