"""Usage and finish reasons in every dialect: totals are never counted twice, and no reason is invented."""

from collections.abc import Callable, Mapping

from combos.core.facts import Dialect
from combos.wire.translate.ir import Reason, Usage
from combos.wire.translate.shape import Json, as_dict, count

_R, _C, _M, _G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI

REASONS_IN: Mapping[Dialect, Mapping[str, Reason]] = {
    _R: {
        "completed": Reason.STOP,
        "max_output_tokens": Reason.LENGTH,
        "steered": Reason.LENGTH,
        "max_messages": Reason.LENGTH,
        "content_filter": Reason.CONTENT_FILTER,
    },
    _C: {
        "stop": Reason.STOP,
        "tool_calls": Reason.TOOL_CALLS,
        "function_call": Reason.TOOL_CALLS,
        "length": Reason.LENGTH,
        "content_filter": Reason.CONTENT_FILTER,
    },
    _M: {
        "end_turn": Reason.STOP,
        "stop_sequence": Reason.STOP,
        "tool_use": Reason.TOOL_CALLS,
        "max_tokens": Reason.LENGTH,
        "model_context_window_exceeded": Reason.LENGTH,
        "pause_turn": Reason.LENGTH,
        "refusal": Reason.CONTENT_FILTER,
    },
    _G: {
        "STOP": Reason.STOP,
        "MAX_TOKENS": Reason.LENGTH,
        "SAFETY": Reason.CONTENT_FILTER,
        "RECITATION": Reason.CONTENT_FILTER,
        "BLOCKLIST": Reason.CONTENT_FILTER,
        "PROHIBITED_CONTENT": Reason.CONTENT_FILTER,
        "SPII": Reason.CONTENT_FILTER,
        "LANGUAGE": Reason.CONTENT_FILTER,
        "MODEL_ARMOR": Reason.CONTENT_FILTER,
        "IMAGE_SAFETY": Reason.CONTENT_FILTER,
        "IMAGE_PROHIBITED_CONTENT": Reason.CONTENT_FILTER,
        "IMAGE_RECITATION": Reason.CONTENT_FILTER,
        "IMAGE_OTHER": Reason.CONTENT_FILTER,
        "NO_IMAGE": Reason.CONTENT_FILTER,
    },
}
"""A target's own word for why it ended; words that are not here count as a plain stop."""

GEMINI_FAULTS = frozenset(
    {
        "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OTHER",
        "MISSING_THOUGHT_SIGNATURE",
    }
)  # fmt: skip
"""Finish reasons of Gemini that mean the answer failed."""

REASONS_OUT: Mapping[Dialect, Mapping[Reason, str]] = {
    _R: {
        Reason.STOP: "completed",
        Reason.TOOL_CALLS: "completed",
        Reason.LENGTH: "max_output_tokens",
        Reason.CONTENT_FILTER: "content_filter",
    },
    _C: {
        Reason.STOP: "stop",
        Reason.TOOL_CALLS: "tool_calls",
        Reason.LENGTH: "length",
        Reason.CONTENT_FILTER: "content_filter",
    },
    _M: {
        Reason.STOP: "end_turn",
        Reason.TOOL_CALLS: "tool_use",
        Reason.LENGTH: "max_tokens",
        Reason.CONTENT_FILTER: "refusal",
    },
    _G: {
        Reason.STOP: "STOP",
        Reason.TOOL_CALLS: "STOP",
        Reason.LENGTH: "MAX_TOKENS",
        Reason.CONTENT_FILTER: "SAFETY",
    },
}


def reason(dialect: Dialect, word: object) -> Reason:
    """What a target's own word means."""
    return REASONS_IN[dialect].get(word if isinstance(word, str) else "", Reason.STOP)


def _openai(usage: Json, inputs: str, outputs: str) -> Usage:
    before, after = as_dict(usage.get(f"{inputs}_tokens_details")), as_dict(usage.get(f"{outputs}_tokens_details"))
    cached = count(before.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens"))
    return Usage(
        count(usage.get(f"{inputs}_tokens")),
        cached,
        count(before.get("cache_write_tokens")),
        count(usage.get(f"{outputs}_tokens")),
        count(after.get("reasoning_tokens")),
    )


def _read_responses(usage: Json) -> Usage:
    return _openai(usage, "input", "output")


def _read_chat(usage: Json) -> Usage:
    return _openai(usage, "prompt", "completion")


def _read_messages(usage: Json) -> Usage:
    cached, written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
    details = as_dict(usage.get("output_tokens_details"))
    total = count(usage.get("input_tokens")) + cached + written
    return Usage(total, cached, written, count(usage.get("output_tokens")), count(details.get("thinking_tokens")))


def _read_gemini(usage: Json) -> Usage:
    thoughts = count(usage.get("thoughtsTokenCount"))
    return Usage(
        count(usage.get("promptTokenCount")) + count(usage.get("toolUsePromptTokenCount")),
        count(usage.get("cachedContentTokenCount")),
        0,
        count(usage.get("candidatesTokenCount")) + thoughts,
        thoughts,
    )


READ: Mapping[Dialect, Callable[[Json], Usage]] = {
    _R: _read_responses,
    _C: _read_chat,
    _M: _read_messages,
    _G: _read_gemini,
}


def _write_responses(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _write_chat(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _write_messages(usage: Usage) -> Json:
    return {
        "input_tokens": max(0, usage.input - usage.cached - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }


def _write_gemini(usage: Usage) -> Json:
    return {
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": max(0, usage.output - usage.reasoning),
        "thoughtsTokenCount": usage.reasoning,
        "totalTokenCount": usage.input + usage.output,
    }


WRITE: Mapping[Dialect, Callable[[Usage], Json]] = {
    _R: _write_responses,
    _C: _write_chat,
    _M: _write_messages,
    _G: _write_gemini,
}
