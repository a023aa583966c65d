"""The line that Claude Code puts into its system prompt for its own vendor's billing.

It holds a checksum of the body as the client built it. The vendor gets it as it came; any other host of the same
dialect has no use for it, and it would only tell which client asks. Decides when it goes; nothing else of a body.
"""

import json
from urllib.parse import urlsplit

from combos.core.effort import Changes
from combos.core.facts import Dialect
from combos.core.registry import Provider
from combos.wire.request import RequestFacts

PREFIX = "x-anthropic-billing-header"
_VENDOR = "api.anthropic.com"


def without_billing_header(facts: RequestFacts, provider: Provider) -> Changes:
    """The change that takes the line out of a Messages request for this provider; empty when it stays or is absent."""
    if facts.dialect is not Dialect.MESSAGES or PREFIX.encode() not in facts.body:
        return {}
    if urlsplit(provider.config.base_url).hostname == _VENDOR or not isinstance(facts.document.get("system"), list):
        return {}
    blocks = json.loads(facts.body)["system"]  # the parsed document does not keep integers beyond 64 bits
    kept = [block for block in blocks if not _is_billing_header(block)]
    return {} if len(kept) == len(blocks) else {("system",): kept or None}


def _is_billing_header(block: object) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(PREFIX)
