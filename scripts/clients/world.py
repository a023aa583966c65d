"""A mitmproxy addon that stands for the rest of the world: the checks reach no network.

Answers what clients ask of their vendors besides models (account, model list), refuses everything else that is not
for the proxy itself, and writes down every request as a line of JSON. Requests for models pass, to the addon under
test; one that it leaves alone is refused by the time it would be sent on.
"""

import json
from typing import Any

from mitmproxy import ctx
from mitmproxy.addonmanager import Loader
from mitmproxy.http import HTTPFlow, Response
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

ACCOUNT = "00000000-0000-4000-8000-000000000001"
_CHECK = {
    "accounts": [
        {
            "id": ACCOUNT,
            "structure": "personal",
            "plan_type": "pro",
            "workspace_backend_origin": "NO_CONSTRAINT",
            "account_routing_override": "NO_CONSTRAINT",
        }
    ],
    "account_ordering": [ACCOUNT],
    "default_account_id": ACCOUNT,
}
NATIVE = "gpt-5.5"
_NATIVE_ROW = {
    "slug": NATIVE,
    "display_name": "GPT-5.5",
    "description": "the vendor's own",
    "supported_reasoning_levels": [{"effort": "medium", "description": "medium"}],
    "default_reasoning_level": "medium",
    "shell_type": "unified_exec",
    "visibility": "list",
    "supported_in_api": True,
    "priority": 0,
    "support_verbosity": False,
    "truncation_policy": {"mode": "tokens", "limit": 10000},
    "experimental_supported_tools": [],
    "input_modalities": ["text"],
    "context_window": 200000,
    "base_instructions": "You are a coding agent.",
}
_FIXED: dict[str, tuple[Any, dict[str, str]]] = {
    "/backend-api/wham/accounts/check": (_CHECK, {}),
    "/backend-api/codex/models": ({"models": [_NATIVE_ROW]}, {"etag": 'W/"vendor"'}),
}
_MODEL_PATHS = (
    "/responses",
    "/messages",
    "/chat/completions",
    "/count_tokens",
    ":generateContent",
    ":streamGenerateContent",
)


class World:
    """The addon; to be loaded before the one under test. The option `world_log` names its log."""

    def load(self, loader: Loader) -> None:
        """Declare the option."""
        loader.add_option("world_log", str, "", "Where requests are written down.")

    def request(self, flow: HTTPFlow) -> None:
        """Hook: answer in place of everybody else."""
        request = flow.request
        path = request.path.partition("?")[0]
        self._note(method=request.method, host=request.host, path=request.path, headers=dict(request.headers.items()))
        if request.host == "127.0.0.1" or path.endswith(_MODEL_PATHS):
            return
        document, headers = _FIXED.get(path, ({"error": "not part of the checks"}, {}))
        status = 200 if path in _FIXED else 403
        flow.response = Response.make(status, json.dumps(document), {"content-type": "application/json", **headers})

    def server_connect(self, data: ServerConnectionHookData) -> None:
        """Hook: nothing is sent on."""
        self._note(connect=str(data.server.address))
        data.server.error = "the checks reach no network"

    def response(self, flow: HTTPFlow) -> None:
        """Hook: note how it ended."""
        if flow.response is not None:
            self._note(status=flow.response.status_code, path=flow.request.path)

    def _note(self, **fields: Any) -> None:
        with open(ctx.options.world_log, "a") as log:
            log.write(json.dumps(fields) + "\n")


addons = [World()]
