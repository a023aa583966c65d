"""An error answer or a failed stream as failure facts: bounds, content codings, prefixes, shapes.

Decides which text may count as prose and which object speaks; what that means is for the failure rules. Reads headers
only for delays and content codings, never for the kind of body.
"""

import re
from collections.abc import Mapping

import orjson

from combos.core import account_refusal
from combos.core.facts import Headers
from combos.core.failure_codes import CodeClass, code_class
from combos.core.failure_facts import AccountRefusal, FailureFacts
from combos.core.request_local import local_row
from combos.core.values import dataclass
from combos.wire.bodies import BodyError, decode
from combos.wire.envelope_shapes import REWRAP_PREFIX, ErrorObject, parse_json, read_error
from combos.wire.signals import failure_signals, joined
from combos.wire.stream_status import explicit_status, stated_status, stream_error
from combos.wire.terminal import FailureTerminal

BODY_LIMIT = 65_536
"""Bytes of an error body that are read, before and after its content coding is undone."""

_MARKUP = re.compile(r"<|.{0,1024}?<(?:!doctype|html)", re.IGNORECASE | re.DOTALL)
_SSE_FIELDS = ("data:", "event:", "id:", "retry:", ":")


@dataclass(frozen=True, slots=True)
class _Body:
    """An error body after decoding. `document` is None unless `text` (peeled) is JSON."""

    raw: str
    text: str
    document: object
    framed: bool
    garbled: bool


def failure_facts(status: int, headers: Headers, body: bytes | None) -> FailureFacts:
    """Facts of an error answer.

    `body` is as it arrived, None when it was unreadable, too large or timed out: then, and when it does not decode
    within 64 KiB, the status alone speaks.
    """
    signals = failure_signals(headers)
    data = _plain(headers, body)
    if data is None:
        return FailureFacts(status, text=f"Provider error {status}", signals=signals)
    read = _read(status, data)
    error = read_error(read.document) if read.document is not None else ErrorObject(message=_bare_prose(read))
    row = _local_row(status, read.document, len(read.raw), framed=read.framed)
    return FailureFacts(
        status=status,
        code=error.folded_code,
        codes=error.folded_carried,
        error_type=error.error_type,
        param=error.param,
        message=error.message,
        text=read.raw,
        request_local=row,
        account_refusal=_account(read) if status == 400 else None,
        signals=signals,
        non_replayable=_is_non_replayable(error),
        garbled=read.garbled and status >= 500,
    )


def stream_failure_facts(terminal: FailureTerminal, headers: Headers) -> FailureFacts:
    """Facts of a stream, or of a whole 2xx answer, that failed: the status that its failure would have had.

    `headers` are those of the answer: delays in them count.
    """
    document = {"error": stream_error(terminal)}
    error = read_error(document)
    carried = error.carried | read_error(terminal.event).carried
    text = orjson.dumps(document).decode()
    refusal, status = _account_in_stream(terminal), explicit_status(terminal)
    if status is None:
        status = 400 if refusal is not None else stated_status(error)
    return FailureFacts(
        status=status,
        code=error.folded_code,
        codes=ErrorObject(carried=carried).folded_carried,
        error_type=error.error_type,
        param=error.param,
        message=error.message,
        text=text[:BODY_LIMIT],
        request_local=_local_row(status, document, len(text), framed=False),
        account_refusal=refusal if status == 400 else None,
        signals=failure_signals(headers),
        non_replayable=_is_non_replayable(ErrorObject(carried=carried)),
        from_stream=True,
    )


def _plain(headers: Headers, body: bytes | None) -> bytes | None:
    if body is None or len(body) > BODY_LIMIT:
        return None
    try:
        return decode(joined(headers, "content-encoding"), body, BODY_LIMIT)
    except BodyError:
        return None  # the status still speaks


def _read(status: int, data: bytes) -> _Body:
    raw, garbled = _text(data)
    text = raw.removeprefix("\ufeff").strip()
    prefix = REWRAP_PREFIX.match(text)
    if prefix and int(prefix[1]) == status:
        text = text[prefix.end() :].lstrip()
    framed = text.startswith("data:") and not ("\n" in text or "\r" in text)
    if framed:
        text = text.removeprefix("data:").strip()
    document = parse_json(text) if text.startswith(("{", "[")) else None
    return _Body(raw, text, document, framed, garbled)


def _text(data: bytes) -> tuple[str, bool]:
    """The body as text, and whether it was not valid UTF-8."""
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), True


def _bare_prose(body: _Body) -> str:
    """A bare-text body; broken JSON, markup and event frames are no prose."""
    broken = body.text.startswith(("{", "[")) or body.text.startswith(_SSE_FIELDS)
    return "" if broken or _MARKUP.match(body.text) else body.text


def _local_row(status: int, document: object, characters: int, *, framed: bool) -> str | None:
    if status != 400 or document is None:
        return None
    return local_row(document, characters=characters, framed=framed, parse=parse_json)


def _account(body: _Body) -> AccountRefusal | None:
    if body.document is not None:
        return account_refusal.of_document(body.document)
    return account_refusal.of_text(body.text)


def _account_in_stream(terminal: FailureTerminal) -> AccountRefusal | None:
    if terminal.kind == "failed" and isinstance(terminal.event.get("response"), Mapping):
        return account_refusal.of_failed_event(terminal.event)
    return account_refusal.of_error_event(terminal.event)


def _is_non_replayable(error: ErrorObject) -> bool:
    """Exact spelling only: a code that merely folds to one of these is somebody else's."""
    return any(code_class(code) is CodeClass.NON_REPLAYABLE for code in error.carried)
