"""Model lists for clients: the whole list on the proxy's own address, combos merged into a vendor's list elsewhere.

Decides where a list comes from. What it holds is the catalog's business, how it looks the wire's.
"""

import logging
from collections.abc import Callable

from mitmproxy.http import HTTPFlow, Response

from combos.core.catalog import Catalog, build_catalog, listing_hosts
from combos.core.facts import Headers, Surface
from combos.core.registry import Provider, Registry, is_canonical_chatgpt
from combos.core.values import dataclass
from combos.upstream.discovery import Discovery, VendorList
from combos.wire.bodies import BodyError, decode
from combos.wire.catalog_merge import merge_into
from combos.wire.catalog_shape import ListRequest, Shape, list_request, render
from combos.wire.request import surface_of, without_logins

logger = logging.getLogger(__name__)

# Larger answers than this are no model list; they pass unread.
_LIST_BYTES = 16 * 1024 * 1024
_NATIVE_PROVIDER = "openai"

type Secrets = Callable[[Provider], Headers]


@dataclass(frozen=True, slots=True)
class _Known:
    """A catalog and what it was built from, so that it is built again only when that changes."""

    generation: int
    rows: object
    catalog: Catalog


def asks_for_list(flow: HTTPFlow) -> bool:
    """`GET …/models`, or `HEAD` to see whether it is there."""
    if flow.request.method not in {"GET", "HEAD"}:
        return False
    surface = surface_of(flow.request.path)
    return surface is not None and surface[1] is Surface.MODELS


def _wanted(flow: HTTPFlow) -> ListRequest:
    return list_request(flow.request.path.partition("?")[2], flow.request.headers.fields)


class ModelLists:
    """Serves model lists from the registry in force and from what discovery knows at that moment."""

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery
        self._known: _Known | None = None
        self._reported: set[str] = set()

    def catalog(self, registry: Registry) -> Catalog:
        """The catalog now; lists that are due are fetched in the background."""
        self.discovery.refresh(registry)
        rows = dict(self.discovery.rows)
        known = self._known
        if known is None or known.generation != registry.generation or known.rows != rows:
            known = self._known = _Known(registry.generation, rows, build_catalog(registry, rows))
            self._report(known.catalog)
        return known.catalog

    async def answer(self, flow: HTTPFlow, registry: Registry, secrets: Secrets) -> Response:
        """The list for a client that uses the proxy as its base URL."""
        catalog, wanted = self.catalog(registry), _wanted(flow)
        vendor = await self._vendor_list(flow, registry, wanted, secrets)
        if vendor is None:
            return Response.make(200, render(catalog, wanted), {"content-type": "application/json"})
        headers = {"content-type": "application/json", **({"etag": vendor.etag} if vendor.etag else {})}
        return Response.make(200, merge_into(vendor.body, catalog, wanted), headers)

    async def _vendor_list(
        self, flow: HTTPFlow, registry: Registry, wanted: ListRequest, secrets: Secrets
    ) -> VendorList | None:
        """Codex shows nothing but the list it gets: with a ChatGPT login it would lose its native models."""
        provider = registry.providers.get(_NATIVE_PROVIDER)
        if wanted.shape is not Shape.CODEX or provider is None or not is_canonical_chatgpt(provider):
            return None
        login = secrets(provider)
        if not login:
            return None
        query = without_logins(flow.request.path.partition("?")[2])
        return await self.discovery.vendor_list(provider, query, flow.request.headers.fields, login)

    def merge(self, flow: HTTPFlow, registry: Registry) -> None:
        """Put the combos into a vendor's answer; one that is not understood stays as it is."""
        response = flow.response
        if response is None or not self._is_vendor_list(flow, response, registry):
            return
        raw = response.raw_content or b""
        try:
            body = decode(response.headers.get("content-encoding"), raw, _LIST_BYTES)
        except BodyError as error:
            logger.debug(f"combos: a model list of {flow.request.host} cannot be decoded: {error}")
            return
        merged = merge_into(body, self.catalog(registry), _wanted(flow))
        if merged != body:
            response.headers.pop("content-encoding", None)
            response.raw_content = merged
            if "content-length" in response.headers:
                response.headers["content-length"] = str(len(merged))

    def _is_vendor_list(self, flow: HTTPFlow, response: Response, registry: Registry) -> bool:
        if response.status_code != 200 or response.stream or not asks_for_list(flow):
            return False
        return bool(registry.combos) and flow.request.host in listing_hosts(registry)

    def _report(self, catalog: Catalog) -> None:
        """Say once why a combo is not listed."""
        for omitted in catalog.omitted:
            line = f"{omitted.id} is not listed: {omitted.reason}"
            if line not in self._reported:
                self._reported.add(line)
                logger.warning(f"combos: {line}; it still serves requests")
