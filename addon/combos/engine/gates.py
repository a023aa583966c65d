"""Refusals that need no target: what is checked before the first dispatch, and which refusal fits when there is none.

Every refusal leaves cooldowns, counters and rotation untouched.
"""

from combos.core import errors
from combos.core.config_combo import ImageInput, Strategy
from combos.core.eligibility import Constraints, Reason, reason_out
from combos.core.errors import ProxyError
from combos.core.facts import Dialect, Now
from combos.core.registry import DirectRoute, Target, UnknownCombo
from combos.engine.request import TurnRequest
from combos.engine.select import Pick, Selector, only_unsupported, over_budget
from combos.engine.speech import Speech
from combos.engine.state import EngineState
from combos.wire.history import previous_response
from combos.wire.request import bears_image, has_unreadable_task


def refusal(request: TurnRequest) -> ProxyError | None:
    """Why the request is refused before any target is looked at, or None."""
    route = request.route
    if isinstance(route, UnknownCombo):
        return errors.unknown_combo(route.id)
    if request.refusal is not None or isinstance(route, DirectRoute):
        return request.refusal
    combo = route.combo
    if request.decides and combo.config.strategy is Strategy.JEV:
        return errors.recursive_decision(combo.id)
    if combo.config.image_input is ImageInput.DISABLED:
        return _unseen(request) or (errors.image_refused(combo.id) if bears_image(request.facts) else None)
    return None


def _unseen(request: TurnRequest) -> ProxyError | None:
    """The refusal of a history that lies elsewhere: nobody can tell whether it holds an image."""
    previous = previous_response(request.facts.document) if request.facts.dialect is Dialect.RESPONSES else ""
    return errors.previous_response_not_found(previous) if previous else None


def direct_reason(request: TurnRequest, state: EngineState, speech: Speech, target: Target, now: Now) -> str | None:
    """Why the one target of a direct route cannot be asked, or None."""
    asked = Constraints(
        can_speak=lambda named: speech.problem(Pick(named, None), now) is None,
        encrypted=has_unreadable_task(request.facts),
        unusable=request.unusable,
        spent=lambda _: False,
        over_budget=over_budget(request, state, None, now),
        tried=(),
        cooling_ms=lambda _: 0,
    )
    return reason_out(target, asked)


def direct_refusal(speech: Speech, target: Target, reason: str, now: Now) -> ProxyError:
    """The refusal of a direct route whose target is out for `reason`."""
    if reason == Reason.UNSUPPORTED:
        return speech.refusal(target.key, (target,), now)
    if reason == Reason.ENCRYPTED_TASK:
        return errors.encrypted_task()
    return errors.target_unavailable(target.key, reason)


def unavailable(
    speech: Speech, selector: Selector, state: EngineState, reasons: dict[str, str | None], now: Now
) -> ProxyError:
    """The refusal when nothing is eligible and nothing was dispatched. `reasons` are those of all targets."""
    combo = selector.origin.combo
    if selector.encrypted and selector.readers(now):
        return errors.encrypted_task()
    if only_unsupported(reasons):
        present = [target for target in combo.targets if reasons[target.key] == Reason.UNSUPPORTED]
        return speech.refusal(f"combo/{combo.id}", present, now)
    rest_ms = state.cooldowns.earliest(combo.id, now.mono_ms)
    return errors.combo_unavailable(combo.id, None if rest_ms is None else max(1, -(-rest_ms // 1000)))
