"""Upstream answers that are not given as they came: a policy refusal that clients would take for a broken transport.

Only outside combos, where no other target is left to ask. Which answer is one is decided by `wire.xai_policy`.
"""

import hashlib
from urllib.parse import urlsplit

from combos.core.facts import Dialect, Now
from combos.core.registry import DirectRoute, Target
from combos.engine.request import TurnRequest
from combos.engine.steps import Whole
from combos.wire import xai_policy


def without_policy_refusal(request: TurnRequest, target: Target, whole: Whole, now: Now) -> Whole:
    """`whole`, or for a policy refusal of a direct Responses request the incomplete answer that stands for it."""
    if not isinstance(request.route, DirectRoute) or request.facts.dialect is not Dialect.RESPONSES:
        return whole
    host = urlsplit(target.provider.config.base_url).hostname if target.provider else None
    sentence = xai_policy.find_refusal(host or "", whole.status, whole.headers, whole.body)
    if sentence is None:
        return whole
    digest = hashlib.sha256(b"%d\0%b" % (now.epoch_ms, request.facts.body)).hexdigest()
    answer = xai_policy.PolicyAnswer(sentence, request.facts.model, f"resp_{digest[:48]}", now.epoch_ms // 1000)
    build = xai_policy.streamed_refusal if request.facts.stream else xai_policy.whole_refusal
    return Whole(xai_policy.STATUS, *build(answer))
