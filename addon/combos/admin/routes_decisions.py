"""Decision services over HTTP: try a method, see what is there, the combo that is proposed for a start."""

from aiohttp import web

from combos.admin.answers import document_of, reply
from combos.admin.jev_template import template_row
from combos.admin.parts import Parts
from combos.admin.refusal import Kind, RefusalError, invalid
from combos.decision.discovery import discover
from combos.decision.probe import TrialRefused
from combos.upstream.decision import probe_decision


class DecisionRoutes:
    """Handlers; see `table`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def test(self, request: web.Request) -> web.Response:
        """Make one decision with the method in the body. May cost a call."""
        body = await document_of(request)
        if self._parts.decider is None:
            raise RefusalError(Kind.UNAVAILABLE, "decisions_unavailable", "nothing here makes decisions")
        try:
            return reply(await probe_decision(self._parts.decider, self._parts.registry, body))
        except TrialRefused as refused:
            raise _refusal(refused) from None

    async def discovery(self, request: web.Request) -> web.Response:
        """The configured decision services, and models whose name suggests one."""
        return reply(discover(self._parts.registry, request.query.get("q", "")))

    async def template(self, request: web.Request) -> web.Response:
        """The combo `jev-auto`, filled in for this configuration, to be edited and saved like any other."""
        return reply(template_row(self._parts.registry, request.query.get("provider") or None))


def _refusal(refused: TrialRefused) -> RefusalError:
    refusal = invalid(str(refused), "decision_test_refused")
    if refused.issue is not None:
        refusal.extra["issue"] = refused.issue
    return refusal
