"""The hub for requests: parse in the client's dialect, settle the conversation, write in the target's.

Decides nothing about which target is tried; it says whether this one can be asked at all.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.wire.translate import (
    chat_in,
    chat_out,
    compaction,
    fields,
    gemini_in,
    gemini_out,
    messages_in,
    messages_out,
    provenance,
    responses_in,
    responses_out,
    toolset,
    turns,
)
from combos.wire.translate.compaction import Compaction
from combos.wire.translate.context import Context
from combos.wire.translate.ir import Media, Request, Result, Role
from combos.wire.translate.profile import TargetProfile
from combos.wire.translate.shape import Json, Unsupported, dump

PARSERS: Mapping[Dialect, Callable[[Json], Request]] = {
    Dialect.RESPONSES: responses_in.parse,
    Dialect.CHAT: chat_in.parse,
    Dialect.MESSAGES: messages_in.parse,
    Dialect.GEMINI: gemini_in.parse,
}
RENDERERS: Mapping[Dialect, Callable[[Request, TargetProfile, toolset.Catalog], Json]] = {
    Dialect.RESPONSES: responses_out.render,
    Dialect.CHAT: chat_out.render,
    Dialect.MESSAGES: messages_out.render,
    Dialect.GEMINI: gemini_out.render,
}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a body does not say.

    `seed` is any text unique to the attempt, `created_s` the time in seconds since the epoch. `stream` stands in for
    the body's own flag where the URL carries it (Gemini). `compact` marks `/responses/compact`, `codex` a client whose
    `originator` header begins with `codex`. `native_from` is the provider known to have made the conversation's state.
    """

    seed: str
    created_s: int
    stream: bool | None = None
    compact: bool = False
    codex: bool = False
    native_from: str | None = None


@dataclass(frozen=True, slots=True)
class TranslatedRequest:
    """The body for the target, the client's names of the fields it does not carry, and what the answer will need.

    `stream` says whether the target was asked to stream. The native ChatGPT backend is, also for `/responses/compact`,
    whose client waits for a whole answer: `translate_response` reads both forms.
    """

    body: bytes
    dropped: tuple[str, ...]
    context: Context
    stream: bool


def translate_request(
    original: Mapping[str, Any], client: Dialect, target: Dialect, profile: TargetProfile, given: Circumstances
) -> TranslatedRequest:
    """A client's parsed request as the target wants it. Raises Unsupported when the target cannot be asked.

    `original` is read only: every attempt starts from it.
    """
    document, compacting, recent = _compaction(dict(original), client, profile, given)
    context = Context(
        client,
        target,
        profile.model,
        profile.key,
        given.seed,
        given.created_s,
        codex=given.codex,
        compaction=compacting,
        recent=tuple(recent),
    )
    if client is target:
        return _same_dialect(document, client, profile, given, context)
    request = PARSERS[client](document)
    if given.stream is not None:
        request.stream = given.stream
    _check_media(request, profile)
    fields.prune(request, client, target, profile)
    request.messages = turns.settle(request.messages)
    catalog = toolset.build_catalog(request.tools)
    body = dump(RENDERERS[target](request, profile, catalog))
    context = replace(context, catalog=catalog, include_usage=request.include_usage, echo=request.echo)
    return TranslatedRequest(body, tuple(sorted(request.dropped)), context, request.stream)


def _same_dialect(
    document: Json, dialect: Dialect, profile: TargetProfile, given: Circumstances, context: Context
) -> TranslatedRequest:
    """The body with its own model and without foreign state; the answer passes through unless it is a compaction."""
    changes = provenance.scrub(document, dialect, profile, given.native_from)
    renamed = {} if dialect is Dialect.GEMINI else {"model": profile.model}
    merged = {**document, **renamed, **changes}
    deleted = {key for key, value in changes.items() if value is None}
    body = dump({key: value for key, value in merged.items() if key not in deleted})
    stream = document.get("stream") is True if given.stream is None else given.stream
    return TranslatedRequest(body, (), context, stream)


def _compaction(
    document: Json, client: Dialect, profile: TargetProfile, given: Circumstances
) -> tuple[Json, Compaction | None, list[Json]]:
    """The turn to run in place of a compaction, which answer it owes, and the user messages to keep."""
    if client is not Dialect.RESPONSES or not (given.compact or compaction.asked(document)):
        return document, None, []
    if given.compact:
        # The native backend only streams; every other target may answer in one piece, as the client wants it.
        turn = compaction.native_request(document) if profile.canonical else compaction.summary_request(document)
        turn["stream"] = profile.canonical
        return turn, Compaction.COMPACT, compaction.recent_messages(document)
    if profile.canonical:
        return document, None, []
    return compaction.summary_request(document), Compaction.TRIGGER, []


def _check_media(request: Request, profile: TargetProfile) -> None:
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Media):
                _check_medium(part, message.role, profile)
            elif isinstance(part, Result):
                for entry in part.parts:
                    if isinstance(entry, Media):
                        _check_medium(entry, message.role, profile)


def _check_medium(media: Media, role: Role, profile: TargetProfile) -> None:
    if profile.text_only:
        raise Unsupported(media.where, "is media, where this target takes text only,")
    if role is Role.ASSISTANT:
        raise Unsupported(media.where, "stands in an assistant turn, where other dialects hold text")
