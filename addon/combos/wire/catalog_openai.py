"""The OpenAI shape of the model list: `{"object":"list","data":[…]}`, with the fields common gateways add.

Numbers that are not known are left out, never zero.
"""

from collections.abc import Sequence

from combos.core.catalog import NATIVE_OWNER, CatalogRow
from combos.core.catalog_member import IMAGE
from combos.core.registry import FAST_SUFFIX

type Json = dict[str, object]

_API_TYPES = ["chat_completions", "responses", "anthropic_messages"]
# Which effort is marked as default when none is configured: the first of these that is offered.
_USUAL_DEFAULTS = ("medium", "high")


def openai_document(rows: Sequence[CatalogRow], *, fast_rows: bool) -> Json:
    """The whole answer for these rows. `fast_rows`: models with a priority tier get a second name."""
    return {"object": "list", "data": openai_rows(rows, fast_rows=fast_rows)}


def openai_rows(rows: Sequence[CatalogRow], *, fast_rows: bool) -> list[Json]:
    """One row for each model, followed by its `--fast` sibling where there is one and the name is free."""
    taken = {row.id for row in rows}
    made: list[Json] = []
    for row in rows:
        made.append(openai_row(row))
        fast = row.id + FAST_SUFFIX
        if fast_rows and row.can.fast and fast not in taken:
            made.append({**openai_row(row), "id": fast})
    return made


def openai_row(row: CatalogRow) -> Json:
    """One row. Combos belong to `openai`, as far as clients look at the owner, and say what they are."""
    is_openai = row.is_combo or row.namespace == NATIVE_OWNER
    head: Json = {
        "id": row.id,
        "object": "model",
        "created": 0,
        "owned_by": NATIVE_OWNER if is_openai else row.namespace,
    }
    if row.is_combo:
        head["is_combo"] = True
    return {**head, **_efforts(row), "api_types": _API_TYPES, "capabilities": _capabilities(row), **_sizes(row)}


def _efforts(row: CatalogRow) -> Json:
    ladder = row.can.ladder
    if not ladder:
        return {}
    default = _default(row)
    words = [{"value": effort, "label": f"{_title(effort)} Effort"} for effort in ladder]
    marked: list[Json] = [{**word, "default": True} if word["value"] == default else {**word} for word in words]
    return {"supports_reasoning_effort": True, "reasoning_effort": default, "reasoning_efforts": marked}


def _default(row: CatalogRow) -> str:
    ladder = row.can.ladder
    if row.can.default_effort in ladder:
        return str(row.can.default_effort)
    return next((effort for effort in _USUAL_DEFAULTS if effort in ladder), ladder[0])


def _title(effort: str) -> str:
    return "XHigh" if effort == "xhigh" else effort.capitalize()


def _capabilities(row: CatalogRow) -> Json:
    can = row.can
    output: Json = {} if can.max_output is None else {"max_output_tokens": can.max_output}
    return {
        "context_length": can.context,
        **output,
        "output_modalities": ["text"],
        "input_modalities": list(can.modalities),
        "supports_tool_use": True,
        "supports_streaming": True,
        "supports_reasoning": bool(can.ladder),
        "supports_vision": IMAGE in can.modalities,
        "reasoning_effort": list(can.ladder),
    }


def _sizes(row: CatalogRow) -> Json:
    can = row.can
    output: Json = {} if can.max_output is None else {"max_output_tokens": can.max_output}
    return {"context_window": can.context, "context_length": can.context, **output}
