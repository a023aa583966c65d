"""Any client to any target: requests, answers, streams and errors between four wire dialects.

A hub and spokes around a small intermediate form (`ir`): each dialect has a request reader (`*_in`) and writer
(`*_out`), an answer reader (`*_stream_in`) and writer (`*_stream_out`). No clock, no randomness, no transport.

One attempt: `target_profile` says what the target accepts, `translate_request` gives its body, the dropped fields and
the `Context` of the answer, or raises `Unsupported`. The answer goes through a `StreamTranslator`,
`translate_response` or `translate_error`. For a target of the client's own dialect `scrub` names what to replace.
"""

from combos.wire.translate.answers import StreamTranslator, translate_response
from combos.wire.translate.compaction import Compaction
from combos.wire.translate.context import Context
from combos.wire.translate.errors import retry_after_s, translate_error
from combos.wire.translate.profile import ADAPTERS, TargetProfile, Thinking, profile_for
from combos.wire.translate.provenance import scrub
from combos.wire.translate.requests import Circumstances, TranslatedRequest, translate_request
from combos.wire.translate.shape import Unsupported
from combos.wire.translate.stage import AnswerError
from combos.wire.translate.targets import target_profile

__all__ = [
    "ADAPTERS",
    "AnswerError",
    "Circumstances",
    "Compaction",
    "Context",
    "StreamTranslator",
    "TargetProfile",
    "Thinking",
    "TranslatedRequest",
    "Unsupported",
    "profile_for",
    "retry_after_s",
    "scrub",
    "target_profile",
    "translate_error",
    "translate_request",
    "translate_response",
]
