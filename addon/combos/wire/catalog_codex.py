"""The Codex shape of the model list: `{"models":[…]}` with every field a Codex release may insist on.

Codex parses strictly: one bad row and its whole list is thrown away. Fields that only make sense for OpenAI's own
models are left out, among them those that change how requests are written (`use_responses_lite`, `tool_mode`,
`multi_agent_version`) and `comp_hash`, which would make a switch between models compact the conversation.
"""

from collections.abc import Sequence

from combos.core.catalog import CatalogRow, RowKind
from combos.core.catalog_member import IMAGE

type Json = dict[str, object]

# Codex orders by priority, ascending; the first one is its default model.
ROUTED_PRIORITY = 5
NATIVE_PRIORITY = 9

# The only input kinds that Codex knows; another word would invalidate the list.
_MODALITIES = ("text", "image", "audio")
# The label of rows that took a native slug, for tools that keep Codex catalogs in order.
_NATIVE_ALIAS_KIND = "combo-native-alias-v1"
_TARGETS_SHOWN = 3

INSTRUCTIONS = """\
You are a coding agent that works in a terminal on the user's computer, through the tools that come with the request.

- Find out before you act: read the files that matter, and follow the instructions files of the repository.
- Change what the task needs and nothing else, in the style of the code around it. Never undo changes you did not make.
- Run the project's checks when there are any, and mend what you broke.
- Ask for approval where the session requires it. Do not destroy data, and do not publish anything unasked.
- Keep going until the task is done. Then say briefly what you changed, what you checked, and what is left open.
"""

_LEVELS = {
    "none": "No reasoning",
    "minimal": "Answers almost at once",
    "low": "Fast answers with light reasoning",
    "medium": "Balances speed and depth",
    "high": "Deep reasoning for hard problems",
    "xhigh": "Very deep reasoning",
    "max": "The deepest reasoning of the model",
    "ultra": "The deepest reasoning, with delegation where the model offers it",
}


def codex_document(rows: Sequence[CatalogRow]) -> Json:
    """The whole answer for these rows, those marked as hidden included."""
    return {"models": [codex_row(row, priority=usual_priority(row)) for row in rows]}


def usual_priority(row: CatalogRow) -> int:
    """Where a row stands in the picker when no list of the vendor says otherwise."""
    return NATIVE_PRIORITY if row.kind in (RowKind.NATIVE, RowKind.NATIVE_ALIAS) else ROUTED_PRIORITY


def codex_row(row: CatalogRow, *, priority: int, instructions: str = INSTRUCTIONS) -> Json:
    """One row. `instructions` becomes the agent's base prompt."""
    return {
        "slug": row.id,
        "display_name": row.label or row.id,
        "description": _description(row),
        "visibility": "hide" if row.hidden else "list",
        "supported_in_api": True,
        "priority": priority,
        "owned_by": row.namespace,
        **({"opencodex_catalog_kind": _NATIVE_ALIAS_KIND} if row.kind is RowKind.NATIVE_ALIAS else {}),
        "shell_type": "unified_exec",
        "base_instructions": instructions,
        **_reasoning(row),
        **_sizes(row),
        **_abilities(row),
    }


def _description(row: CatalogRow) -> str:
    shown = ", ".join(row.targets[:_TARGETS_SHOWN])
    more = len(row.targets) - _TARGETS_SHOWN
    rest = f" and {more} more" if more > 0 else ""
    return f"Combo of {shown}{rest}" if row.is_combo else f"{row.name} at {row.namespace}"


def _reasoning(row: CatalogRow) -> Json:
    """Unless a target is known not to summarise, clients treat the row as they treat models they do not know."""
    can = row.can
    levels = [{"effort": effort, "description": _LEVELS[effort]} for effort in can.ladder if effort in _LEVELS]
    default: Json = {} if can.default_effort is None else {"default_reasoning_level": can.default_effort}
    summaries = can.summaries is not False
    return {
        "supported_reasoning_levels": levels,
        **default,
        "supports_reasoning_summaries": summaries,
        "default_reasoning_summary": "auto" if summaries else "none",
        "support_verbosity": can.verbosity is True,
        "default_verbosity": "low" if can.verbosity else None,
    }


def _sizes(row: CatalogRow) -> Json:
    can = row.can
    return {
        "context_window": can.context,
        "max_context_window": can.context,
        "auto_compact_token_limit": can.auto_compact,
        "effective_context_window_percent": 95,
        "truncation_policy": {"mode": "tokens", "limit": 10_000},
    }


def _abilities(row: CatalogRow) -> Json:
    """Tools that only OpenAI's own endpoints know are offered when every target is one of those."""
    can = row.can
    return {
        "input_modalities": [word for word in can.modalities if word in _MODALITIES],
        "supports_parallel_tool_calls": can.parallel_tools is not False,
        "apply_patch_tool_type": "freeform" if row.native_tools else None,
        "experimental_supported_tools": [],
        "supports_image_detail_original": False,
        "supports_search_tool": row.native_tools,
        "web_search_tool_type": "text_and_image" if IMAGE in can.modalities else "text",
        "node_repl_disabled": False,
        "node_repl_auto_review_required": False,
        "include_plugin_usage_instructions": False,
        "include_apps_usage_instructions": True,
    }
