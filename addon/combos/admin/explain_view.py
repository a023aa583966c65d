"""An explanation as lines of text, the same in mitmproxy's commands and on the command line."""

from collections.abc import Iterator

from combos.engine.explain import Explanation, TargetExplanation


def lines(explanation: Explanation) -> list[str]:
    """One line for the combo, one for each target, one for what the next request would do."""
    head = f"combo/{explanation.combo}: {explanation.strategy}, configuration {explanation.generation}"
    return [head, *(f"  {_target(target)}" for target in explanation.targets), f"  {_next(explanation)}"]


def _target(target: TargetExplanation) -> str:
    return ", ".join([f"{target.key}: {target.reason or 'ready'}", *_details(target)])


def _details(target: TargetExplanation) -> Iterator[str]:
    if target.cooling_ms:
        status = f", status {target.cooldown_status}" if target.cooldown_status else ""
        why = f"rule {target.cooldown_rule}, by {target.cooldown_source}{status}"
        yield f"{target.cooling_ms / 1000:.1f} s left ({why})"
    if target.weight != 1:
        yield f"weight {target.weight}"
    if target.successes:
        yield f"{target.successes} served"
    if target.is_active:
        yield "active in rotation"
    if target.is_last_resort:
        yield "last resort"


def _next(explanation: Explanation) -> str:
    if explanation.next is not None:
        return f"next request: {explanation.next}"
    if any(target.reason is None for target in explanation.targets):
        return "next request: drawn at random among the ready targets"
    if explanation.retry_after_ms is None:
        return "next request: combo_unavailable"
    return f"next request: combo_unavailable, the first target is back in {explanation.retry_after_ms / 1000:.1f} s"
