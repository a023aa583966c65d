"""Changes of combos as pure functions over the document: what is kept when it is not sent, what follows a rename.

Functional spec, "Management API". Values are judged by the configuration's own rules, not here.
"""

from collections.abc import Mapping
from typing import Any

from combos.admin.references import Document, deciding_by, follow, forget, public_names, renamed
from combos.admin.refusal import conflict, invalid, not_found, not_valid
from combos.admin.sparse import stored_combo, unknown_settings, without_row_keys
from combos.admin.store import Edit
from combos.core.config import ComboConfig, TargetConfig
from combos.core.config_document import key_names
from combos.core.config_types import near_miss
from combos.core.errors import ConfigProblem
from combos.core.values import dataclass

# Kept when a definition that replaces another leaves them out. All other known fields go back to their default.
KEPT = (
    "cooldownMs",
    "waitForCooldownMs",
    "cooldownWaitPolicy",
    "defaultEffortMode",
    "reasoningEffortMode",
    "imageInput",
    "contextOverflow",
    "affinity",
    "firstOutputTimeoutMs",
    "hedgeAfterMs",
)
_METHOD = ("decisionProvider", "decisionModel")
_TIMEOUT = "decisionTimeoutMs"


@dataclass(frozen=True, slots=True)
class ComboPut:
    """A definition to store. `clear` holds fields that are not kept although they are left out."""

    id: str
    combo: object
    rename_from: str | None = None
    clear: frozenset[str] = frozenset()


def put_combo(document: Document, put: ComboPut) -> Edit[dict[str, Any]]:
    """Create, replace or rename. The result is the definition as stored. Raises `RefusalError`."""
    combos = document.get("combos", {})
    old_id = put.id if put.rename_from is None else _rename_source(combos, put)
    if not isinstance(put.combo, dict):
        raise invalid("combo must be an object", "combo_missing", at="combo")
    old = combos.get(old_id, {})
    sent = without_row_keys(put.combo)
    _refuse_unknown(put.id, sent, old)
    made = stored_combo(_with_kept(sent, old, put.clear), old)
    document["combos"] = _placed(combos, old_id, put.id, made)
    if old:
        follow(document, renamed((old_id, old), (put.id, made)))
    return Edit(document, document["combos"][put.id], saved=(put.id,))


def merge_combo(document: Document, put: ComboPut) -> Edit[dict[str, Any]]:
    """Change only the fields that are sent; null takes a field back to its default. Raises `RefusalError`."""
    old_id = put.rename_from or put.id
    old = document.get("combos", {}).get(old_id)
    if old is None:
        raise unknown_combo(document, old_id)
    changes = put.combo if isinstance(put.combo, dict) else {}
    merged = {**{key: value for key, value in old.items() if key not in put.clear}, **changes}
    if merged.get("strategy") != "jev":
        for key in (*_METHOD, _TIMEOUT):
            if key not in changes:
                merged.pop(key, None)
    whole = {key: value for key, value in merged.items() if value is not None}
    return put_combo(document, ComboPut(put.id, whole, put.rename_from, clear=put.clear | _nulls(changes)))


def remove_combo(document: Document, combo_id: str) -> Edit[str]:
    """Remove. The last combo takes the `combos` key with it. Raises `RefusalError`."""
    combos = document.get("combos", {})
    if combo_id not in combos:
        raise unknown_combo(document, combo_id)
    names = public_names(combo_id, combos[combo_id])
    dependents = [name for name in deciding_by(document, names) if name != combo_id]
    if dependents:
        message = f"combo {combo_id} decides for {', '.join(dependents)}; change their decisionModel first"
        raise conflict(message, "combo_has_dependent_combos", combos=dependents)
    del combos[combo_id]
    if not combos:
        del document["combos"]
    forget(document, names)
    return Edit(document, combo_id)


def unknown_combo(document: Mapping[str, Any], combo_id: str) -> Exception:
    """The refusal for an id that is not configured, with the id that was probably meant."""
    return not_found(f"unknown combo: {combo_id}{near_miss(combo_id, list(document.get('combos', {})))}")


def _rename_source(combos: Mapping[str, Any], put: ComboPut) -> str:
    source = put.rename_from
    if not source:
        raise invalid("renameFrom must not be empty", "rename_invalid", at="renameFrom")
    if source == put.id:
        raise invalid("renameFrom must differ from id", "rename_invalid", at="renameFrom")
    if source not in combos:
        raise invalid(
            f"renameFrom names no configured combo{near_miss(source, list(combos))}", "rename_unknown", at="renameFrom"
        )
    if put.id in combos:
        raise invalid(f"combo {put.id} exists already", "rename_taken", at="id")
    return source


def _refuse_unknown(combo_id: str, sent: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    place = ("combos", combo_id)
    problems: list[ConfigProblem] = list(unknown_settings(ComboConfig, sent, old, place))
    targets = sent.get("targets")
    for index, target in enumerate(targets if isinstance(targets, list) else ()):
        if isinstance(target, dict):
            before = _counterpart(target, old)
            problems += unknown_settings(TargetConfig, target, before, (*place, "targets", index))
    if problems:
        raise not_valid(tuple(problems))


def _with_kept(sent: Mapping[str, Any], old: Mapping[str, Any], clear: frozenset[str]) -> dict[str, Any]:
    """What was sent, and of the definition before what must not be lost by silence."""
    known = frozenset(key_names(ComboConfig).values())
    kept = {key: value for key, value in old.items() if (key in KEPT or key not in known) and key not in clear}
    if sent.get("strategy") == "jev":
        is_method_sent = any(key in sent for key in _METHOD)
        fields = (_TIMEOUT,) if is_method_sent else (*_METHOD, _TIMEOUT)
        kept |= {key: old[key] for key in fields if key in old and key not in clear}
    made = {**kept, **sent}
    if isinstance(sent.get("targets"), list):
        made["targets"] = [_target_with_kept(target, old) for target in sent["targets"]]
    return made


def _target_with_kept(target: Any, old: Mapping[str, Any]) -> Any:
    if not isinstance(target, dict):
        return target
    known = frozenset(key_names(TargetConfig).values()) - {"lastResort"}
    before = _counterpart(target, old)
    return {**{key: value for key, value in before.items() if key not in known}, **target}


def _counterpart(target: Mapping[str, Any], old: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stored target of the same provider and model."""
    pair = (target.get("provider"), target.get("model"))
    same = (before for before in old.get("targets", ()) if (before["provider"], before["model"]) == pair)
    return next(same, {})


def _placed(combos: Mapping[str, Any], old_id: str, new_id: str, made: dict[str, Any]) -> dict[str, Any]:
    """The combos with one replaced where it stood, or added at the end."""
    placed = {(new_id if key == old_id else key): (made if key == old_id else combo) for key, combo in combos.items()}
    placed.setdefault(new_id, made)
    return placed


def _nulls(changes: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(key for key, value in changes.items() if value is None)
