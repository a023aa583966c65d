"""The live state of combos as text: the rows of the API, in lines for people."""

from collections.abc import Iterator
from typing import Any


def explain_lines(row: dict[str, Any]) -> Iterator[str]:
    """One line for the combo, one for each target, one for what the next request would do."""
    yield f"{row['model']}: {row['strategy']}"
    for target in row["targets"]:
        yield f"  {target['target']}: {', '.join(_target(target))}"
    yield f"  next request: {_next(row)}"


def state_rows(body: dict[str, Any]) -> list[tuple[str, ...]]:
    """Columns: combo, target, state, successes, last error; `→` marks the target of the next request."""
    rows: list[tuple[str, ...]] = []
    for combo in body["combos"]:
        for target in combo["targets"]:
            mark = "→ " if target["target"] == combo["next"] else ""
            rows.append(
                (combo["id"], mark + target["target"], _reason(target), str(target["successes"]), _last(target))
            )
    return rows


def seconds(ms: int) -> str:
    """A duration."""
    return f"{ms / 1000:.1f} s"


def _target(target: dict[str, Any]) -> Iterator[str]:
    yield _reason(target)
    if target["weight"] != 1:
        share = f" ({target['share']:.0%})" if target["share"] is not None else ""
        yield f"weight {target['weight']}{share}"
    if target["successes"]:
        yield f"{target['successes']} served"
    if target["active"]:
        yield "active in rotation"
    if target["lastResort"]:
        yield "last resort"
    if _last(target):
        yield f"last error {_last(target)}"


def _reason(target: dict[str, Any]) -> str:
    cooldown = target["cooldown"]
    if target["eligible"]:
        return "ready"
    if cooldown is None:
        return str(target["reason"])
    return f"{target['reason']} {seconds(cooldown['leftMs'])} ({cooldown['rule']} by {cooldown['source']})"


def _last(target: dict[str, Any]) -> str:
    error = target["lastError"]
    if error is None:
        return ""
    return f"{error['rule']} {error['status'] or error['result'] or ''}".rstrip()


def _next(row: dict[str, Any]) -> str:
    if row["action"] == "wait":
        return f"waits {seconds(row['waitMs'])} for the first target to come back"
    if row["action"] == "refuse":
        retry = row["refusal"]["retryAfterMs"]
        back = f", the first target is back in {seconds(retry)}" if retry else ""
        return f"{row['refusal']['status']} {row['refusal']['code']}{back}"
    if not row["order"]:
        return "drawn at random among the ready targets"
    return ", then ".join(row["order"])
