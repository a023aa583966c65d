"""Header fields that tell a client how its request was served: id, target, number of attempts. Off by default."""

from urllib.parse import quote

from combos.core.facts import Headers
from combos.core.names import target_key
from combos.engine.record import TurnRecord

REQUEST_ID = b"x-combos-request-id"
TARGET = b"x-combos-target"
ATTEMPTS = b"x-combos-attempts"
_NAMES = frozenset({REQUEST_ID, TARGET, ATTEMPTS})
_PLAIN = "/:@!$&'()*+,;=-._~ []{}|^`<>#?"  # what a model id may hold and a header field too


def labelled(headers: Headers, record: TurnRecord, attempt: int | None) -> Headers:
    """An answer's header fields with ours; those of the same name that a target sent do not count.

    `attempt` is the one whose answer it is, None for an answer made here, which names no target. Characters that no
    header field may hold are percent-encoded.
    """
    kept = tuple(pair for pair in headers if pair[0].lower() not in _NAMES)
    made = [(ATTEMPTS, str(len(record.attempts)).encode())]
    if attempt is not None:
        served = record.attempts[attempt]
        made.insert(0, (TARGET, quote(target_key(served.provider, served.model), safe=_PLAIN).encode()))
    if record.id:
        made.insert(0, (REQUEST_ID, quote(record.id, safe=_PLAIN).encode()))
    return (*kept, *made)
