"""Who a request comes from, as far as conversations are kept apart: a digest of the credential it carries."""

from combos.core.facts import Headers
from combos.core.recall import caller_digest
from combos.wire.headers import get

# Where clients put their key, in the order in which they are looked at.
_CREDENTIAL_FIELDS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


def caller_of(headers: Headers) -> str:
    """The digest of the first credential; callers without one share a digest. The credential itself goes nowhere."""
    credential = next((value for name in _CREDENTIAL_FIELDS if (value := get(headers, name))), "")
    return caller_digest(credential.encode("latin-1"))
