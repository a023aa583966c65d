"""The table of what the management API serves: method, path, handler, and the shapes for its description."""

from collections.abc import Callable

from combos.admin import shapes, usage_shapes
from combos.admin.openapi import Route
from combos.admin.parts import Parts
from combos.admin.routes_combos import ComboRoutes
from combos.admin.routes_decisions import DecisionRoutes
from combos.admin.routes_providers import ProviderRoutes
from combos.admin.routes_service import ServiceRoutes
from combos.admin.routes_usage import UsageRoutes


def table(parts: Parts, port: Callable[[], int]) -> tuple[Route, ...]:
    """Every route but the pages and the description itself. `port` is the one that was bound."""
    providers, service = ProviderRoutes(parts), ServiceRoutes(parts, port)
    return (
        *_service(service),
        *_combos(ComboRoutes(parts)),
        *_decisions(DecisionRoutes(parts)),
        *_providers(providers),
        *_models(providers),
        *_configuration(service),
        *_usage(UsageRoutes(parts)),
        Route("GET", "/api/events", service.events, "Server-sent events", query=("after",)),
    )


def _service(service: ServiceRoutes) -> tuple[Route, ...]:
    """Whether it runs: without a token."""
    s = shapes
    return (
        Route("GET", "/healthz", service.health, "Who answers here", s.Health, public=True),
        Route("GET", "/readyz", service.ready, "Whether requests are served", s.Readiness, public=True),
    )


def _combos(combos: ComboRoutes) -> tuple[Route, ...]:
    """Definitions and live state."""
    s = shapes
    return (
        Route("GET", "/api/combos", combos.list_all, "The combos", s.CombosAnswer),
        Route(
            "PUT",
            "/api/combos",
            combos.put,
            "Create, replace or rename a combo",
            s.ComboSaved,
            s.ComboPutBody,
            refusals=(400, 409, 413),
        ),
        Route(
            "DELETE",
            "/api/combos",
            combos.delete,
            "Remove a combo",
            s.Removed,
            query=("!id",),
            refusals=(400, 404, 409),
        ),
        Route("GET", "/api/combos/state", combos.state, "Live state", s.StateAnswer, query=("id",), refusals=(404,)),
        Route(
            "POST",
            "/api/combos/cooldowns/clear",
            combos.clear_cooldowns,
            "End cooldowns",
            s.Cleared,
            query=("id", "target"),
            refusals=(404,),
        ),
        Route(
            "POST",
            "/api/combos/dry-run",
            combos.dry_run,
            "What the next request would do",
            s.DryRunAnswer,
            s.DryRunBody,
            refusals=(400, 404, 409, 413),
        ),
    )


def _decisions(decisions: DecisionRoutes) -> tuple[Route, ...]:
    """Trying and preparing decisions."""
    s = shapes
    return (
        Route(
            "POST",
            "/api/combos/decision-test",
            decisions.test,
            "Make one decision; may cost a call",
            s.DecisionTest,
            s.DecisionTestBody,
            refusals=(400, 413),
        ),
        Route(
            "GET",
            "/api/combos/decision-discovery",
            decisions.discovery,
            "Decision services",
            s.DecisionDiscovery,
            query=("q",),
        ),
        Route(
            "GET",
            "/api/combos/jev-template",
            decisions.template,
            "The combo jev-auto as it is proposed",
            s.ComboTemplate,
            query=("provider",),
            refusals=(400, 404),
        ),
    )


def _providers(providers: ProviderRoutes) -> tuple[Route, ...]:
    """Where models are."""
    s = shapes
    return (
        Route("GET", "/api/providers", providers.list_all, "The providers", s.ProviderRow, many=True),
        Route("GET", "/api/providers/presets", providers.presets, "The known vendors", s.PresetsAnswer),
        Route(
            "POST",
            "/api/providers",
            providers.add,
            "Add a provider",
            s.ProviderSaved,
            s.ProviderAddBody,
            refusals=(400, 409, 413),
        ),
        Route(
            "PATCH",
            "/api/providers",
            providers.patch,
            "Change a provider",
            s.ProviderSaved,
            s.ProviderPatchBody,
            query=("!name",),
            refusals=(400, 404, 409, 413),
        ),
        Route(
            "DELETE",
            "/api/providers",
            providers.delete,
            "Remove a provider",
            s.Removed,
            query=("!name",),
            refusals=(400, 404, 409),
        ),
        Route(
            "POST",
            "/api/providers/test",
            providers.test,
            "Test the connection",
            s.ProviderTest,
            query=("!name",),
            refusals=(400, 404),
        ),
    )


def _models(providers: ProviderRoutes) -> tuple[Route, ...]:
    """What clients are shown."""
    s = shapes
    return (
        Route("GET", "/api/models", providers.models, "The model list", s.ModelRow, many=True),
        Route(
            "PUT",
            "/api/disabled-models",
            providers.put_disabled,
            "Replace the list of hidden models",
            s.DisabledModels,
            s.DisabledModelsBody,
            refusals=(400, 409, 413),
        ),
        Route(
            "PUT",
            "/api/model-visibility",
            providers.put_visibility,
            "Hide or show one model",
            s.DisabledModels,
            s.ModelVisibilityBody,
            refusals=(400, 409, 413),
        ),
    )


def _configuration(service: ServiceRoutes) -> tuple[Route, ...]:
    """The file as a whole: to be read only."""
    s = shapes
    return (
        Route("GET", "/api/config", service.config, "The configuration without secrets", s.ConfigAnswer),
        Route("PUT", "/api/config", service.put_config, "Refused always", refusals=(405,)),
    )


def _usage(usage: UsageRoutes) -> tuple[Route, ...]:
    """What the ledger, the quota book and the metrics are asked for."""
    u = usage_shapes
    window = ("range", "since", "until")
    filters = ("surface", "provider", "model", "combo", "jev", "comboId")
    return (
        Route("GET", "/api/usage", usage.usage, "Usage", u.UsageAnswer, query=(*window, *filters), refusals=(400, 500)),
        Route(
            "GET",
            "/api/combos/stats",
            usage.stats,
            "Usage of a combo",
            u.UsageAnswer,
            query=("id", *window),
            refusals=(400, 404, 500),
        ),
        Route(
            "GET",
            "/api/logs",
            usage.logs,
            "Request records",
            u.LogsAnswer,
            query=("limit", "before", "combo"),
            refusals=(400, 500),
        ),
        Route("GET", "/api/provider-quotas", usage.quotas, "Quota reports", u.QuotasAnswer, query=("refresh",)),
        Route("GET", "/api/budgets", usage.budgets, "Budgets and what is spent", u.BudgetsAnswer),
        Route("GET", "/metrics", usage.metrics, "Prometheus metrics"),
    )
