"""One client as the providers see it: which credentials there are for a provider on behalf of its request."""

from typing import Protocol

from mitmproxy.http import HTTPFlow
from yarl import URL

from combos.core.config_provider import AuthMode
from combos.core.facts import Headers
from combos.core.registry import Provider, Registry
from combos.upstream import credentials


class CredentialSource(Protocol):
    """What is asked of the service."""

    def unusable(self, provider: Provider, *, may_forward: bool) -> str | None:
        """Why the provider cannot be called, None when it can."""

    def own_credentials(self, provider: Provider) -> Headers:
        """The provider's own secret headers."""

    def forwarded_credentials(self, provider: Provider, caller: Headers) -> Headers:
        """The secret headers, with those of the caller where the provider takes them."""

    def holds_own_key(self, flow: HTTPFlow, registry: Registry) -> bool:
        """Whether the request carries a key that opens something here."""


class Client:
    """The client of one flow. `origin` is the host it addressed, None when that was the proxy itself."""

    __slots__ = ("_flow", "_headers", "_known", "_service", "origin", "registry")

    def __init__(self, service: CredentialSource, flow: HTTPFlow, registry: Registry, origin: str | None) -> None:
        self.registry = registry
        self.origin = origin
        self._service = service
        self._flow = flow
        self._headers: Headers = flow.request.headers.fields
        self._known: bool | None = None

    def unusable(self, provider: Provider) -> str | None:
        """Why the provider cannot be called for this client: `no_credentials`, `self_loop`; None when it can."""
        may_forward = provider.config.auth_mode is AuthMode.FORWARD and self._may_forward(provider)
        return self._service.unusable(provider, may_forward=may_forward)

    def credentials(self, provider: Provider) -> Headers:
        """The secret headers for the provider, of its own or forwarded from the client."""
        if provider.config.auth_mode is AuthMode.FORWARD and self._may_forward(provider):
            return self._service.forwarded_credentials(provider, self._headers)
        return self._service.own_credentials(provider)

    def forwarded(self, provider: Provider) -> Headers:
        """The client's own credentials as far as they may go to this provider; empty when there are none."""
        return self.credentials(provider) if self._may_forward(provider) else ()

    def _may_forward(self, provider: Provider) -> bool:
        """The client's own credentials go to the host it addressed, or anywhere a base-URL client is configured for."""
        if not self._has_credentials:
            return False
        return self.origin is None or self.origin.lower() == URL(provider.config.base_url).host

    @property
    def _has_credentials(self) -> bool:
        """Looked up when a provider takes them at all: whether one of them is a key of ours costs a look at a file."""
        if self._known is None:
            # A key that admits to the proxy is ours: it is forwarded to nobody.
            self._known = credentials.has_caller_credentials(self._headers) and not self._service.holds_own_key(
                self._flow, self.registry
            )
        return self._known
