"""The vendors' reports as snapshots, and where they are asked."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.config_provider import ProviderConfig
from combos.core.ladder import CHATGPT_BASE_URL
from combos.core.quota import Credits, Snapshot, Window
from combos.wire.quota_reports import SOURCES, source_of
from configs import provider

NOW = 1_790_856_000_000
SECOND = NOW // 1000
ISO = "2026-10-01T12:00:05Z"
AT = NOW + 5_000


def read(name: str, document: dict[str, Any]) -> Snapshot | None:
    (source,) = [source for source in SOURCES if source.name == name]
    return source.read(document, NOW)


@pytest.mark.parametrize(
    ("name", "document", "snapshot"),
    [
        (
            "chatgpt",
            {
                "rate_limit": {
                    "primary_window": {"used_percent": 3, "reset_at": SECOND + 5, "limit_window_seconds": 18_000},
                    "secondary_window": {"used_percent": 4, "reset_at": SECOND + 5, "limit_window_seconds": 604_800},
                    "tertiary_window": None,
                }
            },
            Snapshot(NOW, Window("primary", 3, AT), Window("secondary", 4, AT)),
        ),
        (
            "anthropic",
            {
                "five_hour": {"utilization": 10.0, "resets_at": ISO},
                "seven_day": {"utilization": 20.0, "resets_at": None},
                "seven_day_opus": {"utilization": 30.0, "resets_at": ISO},
                "seven_day_sonnet": None,
            },
            Snapshot(NOW, Window("five-hour", 10, AT), Window("weekly", 20), custom=(Window("opus", 30, AT),)),
        ),
        (
            "openrouter",
            {"data": {"limit": 10, "limit_remaining": 2.5, "usage": 7.5}},
            Snapshot(NOW, credits=Credits(7.5, 10, 2.5, 75)),
        ),
        ("openrouter", {"data": {"limit": None, "limit_remaining": None}}, None),
        (
            "zai",
            {
                "data": {
                    "limits": [
                        {"type": "TOKENS_LIMIT", "unit": 3, "number": 5, "percentage": 12, "nextResetTime": AT},
                        {"type": "CREDIT_LIMIT", "unit": 6, "number": 1, "percentage": 40},
                        {"type": "TIME_LIMIT", "unit": 5, "number": 1, "percentage": 100},
                        "nonsense",
                    ]
                }
            },
            Snapshot(NOW, Window("five_hour", 12, AT), Window("weekly", 40)),
        ),
        (
            "kimi-code",
            {
                "usage": {"limit": "100", "used": "40", "resetTime": ISO},
                "limits": [
                    {
                        "window": {"duration": 300, "timeUnit": "TIME_UNIT_MINUTE"},
                        "detail": {"limit": "50", "remaining": "10", "resetTime": ISO},
                    },
                    {"window": {"duration": 7, "timeUnit": "TIME_UNIT_DAY"}, "detail": {"limit": 10, "used": 1}},
                ],
            },
            Snapshot(NOW, Window("five-hour", 80, AT), Window("weekly", 10), custom=(Window("total", 40, AT),)),
        ),
        (
            "ollama-cloud",
            {"limits": {"session": {"usage": 0.5, "resets_at": ISO}, "weekly": {"usage": 1.5}, "monthly": None}},
            Snapshot(NOW, Window("session", 50, AT), Window("weekly", 100)),
        ),
        (
            "opencode-go",
            {"usage": {"rolling": {"percent": 5, "resetsAt": ISO}, "monthly": {"percent": 6, "resetsAt": AT}}},
            Snapshot(NOW, Window("rolling", 5, AT), monthly=Window("monthly", 6, AT)),
        ),
        (
            "synthetic",
            {
                "subscription": {"limit": 100, "requests": 25, "renewsAt": ISO},
                "weeklyTokenLimit": {"percentUsed": 9},
                "search": {"hourly": {"limit": 1, "requests": 1}},
            },
            Snapshot(NOW, Window("five-hour", 25, AT), Window("weekly", 9)),
        ),
        (
            "deepseek",
            {"balance_infos": [{"currency": "USD", "total_balance": "110.00"}]},
            Snapshot(NOW, credits=Credits(remaining=110, percent=0)),
        ),
        ("moonshot", {"data": {"available_balance": 4.5}}, Snapshot(NOW, credits=Credits(remaining=4.5, percent=0))),
        ("venice", {"balances": {"USD": 0}}, Snapshot(NOW, credits=Credits(remaining=0, percent=0))),
        ("deepseek", {"balance_infos": []}, None),
    ],
)
def test_reports(name: str, document: dict[str, Any], snapshot: Snapshot | None) -> None:
    assert read(name, document) == snapshot


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"baseUrl": "https://openrouter.ai/api/v1"}, "openrouter"),
        ({"baseUrl": "https://openrouter.ai/api/v1/"}, "openrouter"),
        ({"baseUrl": "https://openrouter.ai/api/v2"}, None),
        ({"baseUrl": "https://openrouter.ai.evil.example/api/v1"}, None),
        ({"baseUrl": "http://openrouter.ai/api/v1"}, None),
        ({"baseUrl": CHATGPT_BASE_URL, "adapter": "openai-responses", "authMode": "oauth"}, "chatgpt"),
        ({"baseUrl": CHATGPT_BASE_URL, "adapter": "openai-responses", "authMode": "forward"}, None),
        ({"baseUrl": "https://api.anthropic.com", "adapter": "anthropic", "authMode": "oauth"}, "anthropic"),
        ({"baseUrl": "https://api.anthropic.com", "adapter": "anthropic"}, None),
        ({"baseUrl": "https://api.deepseek.com", "authMode": "local"}, None),
    ],
)
def test_only_the_canonical_address_is_asked(fields: dict[str, Any], name: str | None) -> None:
    found = source_of(ProviderConfig.model_validate(provider(**fields)))
    assert (found.name if found else None) == name


def test_every_report_is_asked_at_its_providers_own_host_over_tls() -> None:
    for source in SOURCES:
        hosts = {base.split("/")[2] for base in source.bases}
        assert hosts == {source.url.split("/")[2]}, source.name
        assert all(url.startswith("https://") for url in (*source.bases, source.url))


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
MEMBERS = ("rate_limit", "data", "limits", "usage", "five_hour", "balance_infos", "balances", "subscription")


@given(st.dictionaries(st.sampled_from(MEMBERS), json_values, max_size=4))
def test_no_answer_breaks_a_reader(document: dict[str, Any]) -> None:
    for source in SOURCES:
        snapshot = source.read(document, NOW)
        for window in snapshot.windows if snapshot else ():
            assert window.percent is None or 0 <= window.percent <= 100
