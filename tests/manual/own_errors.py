"""The errors that the proxy makes itself, each with when it comes and what helps. A test holds the list complete."""

from typing import NamedTuple

from combos.core import errors
from combos.core.errors import ProxyError
from combos.core.facts import TransportFault
from combos.core.limits import INBOUND_HEAD_MAX
from combos.core.transport import transport_message
from combos.mitm.access import REFUSAL


class OwnError(NamedTuple):
    """One error, as it is made with examples for what is filled in."""

    error: ProxyError
    when: str
    remedy: str


OWN_ERRORS = (
    OwnError(
        errors.unknown_combo("<id>"),
        "`combo/<id>` names no combo.",
        "`ocx combo list` shows the ids. Is the file that you edited the one in force (`ocx config path`)?",
    ),
    OwnError(
        errors.unknown_model("<model>"),
        "On the proxy's own address: no combo, alias, provider or listed model has this name.",
        "Ask for `combo/<id>`, an alias or `provider/model`, or set `defaultProvider`.",
    ),
    OwnError(
        errors.combo_unavailable("<id>", 42),
        "No target of the combo is eligible and nothing was sent; `Retry-After` is the end of the soonest cooldown.",
        "`ocx explain <id>` says of each target why it is out.",
    ),
    OwnError(
        errors.target_unavailable("<target>", "<reason>"),
        "`provider/model` was asked for and cannot be called.",
        "The reason is one of [these](selection.md#why-a-target-is-out).",
    ),
    OwnError(
        errors.unsupported_by_target("<target>", "<param>", "<why>"),
        "A part of the request cannot be said in the target's dialect, and no other target is left.",
        "Leave the part out, or add a target of the client's own dialect ([translation](translation.md)).",
    ),
    OwnError(
        errors.send_budget_exhausted(),
        "The request's limit of sends is used up before the first target was asked.",
        "It does not come from the vendor; repeat the request.",
    ),
    OwnError(errors.client_cancelled(), "The client has gone. It is recorded, hardly ever read.", "None needed."),
    OwnError(
        errors.image_refused("<id>"),
        'A request with an image for a combo with `imageInput: "disabled"`.',
        'Send no image, or set `imageInput: "auto"`.',
    ),
    OwnError(
        errors.encrypted_task(),
        "A sub-agent's task is encrypted for the ChatGPT backend, and no such target is available.",
        "Add the ChatGPT backend with the caller's login (preset `chatgpt-codex`) to the combo.",
    ),
    OwnError(
        errors.recursive_decision("<id>"),
        "A decision was to be made by a combo that decides itself. No client sees it.",
        "Name a model or another combo as `decisionModel`.",
    ),
    OwnError(
        errors.previous_response_not_found("<response>"),
        "`previous_response_id` names a response that no target of this proxy is known to keep.",
        "Send the whole conversation; targets do not share what they store.",
    ),
    OwnError(
        errors.forbidden(REFUSAL),
        "The client is not on this machine, or is a page of another site.",
        "[Who may use it](security.md#who-may-use-what): `apiKeys`, `proxyauth`, `corsAllowOrigins`.",
    ),
    OwnError(
        errors.loop_detected(),
        "A request came back to the proxy that had sent it.",
        "A provider's address, or a proxy on the way, leads here. Correct `baseUrl` or `proxy`.",
    ),
    OwnError(
        errors.head_too_large(INBOUND_HEAD_MAX),
        "The header fields are more than a target would take.",
        "Look at what the client, or a proxy before this one, adds to its requests.",
    ),
    OwnError(
        errors.body_too_large(67108864),
        "The body, as sent or decompressed, is over the limit.",
        "Raise `maxInboundBodyBytes`, or send less.",
    ),
    OwnError(
        errors.bad_request("Request body is not valid JSON"),
        "The request cannot be read; the message says what is wrong with it.",
        "Correct the client. On other hosts than the proxy's own such a request is passed on untouched.",
    ),
    OwnError(
        errors.internal_failure(),
        "A defect of the proxy. The log has the place.",
        "Please report it ([how](security.md#reporting)).",
    ),
    OwnError(
        errors.transport_failure(TransportFault.IDLE_TIMEOUT, transport_message(TransportFault.IDLE_TIMEOUT)),
        "The last target's answer stalled. 504, with the name of the [fault](#transport-faults).",
        "Raise `idleTimeoutMs`, or look at the vendor.",
    ),
    OwnError(
        errors.transport_failure(TransportFault.REFUSED, transport_message(TransportFault.REFUSED)),
        "The last target could not be reached, or its answer broke. 502, with the name of the fault.",
        "`ocx provider test <name>` tries it alone.",
    ),
    OwnError(
        ProxyError(404, "invalid_request_error", "not_found", "Nothing is served at GET /v1/other"),
        "On the proxy's own address: no such path.",
        "[What is served](troubleshooting.md#404-not_found).",
    ),
    OwnError(
        ProxyError(417, "invalid_request_error", "expectation_failed", "Only 100-continue can be expected"),
        "On the management listener: an `Expect` header with another word.",
        "Send the request without it.",
    ),
    OwnError(
        ProxyError(
            426, "invalid_request_error", "upgrade_required", "Model requests are served over HTTP, not over WebSocket"
        ),
        "A WebSocket upgrade on a Responses path while combos are configured.",
        "None needed: Codex goes on over HTTP at once. Elsewhere, turn WebSockets off.",
    ),
)
"""In the order in which `core.errors` makes them; then those that other places make."""
