"""Quota reports as the API shows them, and the badges that providers and combos get from evidence fit for routing."""

from typing import Any

from combos.core.facts import Now
from combos.core.quota import Badge, BadgeState, Credits, Snapshot, Window, combined
from combos.core.registry import Registry
from combos.engine.pools import PoolBook
from combos.engine.quota import QuotaBook, Report

type Json = dict[str, Any]


def quota_answer(book: QuotaBook, pools: PoolBook, registry: Registry, now: Now) -> Json:
    """Every report, the members of pools that rest, and the state of every combo."""
    return {
        "generatedAt": now.epoch_ms,
        "reports": [_report(report, book, registry, now) for report in book.reports()],
        "resting": pools.running(now),
        "combos": [
            {"id": combo.id, "state": combined(book.badges(combo, now)).value}
            for _, combo in sorted(registry.combos.items())
        ],
    }


def badge_json(badge: Badge) -> Json:
    """A badge; unknown states no times."""
    if badge.state is BadgeState.UNKNOWN:
        return {"state": badge.state.value}
    return {"state": badge.state.value, "updatedAt": badge.updated_at, "validUntil": badge.valid_until}


def quota_json(snapshot: Snapshot) -> Json:
    """A snapshot: percents used and resets (epoch ms), what is unknown left out."""
    made: Json = {}
    for name, window in (
        ("fiveHour", snapshot.five_hour),
        ("weekly", snapshot.weekly),
        ("monthly", snapshot.monthly),
    ):
        if window is not None:
            made |= {f"{name}Percent": window.percent, f"{name}ResetAt": window.reset_at}
    made = {name: value for name, value in made.items() if value is not None}
    if snapshot.custom:
        made["customWindows"] = [_window(window) for window in snapshot.custom]
    if snapshot.credits is not None:
        made["creditsUsd"] = _credits(snapshot.credits)
    return {**made, "updatedAt": snapshot.updated_at}


def _report(report: Report, book: QuotaBook, registry: Registry, now: Now) -> Json:
    made = {
        "provider": report.provider,
        "label": report.label,
        "source": report.source,
        "quota": quota_json(report.snapshot),
        "updatedAt": report.snapshot.updated_at,
        "routingQuota": badge_json(book.badge(registry.providers.get(report.provider), now)),
    }
    return made if report.member is None else {**made, "account": report.member}


def _window(window: Window) -> Json:
    made: Json = {"label": window.label, "percent": window.percent}
    return made if window.reset_at is None else {**made, "resetAt": window.reset_at}


def _credits(credits: Credits) -> Json:
    made = {
        "used": credits.used,
        "limit": credits.limit,
        "remaining": credits.remaining,
        "percent": credits.percent,
        "unlimited": credits.unlimited or None,
        "expiresAt": credits.expires_at,
    }
    return {name: value for name, value in made.items() if value is not None}
