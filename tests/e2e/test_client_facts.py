"""What real clients need of the proxy, fact by fact: each was found by running Codex CLI, Claude Code or an SDK."""

import json
from pathlib import Path
from typing import Any

import pytest

from combos.wire.zstd import compress
from e2e.vendors import ask_vendor, listing, vendor
from rawclient import Answer, answer_of, ask, request_bytes, talk
from rawserver import LAST_CHUNK, Pairs, Reset, Send, chunk, event_head, event_stream
from stage import Case, Stage, stage
from wires import WIRES, M, R, Wire, error, sse

DOWN = error(503, {"error": {"message": "down"}})
LOGIN: Pairs = ((b"Authorization", b"Bearer login"), (b"chatgpt-account-id", b"account"))
UPGRADE: Pairs = (
    (b"Connection", b"Upgrade"),
    (b"Upgrade", b"websocket"),
    (b"Sec-WebSocket-Version", b"13"),
    (b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ=="),
    (b"openai-beta", b"responses_websockets=2026-02-06"),
)
CODEX_PATH = "/backend-api/codex/responses"
NATIVE_ALIAS = {"alias": "gpt-5.6-sol", "nativeAlias": True, "displayName": "Nova1 - sol"}
VENDOR = {"from": "vendor"}


def case(wire: Wire = R, **fields: Any) -> Case:
    return Case(wire, **(fields if "alpha" in fields else {"alpha": wire.answers("alpha-ok"), **fields}))


def events_of(answer: Answer) -> list[dict[str, Any]]:
    """The JSON of a stream's events."""
    lines = answer.body.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


# -- 1, 2: WebSockets


@pytest.mark.parametrize("path", ["/v1/responses", "/responses", CODEX_PATH])
async def test_fact_01_an_upgrade_is_answered_426(confdir: Path, path: str) -> None:
    one = case()
    async with vendor(listing(VENDOR)) as (server, redirect), stage(confdir, one, addons=[redirect]) as on:
        own = await ask(on.port, "GET", path, headers=UPGRADE)
        assert (own.status, own.json()["error"]["code"]) == (426, "upgrade_required")
        # The connection lives on: Codex goes on over HTTP with it.
        host = [(b"Host", b"127.0.0.1:%d" % on.port)]
        async with talk(on.port, request_bytes("GET", path, [*host, *UPGRADE], b"")) as client:
            assert (await answer_of(client)).status == 426
            client.writer.write(on.request(one))
            assert (await answer_of(client)).status == 200
        there = await ask_vendor(on.port, "GET", "api.openai.com", path, headers=UPGRADE)
        assert there.status == 426
        assert server.requests == []


async def test_fact_01_other_upgrades_and_proxies_without_combos_are_left_alone(confdir: Path) -> None:
    one = case()
    async with vendor(listing(VENDOR)) as (server, redirect), stage(confdir, one, addons=[redirect]) as on:
        for path in ("/v1/realtime", "/v1/responses/resp_1"):
            assert (await ask_vendor(on.port, "GET", "api.openai.com", path, headers=UPGRADE)).json() == VENDOR
        on.service.config.adopt({"combos": {}})
        assert (await ask_vendor(on.port, "GET", "api.openai.com", "/v1/responses", headers=UPGRADE)).json() == VENDOR
        assert len(server.requests) == 3


@pytest.mark.parametrize("model", ["gpt-5.5", "combo/main", None])
async def test_fact_02_an_upgrade_for_any_model_is_refused(confdir: Path, model: str | None) -> None:
    """The socket of a native model would be used for a combo after a switch."""
    told = json.dumps({"request_kind": "prewarm", **({"model": model} if model else {})})
    headers: Pairs = (*UPGRADE, (b"x-codex-turn-metadata", told.encode()))
    async with vendor(listing(VENDOR)) as (_, redirect), stage(confdir, case(), addons=[redirect]) as on:
        assert (await ask_vendor(on.port, "GET", "chatgpt.com", CODEX_PATH, headers=headers)).status == 426


# -- 3: compressed bodies


async def test_fact_03_a_zstd_body_is_read_and_leaves_uncompressed(confdir: Path) -> None:
    one = case()
    async with vendor(listing(VENDOR)) as (server, redirect), stage(confdir, one, addons=[redirect]) as on:
        packed = compress(json.dumps(R.request(one.model)).encode())
        headers = [*LOGIN, (b"Content-Encoding", b"zstd")]
        shown = b"chatgpt.com"
        ours = await ask(on.port, "POST", f"http://chatgpt.com{CODEX_PATH}", headers=headers, body=packed, host=shown)
        assert (ours.status, one.calls) == (200, ["alpha"])
        (request,) = one.requests
        assert request.header("content-encoding") is None
        assert json.loads(request.body)["model"] == "m1"
        # The body of a native model is none of our business.
        native = compress(json.dumps(R.request("gpt-5.5")).encode())
        await ask(on.port, "POST", f"http://chatgpt.com{CODEX_PATH}", headers=headers, body=native, host=shown)
        assert (server.requests[0].body, server.requests[0].header("content-encoding")) == (native, "zstd")


# -- 4, 5: headers of an answer


async def test_fact_04_the_model_header_says_what_was_asked_for(confdir: Path) -> None:
    one = case(combo={"alias": "daily"}, alpha=R.answers("ok", headers=((b"openai-model", b"m1"),)))
    async with stage(confdir, one) as on:
        for model in (one.model, "daily"):
            answer = await on.ask(one, model=model)
            assert answer.header("openai-model") in (None, model)
            assert events_of(answer)[-1]["response"]["model"] == "stub"  # in the body it may differ


async def test_fact_04_the_same_of_a_header_inside_an_event(confdir: Path) -> None:
    told = sse({"type": "response.metadata", "headers": {"openai-model": "m1"}, "response": {"model": "m1"}})
    whole = [*R.start(), told, *R.begin_text(), R.delta("text"), told, *R.finish("text")]
    one = case(alpha=event_stream(*whole))
    async with stage(confdir, one) as on:
        answer = await on.ask(one)
        shown = told.replace(b'"openai-model": "m1"', b'"openai-model": "%s"' % one.model.encode())
        assert answer.body == b"".join(shown if event is told else event for event in whole)


async def test_fact_05_a_turn_state_goes_to_its_issuer_only(confdir: Path) -> None:
    issued: Pairs = ((b"x-codex-turn-state", b"state-of-alpha"),)
    one = case(alpha=[R.answers("ok", headers=issued), R.answers("ok"), DOWN], beta=R.answers("beta-ok"))
    async with stage(confdir, one) as on:
        first = await on.ask(one)
        assert first.header("x-codex-turn-state") == "state-of-alpha"
        await on.ask(one, headers=issued)
        await on.ask(one, headers=issued)
        await on.ask(one, headers=((b"x-codex-turn-state", b"of-nobody-here"),))
        assert one.calls == ["alpha", "alpha", "alpha", "beta", "beta"]
        sent = [request.header("x-codex-turn-state") for request in one.requests]
        assert sent == [None, "state-of-alpha", "state-of-alpha", None, None]


# -- 6, 7, 8: ends


def begun(wire: Wire) -> list[bytes]:
    return [*wire.start(), *wire.begin_text(), wire.delta("text")]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_fact_06_what_broke_after_commitment_is_cooling_before_the_repeat(confdir: Path, wire: Wire) -> None:
    cut = [Send(event_head() + b"".join(map(chunk, begun(wire)))), Reset()]
    one = case(wire, alpha=cut, beta=wire.answers("beta-ok"))
    async with stage(confdir, one) as on:
        first = await on.ask(one)
        assert one.calls == ["alpha"]  # nothing is repeated by us
        assert not first.clean
        again = await on.ask(one)
        assert (again.status, one.calls) == (200, ["alpha", "beta"])


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("wait", [b"7", b"3600", b"Thu, 01 Oct 2026 12:00:30 GMT"])
async def test_fact_07_retry_after_reaches_the_client_as_it_was_sent(confdir: Path, status: int, wait: bytes) -> None:
    one = case(alpha=error(status, {"error": {"message": "later"}}, ((b"Retry-After", wait),)))
    async with stage(confdir, one) as on:
        answer = await on.ask(one)
        assert (answer.status, answer.header("retry-after")) == (status, wait.decode())


async def test_fact_07_the_wait_of_an_unavailable_combo_is_that_of_its_first_target(confdir: Path) -> None:
    one = case(alpha=error(503, {}, ((b"Retry-After", b"90"),)), beta=error(503, {}, ((b"Retry-After", b"40"),)))
    async with stage(confdir, one) as on:
        await on.ask(one)
        on.clock.advance(10_500)
        answer = await on.ask(one)
        assert (answer.status, answer.header("retry-after")) == (503, "30")
        assert answer.json()["error"]["code"] == "combo_unavailable"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("how", ["reset", "clean"])
async def test_fact_08_a_truncated_stream_never_ends_cleanly(confdir: Path, wire: Wire, how: str) -> None:
    """All SDKs take the clean end of a truncated stream for a success."""
    sent = event_head() + b"".join(map(chunk, begun(wire)))
    one = case(wire, alpha=[Send(sent), Reset()] if how == "reset" else [Send(sent + LAST_CHUNK)])
    async with stage(confdir, one) as on:
        answer = await on.ask(one)
        assert answer.body.startswith(b"".join(begun(wire)))
        last = events_of(answer)[-1]
        says_so = last.get("type") in ("error", "response.failed") or "error" in last
        assert says_so
        assert not answer.clean


# -- 9, 10, 11, 12, 13: bodies


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_fact_09_a_request_without_a_stream_key_hops_as_well(confdir: Path, wire: Wire) -> None:
    one = case(wire, alpha=DOWN, beta=wire.answers("beta-ok", stream=False))
    async with stage(confdir, one) as on:
        answer = await on.ask(one, stream=False)
        assert b"stream" not in one.requests[0].body
        assert (answer.status, answer.json(), one.calls) == (200, wire.whole("beta-ok"), ["alpha", "beta"])


@pytest.mark.parametrize("target", WIRES, ids=lambda wire: wire.name)
async def test_fact_10_a_compaction_is_answered_with_one_compaction_item(confdir: Path, target: Wire) -> None:
    """Only the vendor's own backend makes such an item: of other targets a summary is asked for."""
    one = Case(R, providers={"alpha": {"adapter": target.adapter}}, alpha=target.answers("the summary"))
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "compaction_trigger"},
    ]
    async with stage(confdir, one) as on:
        answer = await on.ask(one, input=items)
        events = events_of(answer)
        done = [event["item"]["type"] for event in events if event["type"] == "response.output_item.done"]
        assert done == ["compaction"]
        assert events[-1]["type"] == "response.completed"
        assert [item["type"] for item in events[-1]["response"]["output"]] == ["compaction"]
        assert b"compaction_trigger" not in one.requests[0].body


LITE = {
    "type": "additional_tools",
    "id": "at_1",
    "role": "developer",
    "tools": [{"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}],
}


async def test_fact_11_a_native_alias_takes_the_shape_of_native_models(confdir: Path) -> None:
    one = case(combo=NATIVE_ALIAS)
    lite: Pairs = ((b"x-openai-internal-codex-responses-lite", b"true"),)
    async with stage(confdir, one) as on:
        items = [LITE, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]
        answer = await on.ask(one, model="gpt-5.6-sol", headers=lite, input=items, parallel_tool_calls=False)
        assert answer.status == 200
        (request,) = one.requests
        assert json.loads(request.body)["input"] == items
        assert request.header("x-openai-internal-codex-responses-lite") == "true"


async def test_fact_12_a_private_member_of_input_items_is_left_out(confdir: Path) -> None:
    one = case()
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}], "n": 2**70}
    async with stage(confdir, one) as on:
        await on.ask(one, input=[{**item, "internal_chat_message_metadata_passthrough": {"a": 1}}])
        assert json.loads(one.requests[0].body)["input"] == [item]


BILLING = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197.123; cch=0a1b2;"}


@pytest.mark.parametrize("path", ["/v1/messages?beta=true", "/v1/messages/count_tokens?beta=true"])
async def test_fact_13_the_billing_line_stays_with_its_vendor(confdir: Path, path: str) -> None:
    """Towards `api.anthropic.com` it is kept: see the tests of the rule."""
    one = case(M)
    prompt = {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}}
    async with stage(confdir, one) as on:
        body = json.dumps(M.request(one.model, system=[BILLING, prompt])).encode()
        await ask(on.port, "POST", path, headers=[(b"x-api-key", b"mine")], body=body)
        assert json.loads(one.requests[0].body) == M.request("m1", system=[prompt])


# -- 14: where credentials are


@pytest.mark.parametrize(
    ("credential", "version"),
    [((b"Authorization", b"Bearer mine"), b"2026-10-21"), ((b"x-api-key", b"mine"), b"2023-06-01")],
)
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_fact_14_the_path_tells_the_dialect(
    confdir: Path, wire: Wire, credential: tuple[bytes, bytes], version: bytes
) -> None:
    one = case(wire)
    async with stage(confdir, one) as on:
        answer = await on.ask(one, headers=(credential, (b"anthropic-version", version)))
        assert answer.body == b"".join(wire.ok("alpha-ok"))
        (request,) = one.requests
        assert b"mine" not in request.head
        key = {"M": ("x-api-key", "alpha-key")}.get(wire.name, ("authorization", "Bearer alpha-key"))
        assert request.header(key[0]) == key[1]
        if wire is M:
            assert request.header("anthropic-version") == version.decode()


# -- 15, 16: lists and unknown names

REQUIRED = {
    "slug": str,
    "display_name": str,
    "supported_reasoning_levels": list,
    "shell_type": str,
    "visibility": str,
    "supported_in_api": bool,
    "priority": int,
    "support_verbosity": bool,
    "truncation_policy": dict,
    "experimental_supported_tools": list,
    "base_instructions": str,
}


@pytest.mark.parametrize("place", ["own", "merged"])
async def test_fact_15_every_row_of_a_codex_catalog_is_whole(confdir: Path, place: str) -> None:
    native = {"slug": "gpt-5.5", "display_name": "GPT-5.5", "priority": 0}
    quiet = {"alpha": {"liveModels": False}}
    plain, alias = case(providers=quiet), case(providers=quiet, combo={"alias": "team/fast"})
    async with (
        vendor(listing({"models": [native]})) as (_, redirect),
        stage(confdir, plain, alias, addons=[redirect]) as on,
    ):
        if place == "own":
            answer = await ask(on.port, "GET", "/v1/models?client_version=0.171.0")
        else:
            path = "/backend-api/codex/models?client_version=0.171.0"
            answer = await ask_vendor(on.port, "GET", "chatgpt.com", path)
        rows = {row["slug"]: row for row in answer.json()["models"]}
        assert len(rows) == len(answer.json()["models"])
        for slug in (plain.model, "team/fast"):
            row = rows[slug]
            assert {name for name, kind in REQUIRED.items() if not isinstance(row.get(name), kind)} == set()
            assert set(row["input_modalities"]) <= {"text", "image", "audio"}
            assert {level.keys() >= {"effort", "description"} for level in row["supported_reasoning_levels"]} <= {True}
            assert not {"use_responses_lite", "tool_mode", "multi_agent_version", "comp_hash"} & row.keys()
        assert ("gpt-5.5" in rows) is (place == "merged")


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@pytest.mark.parametrize("host", [None, "api.vendor.test"])
async def test_fact_16_an_unknown_combo_is_a_model_not_found(confdir: Path, wire: Wire, host: str | None) -> None:
    async with stage(confdir, case(wire)) as on:
        body = json.dumps(wire.request("combo/none")).encode()
        target = f"http://{host}{wire.path}" if host else wire.path
        answer = await ask(on.port, "POST", target, body=body, host=host.encode() if host else None)
        said = answer.json()["error"]
        assert (answer.status, said["message"]) == (404, "Unknown combo: none")
        if wire is M:
            assert said["type"] == "not_found_error"
        else:
            assert (said["type"], said["code"]) == ("invalid_request_error", "model_not_found")


# -- 17: whose 401 it is


def forwarding(**more: Any) -> Case:
    """A combo whose only target takes the caller's own login."""
    row = {"authMode": "forward", "apiKey": None}
    return Case(R, providers={"alpha": row}, **more)


REJECTED = error(401, {"error": {"message": "bad key", "code": "invalid_api_key"}}, ((b"x-request-id", b"req_1"),))


async def refused(on: Stage, one: Case, headers: Pairs) -> Answer:
    answer = await on.ask(one, headers=headers)
    assert answer.json()["error"] == {"message": "bad key", "code": "invalid_api_key"}
    assert answer.header("x-request-id") == "req_1"
    return answer


async def test_fact_17_a_targets_401_is_none_of_the_users_login(confdir: Path) -> None:
    one, two = case(alpha=REJECTED), case(alpha=DOWN, beta=REJECTED)
    async with stage(confdir, one, two) as on:
        assert (await refused(on, one, LOGIN)).status == 403
        assert (await refused(on, two, LOGIN)).status == 403
        assert (one.records[0].status, one.records[0].attempts[0].status) == (403, 401)


async def test_fact_17_the_answer_to_the_users_own_login_is_passed_on(confdir: Path) -> None:
    own, plain = forwarding(alpha=REJECTED), case(alpha=REJECTED)
    async with stage(confdir, own, plain) as on:
        assert (await refused(on, own, LOGIN)).status == 401
        assert own.requests[0].header("chatgpt-account-id") == "account"
        # Without a ChatGPT login nothing is renewed: the failure is returned as it is.
        assert (await refused(on, plain, ((b"Authorization", b"Bearer key"),))).status == 401
