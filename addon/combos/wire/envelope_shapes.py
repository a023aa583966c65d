"""Error objects: which object of an error document speaks, what it says, and what a relay has wrapped inside it.

Reads every shape that providers use (OpenAI, Anthropic, Google, FastAPI, re-wrapped ones). Refuses to know statuses
and verdicts.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

import orjson

from combos.core.failure_codes import REWRAPPING_CODES, type_code
from combos.core.failure_facts import fold_code
from combos.core.values import dataclass
from combos.wire.json_text import loads

MOST_ENVELOPES = 3
"""How many error objects may be nested in each other's messages before reading stops."""
LONGEST_CODE = 128
"""Longer codes are cut: no known code comes near it."""

REWRAP_PREFIX = re.compile(r"Provider error ([0-9]{1,3}): ")


type Object = Mapping[str, object]
"""A JSON object. What JSON was read from is a dict: asking for any mapping costs ten times as much."""


@dataclass(frozen=True, slots=True)
class ErrorObject:
    """What an error object says. `code` is trimmed and not folded; `carried` holds the codes of all carriers so."""

    message: str = ""
    code: str = ""
    error_type: str = ""
    param: str | None = None
    carried: frozenset[str] = frozenset()

    @property
    def folded_code(self) -> str:
        """The folded code, or the one that a known type stands for."""
        return fold_code(self.code) or type_code(self.error_type)

    @property
    def folded_carried(self) -> frozenset[str]:
        """Folded codes of all carriers."""
        return frozenset([fold_code(code) for code in self.carried])


def parse_json(text: str) -> object:
    """The parsed text; None when it is not JSON."""
    try:
        return loads(text.encode())
    except orjson.JSONDecodeError:
        return None


def read_error(document: object) -> ErrorObject:
    """What an error document says: the innermost object when relays have wrapped it, empty when it is no error."""
    found = _pick(document)
    for _ in range(MOST_ENVELOPES):
        prefix = REWRAP_PREFIX.match(found.message)
        rest = found.message[prefix.end() :] if prefix else found.message
        if not rest.lstrip().startswith(("{", "[{")):
            return replace(found, message=rest) if prefix else found
        found = _merged(found, _pick(parse_json(rest)))
    return replace(found, message="")  # still wrapped: what is quoted so deep is no prose


def _merged(outer: ErrorObject, inner: ErrorObject) -> ErrorObject:
    """Both objects as one: the inner code counts when the outer one only says that somebody else failed."""
    generic = fold_code(outer.code) in REWRAPPING_CODES
    return ErrorObject(
        message=inner.message,
        code=(inner.code or outer.code) if generic else outer.code,
        error_type=inner.error_type or outer.error_type,
        param=inner.param,
        carried=outer.carried | inner.carried,
    )


def _pick(document: object) -> ErrorObject:
    """The first object that speaks: `error`, `response.error`, `response.last_error`, `last_error`, the root."""
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not isinstance(document, dict):
        return ErrorObject()
    nested = _nested(document)
    carried = frozenset([code for carrier in _carriers(document, nested) if (code := _carried_code(carrier))])
    error = document.get("error")
    if isinstance(error, str) and error.strip():
        return replace(_said(document), message=error, carried=carried)
    for place in nested:
        if _speaks(place):
            return _said(place, carried)
    return replace(_root(document), carried=carried)


def _nested(document: Object) -> list[Object]:
    response = document.get("response")
    inner = response if isinstance(response, dict) else {}
    places = (document.get("error"), inner.get("error"), inner.get("last_error"), document.get("last_error"))
    return [place for place in places if isinstance(place, dict)]


def _carriers(document: Object, nested: list[Object]) -> list[Object]:
    """Every object whose code is accepted as evidence of a hard stop."""
    detail = document.get("detail")
    return [document, *nested, detail] if isinstance(detail, dict) else [document, *nested]


def _speaks(place: Object) -> bool:
    return isinstance(place.get("message"), str) or bool(_type_of(place) or _code_of(place))


def _root(document: Object) -> ErrorObject:
    """The root as error object, completed by FastAPI's `detail`."""
    said = _said(document)
    detail = document.get("detail")
    if isinstance(detail, dict):
        inner = _said(detail)
        return ErrorObject(
            message=said.message or inner.message,
            code=said.code or inner.code,
            error_type=said.error_type or inner.error_type,
            param=said.param or inner.param,
        )
    return said if said.message else replace(said, message=_detail_text(detail))


def _detail_text(detail: object) -> str:
    if isinstance(detail, str):
        return detail
    if not isinstance(detail, list):
        return ""
    messages = (entry.get("msg") for entry in detail if isinstance(entry, dict))
    return "; ".join(message for message in messages if isinstance(message, str))


def _said(place: Object, carried: frozenset[str] = frozenset()) -> ErrorObject:
    message, param = place.get("message"), place.get("param")
    return ErrorObject(
        message=message if isinstance(message, str) else "",
        code=_code_of(place),
        error_type=_type_of(place),
        param=param if isinstance(param, str) else None,
        carried=carried,
    )


def _code_of(place: Object) -> str:
    """The trimmed code. An integer from 100 to 599 is an HTTP status, no code; Google names a bad key in `details`."""
    code = place.get("code")
    if isinstance(code, str) and code.strip():
        return code.strip()[:LONGEST_CODE]
    if isinstance(code, int) and not isinstance(code, bool) and not 100 <= code <= 599:
        return str(code)
    details = place.get("details")
    if not isinstance(details, list):
        return ""
    reasons = [entry.get("reason") for entry in details if isinstance(entry, dict)]
    return "invalid_api_key" if "API_KEY_INVALID" in reasons else ""


def _type_of(place: Object) -> str:
    """The folded type, or Google's status. `error` and event names say what the object is, not what went wrong."""
    for key in ("type", "status"):
        value = place.get(key)
        if isinstance(value, str) and value.strip():
            folded = fold_code(value)[:LONGEST_CODE]
            if folded != "error" and not folded.startswith("response."):
                return folded
    return ""


def _carried_code(carrier: Object) -> str:
    return _code_of(carrier) or type_code(_type_of(carrier))
