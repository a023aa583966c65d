"""A trial decision from outside a running proxy, with a client session of its own. No model is asked this way."""

from collections.abc import Mapping
from typing import Any

from combos.admin.refusal import invalid
from combos.core.config import Config
from combos.core.registry import build_registry
from combos.decision.probe import TrialRefused
from combos.decision.service import Secrets
from combos.upstream.decision import Decider, probe_decision
from combos.upstream.session import Upstream


async def decide_once(config: Config, body: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Try the method in `body`; the result ready for JSON. Raises `RefusalError`."""
    upstream = Upstream()
    try:
        return await probe_decision(Decider(upstream, lambda: Secrets(environ)), build_registry(config, 1), body)
    except TrialRefused as refused:
        raise invalid(str(refused), "decision_test_refused") from None
    finally:
        await upstream.close()
