"""Which combo a compaction request goes to when its bare model name says nothing about combos.

Puts the request's marks and the recall store together; both have rules of their own. Anything else routes as usual.
"""

from combos.core.recall import LaneKey, RecallStore, recall
from combos.core.registry import ComboRoute, Registry
from combos.wire.request import compaction_trigger, peek_model, request_facts


def recalled_route(
    store: RecallStore, registry: Registry, key: LaneKey | None, path: str, body: bytes, now_ms: int
) -> ComboRoute | None:
    """The combo that last completed on this lane, if the request is a compaction for the model it answered with.

    To be asked before any routing of bare names, and only when `registry.resolve` gave nothing: explicit names win.
    `body` has no content coding, `now_ms` is monotonic. Bodies are parsed only for lanes that are remembered. Raises
    `ProxyError` for a body that is no request for a model.
    """
    if key is None or store.peek(key) is None:
        return None
    model = peek_model(body).model
    if model is None or not compaction_trigger(request_facts(path, body)):
        return None
    return recall(store, registry, key, model, now_ms)
