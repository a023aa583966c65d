"""The xAI policy refusal: a 403 whose whole message is one of four sentences, outside combos only.

Clients take a bare 403 for a transport failure and repeat it; the sentence found here is answered as an incomplete
response instead. Inside a combo the 403 keeps its meaning. Reads text and parsed JSON, builds no answer.
"""

from collections.abc import Mapping

from combos.core.failure_facts import fold_prose

HOSTS = ("api.x.ai", "cli-chat-proxy.grok.com")
"""The xAI API (its regional names end in the first) and the proxy of its CLI."""

SENTENCES = frozenset(
    {
        "i can't help with that request",
        "i cannot help with that request",
        "i'm unable to help with that request",
        "i am unable to help with that request",
    }
)

BLOCKERS = (
    "requires subscription",
    "requires a subscription",
    "subscription required",
    "upgrade for access",
    "upgrade to pro",
    "pro subscription",
    "need a grok subscription",
    "run out of credits",
    "not allowed to use this model",
    "not allowed to use this operation",
)
"""Words that make it a matter of the account, wherever they stand in the body."""

_PREFIX = "provider error 403:"


def policy_refusal(host: str, status: int, text: str, document: object) -> str | None:
    """The refusal sentence as the upstream wrote it, or None when the answer is anything else.

    `host` is the destination without a port, `text` the decoded body, `document` its parsed JSON or None.
    """
    if status != 403 or not is_xai_host(host) or _is_blocked(fold_prose(text)):
        return None
    sentence = _without_prefix(_sentence(text, document))
    return sentence if fold_prose(sentence).rstrip(".!? ") in SENTENCES else None


def is_xai_host(host: str) -> bool:
    """Whether a destination is xAI's."""
    name = host.lower().rstrip(".")
    return name in HOSTS or name.endswith("." + HOSTS[0])


def _is_blocked(prose: str) -> bool:
    return any(words in prose for words in BLOCKERS) or ("upgrade" in prose and "subscription" in prose)


def _sentence(text: str, document: object) -> str:
    if not isinstance(document, Mapping):
        return text
    error = document.get("error")
    inner = (error.get("message"), error.get("error")) if isinstance(error, Mapping) else ()
    places = (error, *inner, document.get("message"))
    return next((place for place in places if isinstance(place, str) and place.strip()), "")


def _without_prefix(sentence: str) -> str:
    trimmed = sentence.strip()
    return trimmed[len(_PREFIX) :].strip() if trimmed.lower().startswith(_PREFIX) else trimmed
