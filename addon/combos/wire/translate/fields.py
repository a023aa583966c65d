"""The request fields that have one meaning in several dialects: how each spells them, and which targets carry them.

One table serves the renderers, the record of dropped fields and the manual, so that none of them can drift.
"""

from collections.abc import Mapping

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.wire.translate.ir import Request, Schema
from combos.wire.translate.profile import TargetProfile
from combos.wire.translate.shape import Json

_R, _C, _M, _G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI


@dataclass(frozen=True, slots=True)
class Field:
    """A row: attribute of `Request`, meaning, spelling per dialect, targets that carry it, and the flag it needs there.

    A dialect without a spelling has no such field as a client.
    """

    name: str
    meaning: str
    spelling: Mapping[Dialect, str]
    carried: frozenset[Dialect]
    flag: str | None = None


FIELDS: tuple[Field, ...] = (
    Field(
        "max_tokens",
        "output limit",
        {
            _R: "max_output_tokens",
            _C: "max_completion_tokens",
            _M: "max_tokens",
            _G: "generationConfig.maxOutputTokens",
        },
        frozenset({_R, _C, _M, _G}),
    ),
    Field(
        "temperature",
        "temperature",
        {_R: "temperature", _C: "temperature", _M: "temperature", _G: "generationConfig.temperature"},
        frozenset({_R, _C, _M, _G}),
        "sampling",
    ),
    Field(
        "top_p",
        "nucleus sampling",
        {_R: "top_p", _C: "top_p", _M: "top_p", _G: "generationConfig.topP"},
        frozenset({_R, _C, _M, _G}),
        "sampling",
    ),
    Field(
        "top_k",
        "top-k sampling",
        {_M: "top_k", _G: "generationConfig.topK"},
        frozenset({_M, _G}),
        "sampling",
    ),
    Field(
        "stop",
        "stop strings",
        {_C: "stop", _M: "stop_sequences", _G: "generationConfig.stopSequences"},
        frozenset({_C, _M, _G}),
        "stop",
    ),
    Field(
        "parallel",
        "parallel calls",
        {_R: "parallel_tool_calls", _C: "parallel_tool_calls", _M: "tool_choice.disable_parallel_tool_use"},
        frozenset({_R, _C, _M}),
    ),
    Field(
        "schema",
        "structured output",
        {
            _R: "text.format",
            _C: "response_format",
            _M: "output_config.format",
            _G: "generationConfig.responseJsonSchema",
        },
        frozenset({_R, _C, _M, _G}),
    ),
    Field(
        "effort",
        "reasoning effort",
        {
            _R: "reasoning.effort",
            _C: "reasoning_effort",
            _M: "output_config.effort",
            _G: "generationConfig.thinkingConfig",
        },
        frozenset({_R, _C, _M, _G}),
        "effort",
    ),
    Field("verbosity", "verbosity", {_R: "text.verbosity", _C: "verbosity"}, frozenset({_R, _C})),
    Field(
        "cache_key",
        "cache key",
        {_R: "prompt_cache_key", _C: "prompt_cache_key"},
        frozenset({_R, _C}),
    ),
    Field(
        "user",
        "end user",
        {_R: "user", _C: "user", _M: "metadata.user_id"},
        frozenset({_R, _C, _M}),
    ),
)

STOP_LIMIT: Mapping[Dialect, int] = {_C: 4, _G: 5}
"""How many stop strings a target takes."""

REFUSED: Mapping[Dialect, tuple[str, ...]] = {
    _R: ("previous_response_id", "conversation", "prompt", "background"),
    _C: ("n", "audio", "modalities", "functions", "function_call"),
    _M: ("mcp_servers", "container"),
    _G: ("generationConfig.candidateCount", "cachedContent", "generationConfig.responseModalities"),
}
"""Top-level fields of a client that no other dialect can honour when they carry a meaning (see the parsers)."""

HANDLED: Mapping[Dialect, frozenset[str]] = {
    _R: frozenset(
        {
            "model", "stream", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls",
            "max_output_tokens", "temperature", "top_p", "text", "reasoning", "include", "store",
            "prompt_cache_key", "safety_identifier", "user", *REFUSED[_R],
        }
    ),
    _C: frozenset(
        {
            "model", "stream", "stream_options", "messages", "tools", "tool_choice", "parallel_tool_calls",
            "max_completion_tokens", "max_tokens", "temperature", "top_p", "stop", "response_format", "store",
            "reasoning_effort", "reasoning", "include_reasoning", "verbosity", "prompt_cache_key",
            "safety_identifier", "user", *REFUSED[_C],
        }
    ),
    _M: frozenset(
        {
            "model", "stream", "system", "messages", "tools", "tool_choice", "max_tokens", "temperature", "top_p",
            "top_k", "stop_sequences", "thinking", "output_config", "metadata", *REFUSED[_M],
        }
    ),
    _G: frozenset(
        {
            "model", "systemInstruction", "system_instruction", "contents", "tools", "toolConfig", "tool_config",
            "generationConfig", "generation_config", "cachedContent",
        }
    ),
}  # fmt: skip
"""Top-level fields that a parser reads; every other one is dropped and named."""


def note_unknown(document: Json, client: Dialect, request: Request) -> None:
    """Name the top-level fields that nothing reads; nulls carry no meaning."""
    handled = HANDLED[client]
    request.dropped.update(key for key, value in document.items() if key not in handled and value is not None)


def prune(request: Request, client: Dialect, target: Dialect, profile: TargetProfile) -> None:
    """Clear and name the fields that this target does not carry."""
    for row in FIELDS:
        value = getattr(request, row.name)
        if value is None or value == []:
            continue
        if _carries(row, value, target, profile):
            if row.name == "stop":
                _limit_stops(request, client, target)
            continue
        setattr(request, row.name, [] if isinstance(value, list) else None)
        if client not in row.spelling or (row.name == "parallel" and value is True):
            continue  # derived here, or the default everywhere: nothing of the client's is lost
        request.dropped.add(row.spelling[client])


def _carries(row: Field, value: object, target: Dialect, profile: TargetProfile) -> bool:
    if target is Dialect.MESSAGES and isinstance(value, Schema) and value.schema is None:
        return False  # this API constrains to a schema or not at all
    return target in row.carried and (row.flag is None or getattr(profile, row.flag))


def _limit_stops(request: Request, client: Dialect, target: Dialect) -> None:
    """Keep the stop strings a target takes: Messages refuses blank ones, the others are bounded in number."""
    kept = [text for text in request.stop if text.strip() or target is not Dialect.MESSAGES]
    kept = kept[: STOP_LIMIT.get(target, len(kept))]
    if len(kept) < len(request.stop):
        request.dropped.add(next(row.spelling[client] for row in FIELDS if row.name == "stop"))
    request.stop = kept
