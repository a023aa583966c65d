"""The refusal of one model by a ChatGPT account: the whole sentence in one carrier, or beside a rival carrier.

Looks at the parsed body or at bare text, never inside a message. Refuses to know statuses: only an HTTP 400, or a
stream failure that maps to one, is asked.
"""

import re
from collections.abc import Mapping

from combos.core.failure_codes import GENERIC_CODES
from combos.core.failure_facts import AccountRefusal, fold_code, fold_prose

_SENTENCE = re.compile(
    r"the '([^'\"]{1,256})' model is not supported when using codex with a chatgpt account\.",
)
_LONGEST = 1024
"""Characters that are looked at: the sentence with the longest name, and room for spaces around it."""


def is_refusal(message: object) -> bool:
    """Whether a text is the refusal sentence and nothing else (case and spacing do not matter)."""
    if not isinstance(message, str):
        return False
    words = fold_prose(message)
    return len(words) <= _LONGEST and _SENTENCE.fullmatch(words) is not None


def of_document(document: object) -> AccountRefusal | None:
    """The refusal in a parsed HTTP body: `detail` or `error.message`, at the root or under `response`."""
    if not isinstance(document, Mapping):
        return None
    inner = document.get("response")
    places = (document, inner if isinstance(inner, Mapping) else {})
    if not any(_in_detail(place) or _in_error(place) for place in places):
        return None
    if any("detail" in place for place in places) and any("error" in place for place in places):
        return AccountRefusal.COMPETING
    authority = next(place for place in places if "detail" in place or "error" in place)
    if not (_in_detail(authority) or _in_error(authority)):
        return AccountRefusal.COMPETING
    return AccountRefusal.EXACT if _code_allows(authority) else None


def of_text(text: str) -> AccountRefusal | None:
    """The refusal as a bare-text body."""
    return AccountRefusal.EXACT if is_refusal(text) else None


def of_failed_event(event: Mapping[str, object]) -> AccountRefusal | None:
    """The refusal in `response.failed`: only `response.error.message` speaks; an outer rival key blocks it."""
    found = of_document(event)
    if found is AccountRefusal.EXACT and ("detail" in event or "error" in event):
        return None
    inner = event.get("response")
    if found is AccountRefusal.EXACT and not (isinstance(inner, Mapping) and _in_error(inner)):
        return None
    return found


def of_error_event(event: Mapping[str, object]) -> AccountRefusal | None:
    """The refusal in a bare `error` event: its own `error.message`, else its own `message`."""
    own = {key: event[key] for key in ("error", "detail") if key in event}
    if "error" in own:
        return of_document(own)
    return AccountRefusal.EXACT if is_refusal(event.get("message")) and _has_generic_code(event) else None


def _in_detail(place: Mapping[str, object]) -> bool:
    return is_refusal(place.get("detail"))


def _in_error(place: Mapping[str, object]) -> bool:
    error = place.get("error")
    return isinstance(error, Mapping) and is_refusal(error.get("message"))


def _code_allows(place: Mapping[str, object]) -> bool:
    error = place.get("error")
    return not isinstance(error, Mapping) or _has_generic_code(error)


def _has_generic_code(error: Mapping[str, object]) -> bool:
    code = error.get("code")
    return code is None or (isinstance(code, str) and fold_code(code) in GENERIC_CODES)
