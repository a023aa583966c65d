"""The management API as a contract: answers, refusals in one shape, effects on file, state and events."""

import asyncio
import contextlib
import errno
import io
import json
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adminstage import AUTH, TOKEN, Stage, stage
from combos.admin.app import AdminServer, PortInUseError
from combos.admin.events import LISTENERS_MAX
from combos.core.facts import Cooldown, Now, Scope, Verdict
from combos.engine.record import AttemptRecord, Outcome, TurnRecord
from combos.engine.state import PickedFrom
from configs import TARGET, document, provider

BETA = {"provider": "beta", "model": "m2"}
CANARY = "sk-canary-3f9d1c77aa"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Stage]:
    made = document(
        combos={"main": {"targets": [TARGET, BETA]}, "other": {"targets": [BETA], "strategy": "round-robin"}}
    )
    async with stage(tmp_path / "config.json", made) as found:
        yield found


def assert_refused(answer: tuple[int, Any], status: int, code: str) -> Any:
    assert answer[0] == status
    assert isinstance(answer[1]["error"], str)
    assert answer[1]["error"]
    assert answer[1]["code"] == code
    assert all(set(row) == {"path", "message"} for row in answer[1]["problems"])
    return answer[1]


def cool(api: Stage, combo: str, target: int, ms: int) -> None:
    found = api.live.registry.combos[combo]
    origin = PickedFrom(found, api.live.registry.generation)
    verdict, cooldown = Verdict("rate_limited", hop=True, scope=Scope.TARGET), Cooldown(ms, "retry-after")
    assert api.state.cool(origin, found.targets[target], verdict, cooldown, 429, api.now[0])


# Combos


async def test_the_list_is_sorted_and_complete(api: Stage) -> None:
    status, body = await api.call("GET", "/api/combos")
    assert status == 200
    assert [row["id"] for row in body["combos"]] == ["main", "other"]
    assert body["combos"][0] == {
        "id": "main",
        "model": "combo/main",
        "strategy": "failover",
        "stickyLimit": 1,
        "defaultEffort": None,
        "alias": None,
        "nativeAlias": False,
        "displayName": None,
        "targets": [{**TARGET, "weight": 1}, {**BETA, "weight": 1}],
    }


async def test_a_put_creates_and_is_in_force_at_once(api: Stage) -> None:
    sent = {"id": "pair", "combo": {"targets": [TARGET], "cooldownMs": 60000, "alias": "team/pair"}}
    status, body = await api.call("PUT", "/api/combos", sent)
    assert status == 200
    stored = {
        "strategy": "failover",
        "stickyLimit": 1,
        "defaultEffort": None,
        "targets": [{**TARGET, "weight": 1}],
        "cooldownMs": 60000,
        "alias": "team/pair",
    }
    assert body == {
        "success": True,
        "id": "pair",
        "model": "team/pair",
        "combo": stored,
        "catalogRefresh": {"status": "skipped", "reason": "served-live", "retryable": False},
    }
    assert api.document["combos"]["pair"] == stored
    assert "team/pair" in api.live.registry.aliases


async def test_a_dry_put_changes_nothing(api: Stage) -> None:
    before = api.path.read_bytes()
    status, body = await api.call("PUT", "/api/combos", {"id": "x", "combo": {"targets": [TARGET]}, "dryRun": True})
    assert (status, body["combo"]["strategy"]) == (200, "failover")
    assert api.path.read_bytes() == before


async def test_a_file_that_is_gone_is_not_begun_anew(api: Stage) -> None:
    kept = api.path.read_bytes()
    api.path.unlink()
    refusal = assert_refused(
        await api.call("PUT", "/api/combos", {"id": "x", "combo": {"targets": [TARGET]}}), 409, "config_invalid"
    )
    assert "put it back" in refusal["error"]
    assert_refused(await api.call("DELETE", "/api/providers?name=beta"), 409, "config_invalid")
    assert not api.path.exists()
    assert set(api.live.registry.combos) == {"main", "other"}
    api.path.write_bytes(kept)
    assert (await api.call("DELETE", "/api/combos?id=other"))[0] == 200


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"{", "invalid_json", "not JSON"),
        (b"\xff", "invalid_json", "not JSON"),
        (b"[" * 100_000, "invalid_json", "not JSON"),
        (b"[]", "not_an_object", "must be a JSON object"),
        (b"{}", "id_missing", "id is required"),
        (b'{"id":1,"combo":{}}', "id_missing", "id is required"),
        (b'{"id":"x"}', "combo_missing", "combo must be an object"),
        (b'{"id":"x","combo":[]}', "combo_missing", "combo must be an object"),
        (b'{"id":"x","renameFrom":""}', "rename_invalid", "must not be empty"),
        (b'{"id":"x","renameFrom":"x"}', "rename_invalid", "must differ"),
        (b'{"id":"x","renameFrom":"mian"}', "rename_unknown", 'did you mean "main"'),
        (b'{"id":"other","renameFrom":"main"}', "rename_taken", "exists already"),
        (b'{"id":"x","combo":{},"renamefrom":"main"}', "invalid_request", 'did you mean "renameFrom"'),
        (b'{"id":"x","id":"main","combo":{}}', "invalid_request", "id: is written more than once"),
        (b'{"id":"x","combo":{"strategy":"jev","strategy":"random"}}', "invalid_request", "combo.strategy: is written"),
        (b'{"id":"x","combo":{"targets":[]}}', "invalid_config", "at least one target"),
        (b'{"id":"-x","combo":{"targets":[{"provider":"alpha","model":"m"}]}}', "invalid_config", "id must have"),
    ],
)
async def test_a_put_that_is_refused(api: Stage, body: bytes, code: str, text: str) -> None:
    before = api.path.read_bytes()
    async with api.client.put("/api/combos", data=body, headers=AUTH) as answer:
        refusal = assert_refused((answer.status, await answer.json()), 400, code)
    assert text in refusal["error"]
    assert api.path.read_bytes() == before
    if code not in ("invalid_json", "not_an_object"):
        first = refusal["problems"][0]
        assert refusal["error"].replace(":", "").endswith(first["message"].replace(":", "")), "the first is the error"
        assert first["path"].split(".")[0] in ("id", "combo", "renameFrom", "renamefrom", "combos", 'combos["-x"]')


@pytest.mark.parametrize(
    ("method", "path", "body", "at"),
    [
        ("DELETE", "/api/combos", None, "id"),
        ("POST", "/api/combos/dry-run", {}, "id"),
        ("PUT", "/api/combos", {"id": "x", "combo": {}, "dryRun": 1}, "dryRun"),
        ("PUT", "/api/combos", {"id": "x", "combo": {}, "clear": ["nope"]}, "clear"),
        ("POST", "/api/providers", {"name": "x", "provider": 1}, "provider"),
        ("PUT", "/api/disabled-models", {}, "disabledModels"),
        ("GET", "/api/logs?limit=x", None, "limit"),
        ("GET", "/api/usage?since=x", None, "since"),
    ],
)
async def test_the_field_or_parameter_at_fault_is_named(
    api: Stage, method: str, path: str, body: object, at: str
) -> None:
    status, refusal = await api.call(method, path, body)
    assert status == 400
    assert [row["path"] for row in refusal["problems"]] == [at]
    assert refusal["problems"][0]["message"] in refusal["error"]


async def test_every_problem_is_named_and_the_first_is_the_error(api: Stage) -> None:
    sent = {"id": "x", "combo": {"targets": [{**TARGET, "weight": 0}], "stickyLimit": 200, "alias": "combo/y"}}
    refusal = assert_refused(await api.call("PUT", "/api/combos", sent), 400, "invalid_config")
    paths = [row["path"] for row in refusal["problems"]]
    assert set(paths) == {"combos.x.targets[0].weight", "combos.x.stickyLimit"}
    assert refusal["error"].startswith(paths[0])


async def test_an_alias_in_an_account_namespace_is_a_conflict(tmp_path: Path) -> None:
    made = document(codexAccountNamespaces={"work": "acc"})
    async with stage(tmp_path / "config.json", made) as api:
        sent = {"id": "x", "combo": {"targets": [TARGET], "alias": "work/x"}}
        assert_refused(await api.call("PUT", "/api/combos", sent), 409, "conflict")


async def test_redefining_starts_selection_anew(api: Stage) -> None:
    cool(api, "main", 0, 60_000)
    cool(api, "other", 0, 60_000)
    await api.call("PUT", "/api/combos", {"id": "main", "combo": {"targets": [TARGET, BETA]}})
    now = api.now[0].mono_ms
    assert [key.combo for key, _ in api.state.cooldowns.running(now)] == ["other"]
    await api.call("PUT", "/api/combos", {"id": "new", "renameFrom": "other", "combo": {"targets": [BETA]}})
    assert not list(api.state.cooldowns.running(now))


async def test_delete(api: Stage) -> None:
    assert_refused(await api.call("DELETE", "/api/combos"), 400, "id_missing")
    refusal = assert_refused(await api.call("DELETE", "/api/combos?id=mian"), 404, "not_found")
    assert refusal["error"] == 'unknown combo: mian; did you mean "main"?'
    status, body = await api.call("DELETE", "/api/combos?id=main")
    assert (status, body["success"], body["id"]) == (200, True, "main")
    assert list(api.document["combos"]) == ["other"]
    await api.call("DELETE", "/api/combos?id=other")
    assert "combos" not in api.document


async def test_fc_51_a_bad_file_keeps_the_last_good_configuration(api: Stage) -> None:
    good = api.live.registry
    broken = json.dumps(document(combos={"main": {"targets": [TARGET, TARGET]}, "new": {"targets": [TARGET]}}))
    api.path.write_text(broken)
    api.live.reload()
    assert api.live.registry is good, "nothing is half applied"
    _, config = await api.call("GET", "/api/config")
    assert [row["path"] for row in config["problems"]] == ["combos.main.targets[1]"]
    assert config["writable"] is False
    refusal = assert_refused(await api.call("DELETE", "/api/combos?id=other"), 409, "config_invalid")
    assert str(api.path) in refusal["error"]
    assert refusal["problems"][0]["path"] == "combos.main.targets[1]"
    assert api.path.read_text() == broken
    status, ready = await api.call("GET", "/readyz", headers={})
    assert (status, ready["ready"], ready["configValid"], ready["configGone"]) == (200, True, False, False)
    api.path.unlink()
    api.live.reload()
    status, ready = await api.call("GET", "/readyz", headers={})
    assert (status, ready["ready"], ready["configValid"], ready["configGone"]) == (200, True, False, True)


async def test_fc_51_a_deleted_combo_leaves_nothing_behind(api: Stage) -> None:
    cool(api, "main", 0, 60_000)
    before = api.live.registry.combos["main"]
    origin = PickedFrom(before, api.live.registry.generation)
    api.state.succeeded(origin, before.targets[1], None, api.now[0])
    await api.call("PUT", "/api/combos", {"id": "renamed", "renameFrom": "main", "combo": {"targets": [TARGET]}})
    assert "main" not in api.live.registry.combos
    assert api.state.peek_rotation("main").counts == {}
    assert not list(api.state.cooldowns.running(api.now[0].mono_ms))
    assert before.targets[1].key == "beta/m2", "a request that runs keeps the snapshot it began with"


async def test_fc_52_over_the_api(api: Stage) -> None:
    stored = {
        "targets": [TARGET, {**BETA, "lastResort": True}],
        "cooldownMs": 7000,
        "waitForCooldownMs": 2000,
        "imageInput": "disabled",
        "defaultEffort": "high",
        "defaultEffortMode": "force",
        "reasoningEffortMode": "adaptive",
    }
    await api.call("PUT", "/api/combos", {"id": "main", "combo": stored})
    sent = {"targets": [TARGET, BETA], "strategy": "failover", "defaultEffort": "high", "alias": "a"}
    _, body = await api.call("PUT", "/api/combos", {"id": "main", "combo": sent})
    kept = {key: value for key, value in stored.items() if key != "targets"}
    assert kept.items() <= body["combo"].items()
    assert body["combo"]["targets"][1]["lastResort"] is True
    _, body = await api.call("PUT", "/api/combos", {"id": "main", "combo": {**sent, "waitForCooldownMs": 0}})
    del kept["waitForCooldownMs"]
    assert kept.items() <= body["combo"].items()
    assert "waitForCooldownMs" not in body["combo"]


# Live state


async def test_state_tells_why_a_target_is_out_and_until_when(api: Stage) -> None:
    cool(api, "main", 0, 30_000)
    api.unusable["beta"] = "no_credentials"
    status, body = await api.call("GET", "/api/combos/state?id=main")
    assert status == 200
    (row,) = body["combos"]
    first, second = row["targets"]
    assert (first["eligible"], first["reason"], first["coolingUntil"]) == (False, "cooling", 1_700_000_030_000)
    assert first["cooldown"] == {"leftMs": 30_000, "rule": "rate_limited", "source": "retry-after", "status": 429}
    assert (second["eligible"], second["reason"], second["coolingUntil"]) == (False, "no_credentials", None)
    assert (row["next"], row["firstBackAt"]) == (None, 1_700_000_030_000)


async def test_state_of_all_and_of_an_unknown_combo(api: Stage) -> None:
    _, body = await api.call("GET", "/api/combos/state")
    assert [(row["id"], row["next"]) for row in body["combos"]] == [("main", "alpha/m1"), ("other", "beta/m2")]
    assert [target["share"] for target in body["combos"][1]["targets"]] == [1.0]
    assert_refused(await api.call("GET", "/api/combos/state?id=nope"), 404, "not_found")


def a_turn(now: Now) -> TurnRecord:
    verdict = Verdict("rate_limited", hop=True, scope=Scope.TARGET)
    failed = AttemptRecord(0, "alpha", "m1", now.mono_ms - 900, status=429, ended_ms=now.mono_ms - 800)
    failed.verdict, failed.cooldown, failed.error_code = verdict, Cooldown(5000, "fallback"), "1302"
    served = AttemptRecord(1, "beta", "m2", now.mono_ms - 800, status=200, ended_ms=now.mono_ms)
    record = TurnRecord("combo/main", "main", now.mono_ms - 900, Outcome.SUCCESS, 200, now.mono_ms)
    record.attempts = [failed, served]
    return record


async def test_the_last_error_of_a_target_by_rule(api: Stage) -> None:
    api.activity.turn(a_turn(api.now[0]), api.now[0])
    _, body = await api.call("GET", "/api/combos/state?id=main")
    assert body["combos"][0]["targets"][0]["lastError"] == {
        "at": 1_700_000_000_000 - 800,
        "rule": "rate_limited",
        "status": 429,
        "result": None,
        "code": "1302",
    }
    assert body["combos"][0]["targets"][1]["lastError"] is None


async def test_cooldowns_are_cleared_by_combo_by_target_and_all(api: Stage) -> None:
    for combo in ("main", "other"):
        cool(api, combo, 0, 60_000)
    cool(api, "main", 1, 60_000)
    clear = "/api/combos/cooldowns/clear"
    assert await api.call("POST", f"{clear}?id=other&target=alpha/m1") == (200, {"success": True, "cleared": 0})
    assert await api.call("POST", f"{clear}?target=beta/m2") == (200, {"success": True, "cleared": 2})
    assert await api.call("POST", f"{clear}?id=combo/main") == (200, {"success": True, "cleared": 1})
    assert await api.call("POST", clear) == (200, {"success": True, "cleared": 0})
    assert_refused(await api.call("POST", f"{clear}?id=nope"), 404, "not_found")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("target=nope", "unknown target: nope"),
        ("target=alpha/m0", 'unknown target: alpha/m0; did you mean "alpha/m1"?'),
        ("target=gamma/x", "unknown target: gamma/x"),
        ("id=main&target=nope", "unknown target: nope"),
    ],
)
async def test_cooldowns_of_an_unknown_target_are_not_none(api: Stage, query: str, said: str) -> None:
    status, body = await api.call("POST", f"/api/combos/cooldowns/clear?{query}")
    assert (status, body["code"], body["error"]) == (404, "not_found", said)


async def test_a_dry_run_tells_the_order_of_the_next_request(api: Stage) -> None:
    status, body = await api.call("POST", "/api/combos/dry-run", {"model": "combo/main"})
    assert status == 200
    assert (body["action"], body["next"], body["order"]) == ("dispatch", "alpha/m1", ["alpha/m1", "beta/m2"])
    cool(api, "main", 0, 60_000)
    _, body = await api.call("POST", "/api/combos/dry-run", {"id": "main"})
    assert (body["next"], body["order"]) == ("beta/m2", ["beta/m2"])


async def test_a_dry_run_tells_waiting_from_refusing(api: Stage) -> None:
    cool(api, "main", 0, 60_000)
    cool(api, "main", 1, 4_000)
    _, body = await api.call("POST", "/api/combos/dry-run", {"id": "main"})
    assert (body["action"], body["waitMs"], body["order"]) == ("refuse", None, [])
    assert body["refusal"] == {"status": 503, "code": "combo_unavailable", "retryAfterMs": 4_000}
    patient = {"targets": [TARGET, BETA], "waitForCooldownMs": 5_000}
    _, body = await api.call("POST", "/api/combos/dry-run", {"id": "main", "combo": patient})
    assert (body["action"], body["waitMs"], body["refusal"]) == ("wait", 4_000, None)
    assert "waitForCooldownMs" not in api.document["combos"]["main"]


async def test_a_dry_run_of_a_definition_that_is_not_saved(api: Stage) -> None:
    _, body = await api.call("POST", "/api/combos/dry-run", {"combo": {"targets": [BETA], "strategy": "random"}})
    assert (body["id"], body["next"]) == ("dry-run", "beta/m2")
    assert_refused(await api.call("POST", "/api/combos/dry-run", {"combo": {"targets": []}}), 400, "invalid_config")
    assert_refused(await api.call("POST", "/api/combos/dry-run", {}), 400, "id_missing")
    assert_refused(await api.call("POST", "/api/combos/dry-run", {"id": 1}), 400, "invalid_request")


# Providers and models


async def test_providers_are_listed_without_secrets(tmp_path: Path) -> None:
    row = provider(apiKey=CANARY, headers={"x-team": CANARY}, proxy=f"http://u:{CANARY}@p.example:1", models=["m1"])
    async with stage(tmp_path / "config.json", document(providers={"alpha": row, "beta": provider()})) as api:
        _, body = await api.call("GET", "/api/providers")
        assert CANARY not in json.dumps(body)
        first = body[0]
        assert (first["name"], first["hasApiKey"], first["hasHeaders"], first["hasProxy"]) == (
            "alpha",
            True,
            True,
            True,
        )
        assert (first["models"], first["unusable"], first["discovery"]["status"]) == (["m1"], None, "pending")


async def test_a_provider_is_added_changed_tested_and_removed(api: Stage) -> None:
    sent = {"name": "gamma", "provider": provider(apiKey="${GAMMA_KEY}", authMode="key"), "setDefault": True}
    status, body = await api.call("POST", "/api/providers", sent)
    assert (status, body["provider"]["isDefault"]) == (200, True)
    assert api.document["defaultProvider"] == "gamma"
    assert "authMode" not in api.document["providers"]["gamma"], "defaults are left out"
    status, _ = await api.call("PATCH", "/api/providers?name=gamma", {"headers": {"x-a": "1"}, "models": ["m"]})
    assert status == 200
    await api.call("PATCH", "/api/providers?name=gamma", {"headers": {"x-b": "2"}, "models": None})
    row = api.document["providers"]["gamma"]
    assert row["headers"] == {"x-a": "1", "x-b": "2"}
    assert "models" not in row
    await api.call("PATCH", "/api/providers?name=gamma", {"headers": {"x-a": None, "x-b": None}})
    assert "headers" not in api.document["providers"]["gamma"]
    _, body = await api.call("POST", "/api/providers/test?name=gamma")
    assert (body["ok"], body["error"]) == (False, "connection_refused: connection refused")
    assert_refused(await api.call("DELETE", "/api/providers?name=gamma"), 409, "default_provider")


async def test_a_provider_that_is_needed_is_not_removed(api: Stage) -> None:
    refusal = assert_refused(await api.call("DELETE", "/api/providers?name=beta"), 409, "provider_has_dependent_combos")
    assert refusal["combos"] == ["main", "other"]
    assert_refused(await api.call("DELETE", "/api/providers?name=bete"), 404, "not_found")
    for combo in ("main", "other"):
        await api.call("DELETE", f"/api/combos?id={combo}")
    assert (await api.call("DELETE", "/api/providers?name=beta"))[0] == 200
    assert_refused(await api.call("DELETE", "/api/providers?name=alpha"), 409, "last_provider")


@pytest.mark.parametrize(
    ("name", "row", "status", "code"),
    [
        ("alpha", provider(), 409, "provider_exists"),
        ("main", provider(), 409, "name_taken"),
        ("combo", provider(), 409, "name_taken"),
        ("new", provider(baseUrl="http://127.0.0.1:1/v1"), 400, "invalid_config"),
        ("new", provider(baseUrl="http://169.254.169.254/"), 400, "invalid_config"),
        ("new", provider(baseUrl="https://inside.example/v1"), 400, "invalid_config"),
        ("new", provider(adapter="nope"), 400, "invalid_config"),
        ("new", provider(apikey="x"), 400, "invalid_config"),
        ("-", provider(), 400, "invalid_config"),
    ],
)
async def test_a_provider_that_is_refused(api: Stage, name: str, row: Any, status: int, code: str) -> None:
    api.addresses["inside.example"] = ["10.1.2.3"]
    before = api.path.read_bytes()
    assert_refused(await api.call("POST", "/api/providers", {"name": name, "provider": row}), status, code)
    assert api.path.read_bytes() == before


async def test_a_changed_address_is_looked_up(api: Stage) -> None:
    api.addresses["inside.example"] = ["10.1.2.3"]
    patch = {"baseUrl": "https://inside.example/v1"}
    refusal = assert_refused(await api.call("PATCH", "/api/providers?name=alpha", patch), 400, "invalid_config")
    assert "allowPrivateNetwork" in refusal["error"]
    assert (await api.call("PATCH", "/api/providers?name=alpha", {**patch, "allowPrivateNetwork": True}))[0] == 200
    assert_refused(await api.call("PATCH", "/api/providers?name=alpha", {"adaptr": "x"}), 400, "invalid_config")
    assert_refused(await api.call("PATCH", "/api/providers?name=nope", {}), 404, "not_found")


async def test_what_there_is_not_to_test(api: Stage) -> None:
    for patch, expected in (
        ({"liveModels": False}, {"applicable": False, "reason": "static_catalog", "latencyMs": 0}),
        ({"disabled": True}, {"ok": False, "error": "the provider is disabled", "latencyMs": 0}),
    ):
        await api.call("PATCH", "/api/providers?name=alpha", patch)
        assert await api.call("POST", "/api/providers/test?name=alpha") == (200, expected)
    assert_refused(await api.call("POST", "/api/providers/test?name=nope"), 404, "not_found")


async def test_models_and_what_hides_them(api: Stage) -> None:
    await api.call("PATCH", "/api/providers?name=alpha", {"models": ["m1"]})
    assert (await api.call("PUT", "/api/disabled-models", {"disabledModels": ["combo/main"]}))[1] == {
        "success": True,
        "disabledModels": ["combo/main"],
    }
    await api.call("PUT", "/api/model-visibility", {"model": "alpha/m1", "visible": False})
    assert api.document["disabledModels"] == ["combo/main", "alpha/m1"]
    _, rows = await api.call("GET", "/api/models")
    hidden = {row["namespaced"]: row["disabled"] for row in rows}
    assert hidden == {"combo/main": True, "combo/other": False, "alpha/m1": True}
    await api.call("PUT", "/api/model-visibility", {"model": "combo/main", "visible": True})
    assert api.document["disabledModels"] == ["alpha/m1"]
    assert_refused(await api.call("PUT", "/api/disabled-models", {"disabledModels": "x"}), 400, "invalid_request")
    assert_refused(await api.call("PUT", "/api/disabled-models", []), 400, "not_an_object")


# Decisions


async def test_a_method_is_tried(api: Stage) -> None:
    tried = "/api/combos/decision-test"
    _, body = await api.call("POST", tried, {})
    assert (body["ok"], body["backend"], body["gate"]) == (False, "typesafe", "missing_key")
    refusal = assert_refused(await api.call("POST", tried, {"decisionProvider": "no"}), 400, "decision_test_refused")
    assert "no is not a configured decision service" in refusal["error"]
    row = {"adapter": "jev-decision", "baseUrl": "https://d.example/v1/systemone", "liveModels": False}
    await api.call("POST", "/api/providers", {"name": "tev1", "provider": row})
    refusal = assert_refused(await api.call("POST", tried, {"decisionProvider": "tev1"}), 400, "decision_test_refused")
    assert refusal["issue"] == "model"
    await api.call("PATCH", "/api/providers?name=tev1", {"defaultModel": "m"})
    _, body = await api.call("POST", tried, {"decisionProvider": "tev1", "decisionTimeoutMs": 1000})
    assert (body["ok"], body["backend"], body["gate"]) == (False, "systemone", "network")
    _, body = await api.call("POST", "/api/providers/test?name=tev1")
    assert (body["ok"], body["error"]) == (False, "network")
    _, body = await api.call("GET", "/api/combos/decision-discovery?q=tev")
    assert [row["id"] for row in body["configured"]] == ["tev1"]
    _, body = await api.call("GET", "/api/combos/jev-template?provider=tev1")
    assert (body["id"], body["combo"]["decisionProvider"], body["existing"]) == ("jev-auto", "tev1", None)
    template = "/api/combos/jev-template?provider"
    assert "decisionProvider" not in (await api.call("GET", f"{template}=jev"))[1]["combo"]
    assert 'did you mean "tev1"' in assert_refused(await api.call("GET", f"{template}=tev"), 404, "not_found")["error"]
    assert_refused(await api.call("GET", f"{template}=alpha"), 404, "not_found")
    await api.call("PATCH", "/api/providers?name=tev1", {"disabled": True})
    refusal = assert_refused(await api.call("GET", f"{template}=tev1"), 400, "decision_row_unusable")
    assert "disabled" in refusal["error"]


async def test_without_a_decider_nothing_is_tried(api: Stage) -> None:
    server = AdminServer(replace(api.server.parts, decider=None))
    server.open_token()
    async with (
        TestClient(TestServer(server.app)) as client,
        client.post("/api/combos/decision-test", json={}, headers=AUTH) as answer,
    ):
        assert_refused((answer.status, await answer.json()), 503, "decisions_unavailable")


# The process


async def test_health_needs_no_token(api: Stage) -> None:
    status, body = await api.call("GET", "/healthz", headers={})
    assert status == 200
    assert set(body) == {"status", "service", "version", "uptime", "pid", "port"}


async def test_not_ready_before_a_configuration_is_in_force(tmp_path: Path) -> None:
    async with stage(tmp_path / "config.json", None) as api:
        status, body = await api.call("GET", "/readyz", headers={})
        assert (status, body["ready"]) == (503, False)


async def test_the_configuration_is_shown_without_secrets(tmp_path: Path) -> None:
    row = provider(
        apiKey=CANARY,
        apiKeyPool=[{"id": "a", "key": CANARY}, {"id": "b", "key": "${POOL_KEY}"}],
        headers={"x-team": CANARY},
        proxy=f"http://user:{CANARY}@proxy.example:8080",
        apikey=CANARY,
        nested={"deep": [CANARY, 5]},
    )
    made = document(providers={"alpha": row, "beta": provider(apiKey="keychain:beta")}, apiKeys=[CANARY, "$ADMIT"])
    async with stage(tmp_path / "config.json", made) as api:
        _, body = await api.call("GET", "/api/config")
        assert CANARY not in json.dumps(body)
        shown = body["config"]["providers"]["alpha"]
        assert shown["apiKey"] == "****"
        assert [entry["key"] for entry in shown["apiKeyPool"]] == ["****", "${POOL_KEY}"]
        assert shown["proxy"] == "http://****@proxy.example:8080"
        assert shown["nested"] == {"deep": ["****", 5]}
        assert body["config"]["providers"]["beta"]["apiKey"] == "keychain:beta"
        assert body["config"]["apiKeys"] == ["****", "$ADMIT"]
        assert 'did you mean "apiKey"' in body["warnings"][0]["message"]


async def test_the_configuration_is_never_replaced_as_a_whole(api: Stage) -> None:
    assert_refused(await api.call("PUT", "/api/config", {}), 405, "method_not_allowed")


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/nope"), ("POST", "/api/combos"), ("GET", "/%00")])
async def test_unknown_routes_and_methods(api: Stage, method: str, path: str) -> None:
    assert_refused(await api.call(method, path), 404, "not_found")


async def test_a_body_over_the_limit(api: Stage) -> None:
    async with api.client.put("/api/combos", data=io.BytesIO(b"x" * (2 * 1024 * 1024 + 1)), headers=AUTH) as answer:
        assert_refused((answer.status, await answer.json()), 413, "body_too_large")


async def next_event(stream: Any) -> tuple[str, Any]:
    kind = ""
    while line := (await stream.readline()).decode().rstrip("\n"):
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            assert await stream.readline() == b"\n"
            return kind, json.loads(line.removeprefix("data: "))
    raise AssertionError("no event")


async def test_events_as_they_happen_and_again_after_a_break(api: Stage) -> None:
    async with api.client.get("/api/events", headers=AUTH) as answer:
        assert answer.content_type == "text/event-stream"
        assert await answer.content.readline() == b"retry: 2000\n"
        await answer.content.readline()
        api.activity.turn(a_turn(api.now[0]), api.now[0])
        kinds = [await next_event(answer.content) for _ in range(5)]
        assert [kind for kind, _ in kinds] == ["attempt", "cooldown", "hop", "attempt", "turn"]
        attempt, cooldown, hop, _, turn = (data for _, data in kinds)
        assert (attempt["target"], attempt["rule"], attempt["status"]) == ("alpha/m1", "rate_limited", 429)
        assert (cooldown["ms"], cooldown["until"]) == (5000, 1_700_000_000_000 - 800 + 5000)
        assert (hop["from"], hop["to"]) == ("alpha/m1", "beta/m2")
        assert (turn["outcome"], turn["attempts"], turn["durationMs"]) == ("success", 2, 900)
        await api.call("DELETE", "/api/combos?id=other")
        kind, data = await next_event(answer.content)
        assert (kind, data["change"]) == ("reload", "loaded")
    async with api.client.get("/api/events", headers={**AUTH, "Last-Event-ID": str(turn["id"])}) as answer:
        await answer.content.readline()
        await answer.content.readline()
        assert (await next_event(answer.content))[1]["id"] == turn["id"] + 1


async def test_listeners_that_went_make_room_for_others(api: Stage) -> None:
    server = AdminServer(api.server.parts)
    host, port = await server.start("127.0.0.1", 0)
    request = f"GET /api/events HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()

    async def listen() -> tuple[int, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(request)
        return int((await reader.readline()).split()[1]), writer

    try:
        there = [await listen() for _ in range(LISTENERS_MAX)]
        there.append(await listen())
        assert [status for status, _ in there] == [200] * LISTENERS_MAX + [503]
        for _, writer in there:
            writer.transport.abort()
        for _ in range(200):  # the server has to hear of it
            status, writer = await listen()
            writer.transport.abort()
            if status == 200:
                break
            await asyncio.sleep(0.01)
        assert status == 200
    finally:
        await server.close()


async def test_closing_ends_the_streams(api: Stage) -> None:
    async with api.client.get("/api/events", headers=AUTH) as answer:
        await answer.content.readline()
        await api.server.close()
        assert await asyncio.wait_for(answer.content.read(), 5) == b"\n"


async def test_the_description_covers_every_route(api: Stage) -> None:
    _, found = await api.call("GET", "/api/openapi.json")
    described = {(method.upper(), path) for path, item in found["paths"].items() for method in item}
    assert described == {(route.method, route.path) for route in api.server.routes()}
    text = json.dumps(found)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in found["components"]["schemas"]
    schemas = found["components"]["schemas"]
    assert schemas["ComboPutBody"]["properties"]["combo"] == {"$ref": "#/components/schemas/ComboConfig"}
    assert schemas["ComboConfig"]["properties"]["stickyLimit"]["maximum"] == 100
    identifiers = [item["operationId"] for path in found["paths"].values() for item in path.values()]
    assert len(identifiers) == len(set(identifiers))


async def test_answers_fit_their_description(api: Stage) -> None:
    cool(api, "main", 0, 1000)
    for route in api.server.routes():
        if route.method != "GET" or route.answer is None:
            continue
        _, body = await api.call("GET", route.path)
        for row in body if route.many else [body]:
            route.answer.model_validate(row)


async def test_the_listener_has_an_address_and_tells_the_command_line(api: Stage) -> None:
    server = AdminServer(api.server.parts)
    host, port = await server.start("127.0.0.1", 0)
    runtime = api.path.parent / "runtime-port.json"
    try:
        assert server.address == (host, port)
        assert json.loads(runtime.read_text())["port"] == port
        with pytest.raises(PortInUseError, match=f"127.0.0.1:{port} is in use"):
            await AdminServer(api.server.parts).start("127.0.0.1", port)
    finally:
        await server.close()
    assert not runtime.exists()


def room() -> int:
    """How many connections the system lets wait at most; 0 where it does not say so."""
    told = Path("/proc/sys/net/core/somaxconn")
    return int(told.read_text()) if told.exists() else 0


@pytest.mark.skipif(room() < 200, reason="the system lets fewer connections wait")
async def test_many_clients_at_once_are_let_in_while_the_loop_is_busy(api: Stage) -> None:
    server = AdminServer(api.server.parts)
    address = await server.start("127.0.0.1", 0)
    try:
        with contextlib.ExitStack() as clients:
            for _ in range(200):  # nobody is accepted meanwhile: this holds up the loop
                clients.enter_context(socket.create_connection(address, timeout=5))
    finally:
        await server.close()


@pytest.mark.parametrize("refused", ["rename", "unlink"])
async def test_a_folder_that_is_read_only_neither_keeps_the_listener_from_opening_nor_from_closing(
    api: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refused: str
) -> None:
    runtime, real = api.path.parent / "runtime-port.json", getattr(os, refused)

    def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
        if str(runtime) in (str(path), *map(str, arguments)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, refused, refuse)
    caplog.set_level("INFO")
    server = AdminServer(api.server.parts)
    host, port = await server.start("127.0.0.1", 0)
    await server.close()
    assert f"{runtime} cannot be {'written' if refused == 'rename' else 'removed'}: Read-only" in caplog.text
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, port)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nBad Header\r\n\r\n",
        b"PUT /api/combos HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\nX-Combos-API-Key: "
        + TOKEN.encode()
        + b"\r\n\r\n{",
        b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Combos-API-Key: " + TOKEN.encode() + b"\r\n\r\n",
    ],
)
async def test_broken_requests_and_early_leavers_are_no_news(
    api: Stage, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    server = AdminServer(api.server.parts)
    address = await server.start("127.0.0.1", 0)
    try:
        _, writer = await asyncio.open_connection(*address)
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.transport.abort()
        for _ in range(20):
            api.activity.bus.publish("e", 1, {"x": "y" * 1000})
            await asyncio.sleep(0.002)
    finally:
        await server.close()
    assert not [record for record in caplog.records if record.levelname not in ("DEBUG", "INFO")]


async def test_a_fault_of_our_own_is_logged_and_told_in_the_same_shape(
    api: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    api.unusable = None  # type: ignore[assignment]
    assert_refused(await api.call("GET", "/api/combos/state"), 500, "internal_error")
    assert "the management API failed" in caplog.text
    assert TOKEN not in caplog.text


async def test_a_canary_is_in_no_answer_and_no_log(api: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    row = provider(apiKey=CANARY, headers={"x-a": CANARY}, proxy=f"http://u:{CANARY}@p.example")
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/api/providers", {"name": "gamma", "provider": row}),
        ("POST", "/api/providers", {"name": "gamma", "provider": row}),
        ("POST", "/api/providers/test?name=gamma", None),
        *(
            ("PATCH", "/api/providers?name=gamma", {key: value})
            for key, value in (
                ("adapter", CANARY), ("baseUrl", f"http://x:{CANARY}@h.example"), ("apiKey", f"${CANARY}"),
                ("apiKeyPool", CANARY), ("headers", {"authorization": CANARY}), ("models", CANARY),
                ("disabled", CANARY), ("proxy", f"ftp://{CANARY}"), ("apiKeyTransport", CANARY),
                ("noProxy", {"x": CANARY}),
            )
        ),
        ("PUT", "/api/combos", {"id": "x", "combo": {"targets": [TARGET], "strategy": CANARY, "alias": CANARY + "!"}}),
        ("PUT", "/api/combos", {"id": "x", "combo": {"targets": CANARY}}),
        ("PUT", "/api/disabled-models", {"disabledModels": [[CANARY]]}),
        ("GET", "/api/providers", None),
        ("GET", "/api/config", None),
        ("GET", "/api/models", None),
        ("GET", "/api/combos", None),
    ]  # fmt: skip
    for method, path, body in calls:
        status, answer = await api.call(method, path, body)
        assert status < 500
        assert CANARY not in json.dumps(answer), (method, path, body)
    assert api.document["providers"]["gamma"]["apiKey"] == CANARY
    assert CANARY not in caplog.text


# Nothing that is sent brings the server down


METHODS = st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"])
PATHS = st.sampled_from(
    [
        "/api/combos",
        "/api/combos/state",
        "/api/combos/cooldowns/clear",
        "/api/combos/dry-run",
        "/api/combos/decision-test",
        "/api/combos/decision-discovery",
        "/api/combos/jev-template",
        "/api/providers",
        "/api/providers/test",
        "/api/models",
        "/api/disabled-models",
        "/api/model-visibility",
        "/api/config",
        "/api/openapi.json",
        "/healthz",
        "/readyz",
    ]
)
WORDS = st.sampled_from(
    ["main", "alpha", "combo/main", "", "\ud800", "\x00", "x" * 600, "https://x.example/v1", "openai-chat", "jev", "id"]
)
KEYS = st.sampled_from(
    ["id", "combo", "renameFrom", "targets", "provider", "model", "name", "headers", "apiKey", "disabledModels",
     "alias", "visible", "decisionModel", "baseUrl", "adapter", "models", "port", "strategy"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
QUERIES = st.dictionaries(
    st.sampled_from(["id", "name", "target", "after"]),
    WORDS.map(lambda text: text.encode("utf-8", "replace").decode()),
    max_size=2,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(st.tuples(METHODS, PATHS, QUERIES, VALUES), min_size=1, max_size=6))
def test_no_request_is_answered_with_a_server_error(tmp_path: Path, calls: list[Any]) -> None:
    async def run() -> None:
        async with stage(tmp_path / "config.json", document()) as api:
            for method, path, query, value in calls:
                data = json.dumps(value).encode()
                async with api.client.request(method, path, params=query, data=data, headers=AUTH) as answer:
                    body = await answer.read()
                    assert answer.status < 500, (method, path, query, value, body)
                    if answer.status >= 400 and method != "HEAD":
                        assert {"error", "code", "problems"} <= set(json.loads(body))
            assert TOKEN not in api.path.read_text()

    asyncio.run(run())
