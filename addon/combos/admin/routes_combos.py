"""Combos over HTTP: list, save, remove, live state, dry run, end of cooldowns."""

from typing import Any

from aiohttp import web

from combos.admin.answers import body_of, document_of, query_of, reply
from combos.admin.combo_edits import KEPT, ComboPut, put_combo, remove_combo
from combos.admin.combo_view import combo_rows, public_model
from combos.admin.parts import Parts
from combos.admin.refusal import invalid, not_found
from combos.admin.shapes import ComboPutBody, DryRunBody
from combos.admin.state_view import dry_run, state_row
from combos.core.config_problems import problem
from combos.core.config_types import near_miss
from combos.core.registry import Combo, Registry, build_registry
from combos.engine.explain import explain

# Model lists are made when they are asked for: there is nothing to refresh.
_CATALOG = {"status": "skipped", "reason": "served-live", "retryable": False}


class ComboRoutes:
    """Handlers; see the table in `app`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def list_all(self, _request: web.Request) -> web.Response:
        """The combos in force, sorted by id."""
        return reply({"combos": combo_rows(self._parts.registry.config)})

    async def put(self, request: web.Request) -> web.Response:
        """Create, replace or rename one."""
        put, is_dry_run = _put_of(await document_of(request))
        run = self._parts.preview if is_dry_run else self._parts.edit
        stored = await run(lambda document: put_combo(document, put))
        if not is_dry_run:
            self._forget(put.id, put.rename_from)
        model = public_model(put.id, stored.config.combos[put.id])
        saved = {"success": True, "id": put.id, "model": model, "combo": stored.result, "catalogRefresh": _CATALOG}
        return reply(saved)

    async def delete(self, request: web.Request) -> web.Response:
        """Remove one."""
        combo = query_of(request, "id")
        await self._parts.edit(lambda document: remove_combo(document, combo))
        self._forget(combo)
        return reply({"success": True, "id": combo, "catalogRefresh": _CATALOG})

    async def state(self, request: web.Request) -> web.Response:
        """Every target of every combo, or of one: eligible or why not, cooling until when, last error."""
        parts, now = self._parts, self._parts.now()
        wanted = request.query.get("id")
        combos = [self._combo(wanted)] if wanted else [combo for _, combo in sorted(parts.registry.combos.items())]
        rows = [
            state_row(
                explain(combo, parts.registry, parts.state, now, unusable=parts.unusable), combo, parts.activity, now
            )
            for combo in combos
        ]
        return reply({"generatedAt": now.epoch_ms, "generation": parts.registry.generation, "combos": rows})

    async def clear_cooldowns(self, request: web.Request) -> web.Response:
        """End cooldowns now: all, those of a combo, those of a target, those of a target in a combo."""
        combo, target = request.query.get("id"), request.query.get("target")
        if combo:
            combo = self._combo(combo).id
        if target:
            self._check_target(target)
        cleared = self._parts.state.clear_cooldowns(combo or None, target or None)
        self._parts.activity.cleared(cleared, self._parts.now())
        return reply({"success": True, "cleared": cleared})

    async def dry_run(self, request: web.Request) -> web.Response:
        """What the next request would do, for a combo as it is or as it would be."""
        body = await body_of(request, DryRunBody)
        if body.combo is not None:
            combo, registry = await self._as_it_would_be(body, body.combo)
        else:
            combo, registry = self._combo(body.id or body.model or _missing()), self._parts.registry
        parts = self._parts
        row = dry_run(combo, registry, parts.state, parts.now(), unusable=parts.unusable, activity=parts.activity)
        return reply(row)

    async def _as_it_would_be(self, body: DryRunBody, definition: dict[str, Any]) -> tuple[Combo, Registry]:
        put = ComboPut(body.id or "dry-run", definition)
        stored = await self._parts.preview(lambda document: put_combo(document, put))
        registry = build_registry(stored.config, self._parts.registry.generation)
        return registry.combos[put.id], registry

    def _combo(self, name: str) -> Combo:
        """By id, `combo/<id>` or alias. Raises `RefusalError`."""
        registry = self._parts.registry
        combo = registry.combos.get(name.removeprefix("combo/")) or registry.aliases.get(name)
        if combo is None:
            raise not_found(f"unknown combo: {name}{near_miss(name, list(registry.combos))}")
        return combo

    def _check_target(self, target: str) -> None:
        """Raises `RefusalError` for one that no combo has."""
        known = self._parts.registry.target_keys
        if target not in known:
            raise not_found(f"unknown target: {target}{near_miss(target, list(known))}")

    def _forget(self, *combos: str | None) -> None:
        """A redefined combo starts anew: no cooldowns, no rotation, no memory of failures."""
        for combo in combos:
            if combo is not None:
                self._parts.state.forget_combo(combo)
                self._parts.activity.forget(combo)


def _missing() -> str:
    raise invalid("give the id or the model of a combo", "id_missing", at="id")


def _put_of(body: dict[str, Any]) -> tuple[ComboPut, bool]:
    """The body of a PUT, faults named one by one. Whether `combo` is an object is judged after the rename."""
    combo_id, rename_from, is_dry_run = body.get("id"), body.get("renameFrom"), body.get("dryRun", False)
    if not isinstance(combo_id, str) or not combo_id:
        raise invalid("id is required and must be a string", "id_missing", at="id")
    if rename_from is not None and not isinstance(rename_from, str):
        raise invalid("renameFrom must be a string", "rename_invalid", at="renameFrom")
    if not isinstance(is_dry_run, bool):
        raise invalid("dryRun must be true or false", "invalid_request", at="dryRun")
    known = [str(field.alias) for field in ComboPutBody.model_fields.values()]
    extra = tuple(problem((key,), f"is not expected here{near_miss(key, known)}") for key in body if key not in known)
    if extra:
        raise invalid(str(extra[0]), "invalid_request", extra)
    return ComboPut(combo_id, body.get("combo"), rename_from, clear=_cleared(body.get("clear"))), is_dry_run


def _cleared(names: object) -> frozenset[str]:
    """The fields that go back to their default although they are left out. Raises `RefusalError`."""
    if names is None:
        return frozenset()
    if not isinstance(names, list) or not all(name in KEPT for name in names):
        raise invalid(
            f"clear must be a list of fields that are kept otherwise: {', '.join(KEPT)}", "invalid_request", at="clear"
        )
    return frozenset(names)
