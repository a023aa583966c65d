"""The words after the status in the first line of an HTTP/1 answer. Nobody decides by them; people read them."""

from http import HTTPStatus
from types import MappingProxyType

# HTTP's own, and Anthropic's.
_REASONS = MappingProxyType({**{int(status): status.phrase.encode() for status in HTTPStatus}, 529: b"Overloaded"})


def reason_of(status: int) -> bytes:
    """The words, none for a status that nobody has named."""
    return _REASONS.get(status, b"")
