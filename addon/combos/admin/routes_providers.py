"""Providers and models over HTTP: list, add, change, remove, test; which models are hidden."""

from collections.abc import Callable
from typing import Any

from aiohttp import web

from combos.admin.answers import body_of, document_of, query_of, reply
from combos.admin.destination_check import destination_problems
from combos.admin.models_view import model_rows
from combos.admin.parts import Parts
from combos.admin.probe import probe
from combos.admin.provider_edits import (
    add_provider,
    patch_provider,
    remove_provider,
    set_disabled_models,
    unknown_provider,
)
from combos.admin.provider_view import provider_row, provider_rows
from combos.admin.refusal import not_valid
from combos.admin.shapes import DisabledModelsBody, ModelVisibilityBody, ProviderAddBody
from combos.admin.store import Document, Edit, Stored
from combos.core.config_provider import Adapter
from combos.core.presets import PRESETS
from combos.upstream.decision import probe_provider
from combos.upstream.discovery import has_live_list


class ProviderRoutes:
    """Handlers; see the table in `app`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def list_all(self, _request: web.Request) -> web.Response:
        """The providers in force, in file order."""
        live = {name: self._live(name) for name in self._parts.registry.providers}
        return reply(provider_rows(self._parts.registry.config, live))

    async def presets(self, _request: web.Request) -> web.Response:
        """The known vendors, each with the provider object it stands for."""
        rows = [{"id": preset.id, "auth": preset.auth, "provider": preset.document(preset.id)} for preset in PRESETS]
        return reply({"presets": rows})

    async def add(self, request: web.Request) -> web.Response:
        """Add one."""
        body = await body_of(request, ProviderAddBody)

        def change(document: Document) -> Edit[dict[str, Any]]:
            return add_provider(document, body.name, body.provider, set_default=body.set_default)

        await self._check_destination(body.name, await self._parts.preview(change))
        return self._saved(body.name, await self._parts.edit(change))

    async def patch(self, request: web.Request) -> web.Response:
        """Change fields of one."""
        name, changes = query_of(request, "name"), await document_of(request)

        def change(document: Document) -> Edit[dict[str, Any]]:
            return patch_provider(document, name, changes)

        if changes.keys() & {"baseUrl", "allowPrivateNetwork"}:
            await self._check_destination(name, await self._parts.preview(change))
        return self._saved(name, await self._parts.edit(change))

    async def delete(self, request: web.Request) -> web.Response:
        """Remove one that nothing needs."""
        name = query_of(request, "name")
        await self._parts.edit(lambda document: remove_provider(document, name))
        return reply({"success": True, "id": name})

    async def test(self, request: web.Request) -> web.Response:
        """Read the model list of one now."""
        name = query_of(request, "name")
        provider = self._parts.registry.providers.get(name)
        if provider is None:
            raise unknown_provider({"providers": self._parts.registry.providers}, name)
        decider = self._parts.decider
        if provider.config.adapter is Adapter.JEV_DECISION and not provider.config.disabled and decider is not None:
            return reply(await probe_provider(decider, self._parts.registry, name))
        result = await probe(provider, self._parts.registry, self._parts.sender, self._parts.secrets)
        return reply(result.row())

    async def models(self, _request: web.Request) -> web.Response:
        """Every model of the list, hidden ones marked."""
        return reply(model_rows(self._parts.registry, self._parts.discovered()))

    async def put_disabled(self, request: web.Request) -> web.Response:
        """Replace the list of hidden models."""
        body = await body_of(request, DisabledModelsBody)
        return await self._set_disabled(lambda _before: body.disabled_models)

    async def put_visibility(self, request: web.Request) -> web.Response:
        """Hide one model, or show it again."""
        body = await body_of(request, ModelVisibilityBody)

        def after(before: list[str]) -> list[str]:
            others = [model for model in before if model != body.model]
            return others if body.visible else [*others, body.model]

        return await self._set_disabled(after)

    async def _set_disabled(self, after: Callable[[list[str]], list[str]]) -> web.Response:
        stored = await self._parts.edit(
            lambda document: set_disabled_models(document, after(document.get("disabledModels", [])))
        )
        return reply({"success": True, "disabledModels": stored.result})

    async def _check_destination(self, name: str, candidate: Stored[Any]) -> None:
        problems = await destination_problems(name, candidate.config.providers[name], self._parts.lookup)
        if problems:
            raise not_valid(problems)

    def _saved(self, name: str, stored: Stored[Any]) -> web.Response:
        config = stored.config
        row = provider_row(name, config.providers[name], is_default=config.default_provider == name)
        return reply({"success": True, "name": name, "provider": row | self._live(name)})

    def _live(self, name: str) -> dict[str, Any]:
        """What only a running proxy knows of a provider."""
        provider = self._parts.registry.providers.get(name)
        if provider is None:
            return {}
        problem = self._parts.discovery_problems().get(name)
        known = self._parts.discovered().get(name, ())
        if not has_live_list(provider):
            discovery: dict[str, Any] = {"status": "static"}
        elif problem:
            discovery = {"status": "failed", "error": problem, "models": len(known)}
        else:
            discovery = {"status": "known" if known else "pending", "models": len(known)}
        return {"unusable": self._parts.unusable(provider), "discovery": discovery}
