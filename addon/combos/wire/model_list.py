"""A provider's own model list, read into rows: whatever of the many vendors' fields says what a model can do.

Unknown, malformed and implausible values are gaps, never errors; only an answer that is no list at all is refused.
"""

from collections.abc import Iterable, Mapping

import orjson

from combos.core.catalog_member import IMAGE, TEXT, Capabilities, DiscoveredModel
from combos.core.config_provider import Modality
from combos.core.ladder import RUNGS, UNRANKED
from combos.core.limits import MODEL_ID_MAX, TEXT_MAX, TOKENS_MAX

ROWS_MAX = 5_000  # the largest public gateways list about a thousand

type Row = Mapping[str, object]
type _Path = tuple[str, ...]

_LIST_KEYS = ("data", "models")
_ID_KEYS = ("id", "slug", "model", "name")
_LABEL_KEYS = ("display_name", "displayName", "label")

_CONTEXT: tuple[_Path, ...] = (
    ("context_window",),
    ("context_length",),
    ("max_context_length",),
    ("max_model_len",),
    ("capabilities", "context_length"),
    ("top_provider", "context_length"),
    ("inputTokenLimit",),
    ("max_input_tokens",),
)
_MAX_INPUT: tuple[_Path, ...] = (("max_input_tokens",), ("inputTokenLimit",))
_MAX_OUTPUT: tuple[_Path, ...] = (
    ("max_output_tokens",),
    ("outputTokenLimit",),
    ("max_completion_tokens",),
    ("capabilities", "max_output_tokens"),
    ("top_provider", "max_completion_tokens"),
)
_AUTO_COMPACT: tuple[_Path, ...] = (("auto_compact_token_limit",),)
_MODALITIES: tuple[_Path, ...] = (
    ("input_modalities",),
    ("architecture", "input_modalities"),
    ("capabilities", "input_modalities"),
)
_EFFORTS: tuple[_Path, ...] = (
    ("supported_reasoning_levels",),
    ("reasoning_efforts",),
    ("capabilities", "reasoning_effort"),
)
_KNOWN_MODALITIES = tuple(modality.value for modality in Modality)
_ORDER = (*UNRANKED, *RUNGS)


class ModelListError(ValueError):
    """The answer is no list of models."""


def parse_model_list(body: bytes) -> tuple[DiscoveredModel, ...]:
    """The rows of `{data:[…]}`, `{models:[…]}` or a bare array, without repetitions, at most `ROWS_MAX`.

    Raises `ModelListError`.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise ModelListError("not valid JSON") from None
    rows: dict[str, DiscoveredModel] = {}
    for entry in _entries(document):
        row = _discovered(entry)
        if row is not None:
            rows.setdefault(row.id, row)
        if len(rows) == ROWS_MAX:
            break
    return tuple(rows.values())


def _entries(document: object) -> Iterable[object]:
    if isinstance(document, dict):
        document = next((document[key] for key in _LIST_KEYS if isinstance(document.get(key), list)), None)
    if not isinstance(document, list):
        raise ModelListError("not a list of models")
    return document


def _discovered(entry: object) -> DiscoveredModel | None:
    row: Row = {"id": entry} if isinstance(entry, str) else entry if isinstance(entry, dict) else {}
    name = next((text for key in _ID_KEYS if (text := _text(row.get(key), MODEL_ID_MAX))), None)
    methods = row.get("supportedGenerationMethods")
    if name is None or (isinstance(methods, list) and "generateContent" not in methods):
        return None
    label = next((text for key in _LABEL_KEYS if (text := _text(row.get(key), TEXT_MAX))), None)
    return DiscoveredModel(name.removeprefix("models/"), label, _capabilities(row))


def _capabilities(row: Row) -> Capabilities:
    return Capabilities(
        context=_tokens(row, _CONTEXT),
        max_input=_tokens(row, _MAX_INPUT),
        max_output=_tokens(row, _MAX_OUTPUT) or _anthropic_output(row),
        auto_compact=_tokens(row, _AUTO_COMPACT),
        modalities=_modalities(row),
        ladder=_ladder(row),
        parallel_tools=_parallel_tools(row),
        fast=_fast(row),
        summaries=_flag(row.get("supports_reasoning_summaries")),
        verbosity=_flag(row.get("support_verbosity")),
    )


def _at(row: Row, path: _Path) -> object:
    value: object = row
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(value: object, longest: int) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= longest and value.isprintable() else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _tokens(row: Row, paths: Iterable[_Path]) -> int | None:
    for path in paths:
        value = _at(row, path)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= TOKENS_MAX:
            return value
    return None


def _anthropic_output(row: Row) -> int | None:
    """`max_tokens` means the largest answer in Anthropic's rows only."""
    return _tokens(row, (("max_tokens",),)) if row.get("type") == "model" else None


def _modalities(row: Row) -> tuple[str, ...] | None:
    for path in _MODALITIES:
        value = _at(row, path)
        if isinstance(value, list):
            words = tuple(dict.fromkeys(word for word in value if word in _KNOWN_MODALITIES))
            return words or None
    sees = _flag(_at(row, ("capabilities", "image_input", "supported")))
    return None if sees is None else (TEXT, IMAGE) if sees else (TEXT,)


def _ladder(row: Row) -> tuple[str, ...] | None:
    """Only Codex rows and Anthropic rows can say that there is no effort control; elsewhere an empty list is a gap."""
    for path in _EFFORTS:
        value = _at(row, path)
        if isinstance(value, list):
            words = {_word(item) for item in value}
            ladder = tuple(effort for effort in _ORDER if effort in words)
            is_explicit = path == ("supported_reasoning_levels",) and not value
            return ladder if ladder or is_explicit else None
    effort = _at(row, ("capabilities", "effort"))
    if not isinstance(effort, dict) or not isinstance(effort.get("supported"), bool):
        return None
    return tuple(rung for rung in RUNGS if effort["supported"] and _at(effort, (rung, "supported")) is True)


def _word(item: object) -> object:
    """A level as text, or the text in `{effort}` or `{value}`."""
    if isinstance(item, dict):
        item = item.get("effort", item.get("value"))
    return item if isinstance(item, str) else None


def _parallel_tools(row: Row) -> bool | None:
    stated = _flag(row.get("supports_parallel_tool_calls"))
    parameters = row.get("supported_parameters")
    if stated is None and isinstance(parameters, list) and "parallel_tool_calls" in parameters:
        return True
    return stated


def _fast(row: Row) -> bool | None:
    """Whether a faster service tier is offered; lists that do not mention tiers say nothing."""
    tiers = [row.get(key) for key in ("service_tiers", "additional_speed_tiers")]
    words = {_tier(item) for tier in tiers if isinstance(tier, list) for item in tier}
    return True if words & {"priority", "fast"} else None


def _tier(item: object) -> object:
    if isinstance(item, dict):
        item = item.get("id")
    return item if isinstance(item, str) else None
