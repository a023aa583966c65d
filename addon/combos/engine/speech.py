"""What one turn says to each target: the client's own bytes, or a translation of them, each made once and when needed.

Every target's words are built from the original request. It says whether a target can be asked at all; which one is
asked, and what the answer means, is decided elsewhere.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

import orjson

from combos.core import errors
from combos.core.effort import Changes
from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Now, Surface
from combos.core.registry import Combo, ComboRoute, Provider, Target, is_canonical_chatgpt
from combos.core.values import dataclass
from combos.engine.changes import body_changes, changed, cleaned, holds_native_state, holds_ours, must_strip
from combos.engine.request import TurnRequest
from combos.engine.select import Choice, Pick
from combos.engine.state import EngineState
from combos.wire.history import PREVIOUS, previous_response
from combos.wire.request import compaction_trigger
from combos.wire.splice import Path, replace_members
from combos.wire.translate import Circumstances, Context, TargetProfile, Unsupported, target_profile, translate_request

_MODEL = ("model",)
_COUNT = Unsupported("messages/count_tokens", "is answered in the client's own format only")


@dataclass(frozen=True, slots=True)
class Words:
    """A request as one target is asked. `context` is what its answer is read with; None when the client can read it
    as it comes. `dropped` names what the target does not carry, in the client's words."""

    body: bytes
    stream: bool
    context: Context | None = None
    dropped: tuple[str, ...] = ()


class Speech:
    """The words of one request. Translations are kept, since the same target may be looked at several times."""

    def __init__(self, request: TurnRequest, state: EngineState) -> None:
        self._request = request
        self._facts = request.facts
        self._state = state
        facts = request.facts
        self._conversation = request.conversation
        self._is_compaction = compaction_trigger(facts)
        self._holds_ours: bool | None = None
        self._made: dict[tuple[str, Choice | None], tuple[Pick, Words | Unsupported]] = {}

    # -- may it be asked

    def known_problem(self, target: Target, now: Now) -> Unsupported | None:
        """Why the target cannot be asked, as far as that is known without building its request."""
        facts = self._facts
        if facts.dialect is Dialect.RESPONSES:
            refused = self._kept_elsewhere(target, now)
            if refused is not None:
                return refused
        if facts.surface is Surface.COUNT_TOKENS and target.dialect is not facts.dialect:
            return _COUNT
        found = self._looked_at(target)
        return found if isinstance(found, Unsupported) else None

    def is_open(self, target: Target, now: Now) -> bool:
        """Whether only building its request can tell if the target can be asked."""
        return self._looked_at(target) is None and (self._crosses(target) or self._must_clean(target, now))

    def problem(self, pick: Pick, now: Now) -> Unsupported | None:
        """Why the target cannot be asked, None when it can."""
        known = self.known_problem(pick.target, now)
        if known is None and self.is_open(pick.target, now):
            found = self._words(pick, now)
            return found if isinstance(found, Unsupported) else None
        return known

    def refusal(self, name: str, targets: Sequence[Target], now: Now) -> ProxyError:
        """The refusal when all of these targets have a problem; `name` is what the client asked for."""
        for target in targets:
            problem = self.known_problem(target, now)
            if problem is not None and problem.feature == PREVIOUS and self._previous():
                return errors.previous_response_not_found(self._previous())
            if problem is not None:
                return errors.unsupported_by_target(target.key, problem.feature, problem.reason)
        return errors.unsupported_by_target(name, f"A {self._facts.dialect} request", "has no wire format in common")

    # -- what it is asked

    def words(self, pick: Pick, ordinal: int, now: Now) -> Words:
        """The request for a target without a problem. `ordinal` numbers the attempts of the turn.

        Raises `Unsupported` for a target that has one.
        """
        words = self._words(pick, now)
        if isinstance(words, Unsupported):
            raise words
        if words.context is None:
            return words
        seed = f"{self._request.seed}:{ordinal}"
        return replace(words, context=replace(words.context, seed=seed, created_s=now.epoch_ms // 1000))

    def _words(self, pick: Pick, now: Now) -> Words | Unsupported:
        made = self._made.get((pick.target.key, pick.choice))
        if made is not None and made[0].target is pick.target and _combo(made[0]) is _combo(pick):
            return made[1]
        try:
            found: Words | Unsupported = self._build(pick, now)
        except Unsupported as problem:
            found = problem
        self._made[pick.target.key, pick.choice] = (pick, found)
        return found

    def _looked_at(self, target: Target) -> Words | Unsupported | None:
        """What was made for this very target: a reload may have put another one under its key."""
        made = self._made.get((target.key, None))
        return made[1] if made is not None and made[0].target is target else None

    def _build(self, pick: Pick, now: Now) -> Words:
        target, provider = pick.target, pick.target.provider
        if provider is None or target.dialect is None:
            raise ValueError(f"{target.key} has no provider")
        if self._crosses(target):
            return self._translated(pick, provider, target.dialect, now)
        return self._native(pick, provider, now)

    def _native(self, pick: Pick, provider: Provider, now: Now) -> Words:
        """The client's bytes with the changed members spliced in."""
        facts = self._facts
        changes = body_changes(self._request, pick, provider, crossing=False)
        strips, cleans = must_strip(facts, provider), self._must_clean(pick.target, now)
        if strips or cleans:
            foreign = self._foreign(pick.target, now)
            changes |= cleaned(facts, _profile(pick.target), strips=strips, cleans=cleans, foreign=foreign)
        return Words(self._spliced(changes), facts.stream)

    def _spliced(self, changes: Changes) -> bytes:
        body, span = self._facts.body, self._facts.model_at
        model = changes.get(_MODEL)
        if span is not None and model is not None and len(changes) == 1:
            return b"".join((body[: span[0]], _json(model) or b"", body[span[1] :]))
        return replace_members(body, {_path(path): _json(value) for path, value in changes.items()})

    def _translated(self, pick: Pick, provider: Provider, dialect: Dialect, now: Now) -> Words:
        facts = self._facts
        changes = body_changes(self._request, pick, provider, crossing=True)
        if dialect is facts.dialect and must_strip(facts, provider):
            changes |= cleaned(facts, _profile(pick.target), strips=True, cleans=False, foreign=None)
        document = changed(facts.document, changes)
        given = Circumstances(
            seed="",
            created_s=0,
            stream=facts.stream if facts.surface is Surface.GENERATE else None,
            compact=facts.surface is Surface.COMPACT,
            native_from=self._foreign(pick.target, now),
            codex=(self._request.fields.get(b"originator") or "").startswith("codex"),
        )
        made = translate_request(document, facts.dialect, dialect, _profile(pick.target), given)
        return Words(made.body, made.stream, made.context, made.dropped)

    # -- which targets need more than the client's bytes

    def _crosses(self, target: Target) -> bool:
        return target.dialect is not self._facts.dialect or (self._is_compaction and self._summarises(target))

    def _summarises(self, target: Target) -> bool:
        """Whether a compaction is served by an ordinary turn. A combo never calls a target's own endpoint for it,
        because failover needs a turn; a target that is named directly is called as the client wants."""
        if self._facts.surface is Surface.COMPACT:
            return isinstance(self._request.route, ComboRoute)
        return target.provider is not None and not is_canonical_chatgpt(target.provider)

    def _must_clean(self, target: Target, now: Now) -> bool:
        if self._holds_ours is None:
            self._holds_ours = holds_ours(self._facts)
        if self._holds_ours or self._foreign(target, now) is None:
            return self._holds_ours
        return bool(self._request.makers) or holds_native_state(self._facts)

    def _foreign(self, target: Target, now: Now) -> str | None:
        """A provider other than the target's whose own state may be in the request; None when there is none known."""
        makers = self._request.makers
        others = makers - {target.provider_name} if makers else None
        if others:
            return min(others)
        if self._conversation is None:
            return None
        return self._state.foreign_maker(self._conversation, target.provider_name, now)

    # -- state that a target keeps

    def _previous(self) -> str:
        return previous_response(self._facts.document) if self._facts.dialect is Dialect.RESPONSES else ""

    def _kept_elsewhere(self, target: Target, now: Now) -> Unsupported | None:
        """State behind a response id is at the target that made it. A combo knows nobody for an id it does not
        remember; a target that is named directly may still have it."""
        previous = self._previous()
        if not previous:
            return None
        keeper = self._state.keeper_of(previous, now)
        named = keeper is None and not isinstance(self._request.route, ComboRoute)
        if (keeper == target.key or named) and not _keeps_nothing(target):
            return None
        return Unsupported(PREVIOUS, "refers to state kept by another provider")


def _profile(target: Target) -> TargetProfile:
    profile = target_profile(target)
    if profile is None:
        raise ValueError(f"{target.key} answers no model request")
    return profile


def _keeps_nothing(target: Target) -> bool:
    """The ChatGPT backend answers from what it is sent, and takes no response id."""
    return target.provider is not None and is_canonical_chatgpt(target.provider)


def _combo(pick: Pick) -> Combo | None:
    return None if pick.origin is None else pick.origin.combo


def _path(path: tuple[str, ...]) -> Path:
    return path[0] if len(path) == 1 else path


def _json(value: object) -> bytes | None:
    if value is None:
        return None
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()  # integers beyond 64 bits, lone surrogates
