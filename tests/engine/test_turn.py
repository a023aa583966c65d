"""Whole answers, hops, stops, exhaustion, cancellation: the turn without streams."""

import gzip

import pytest

from combos.core.facts import TransportFault
from combos.engine.budget import SendBudget, SendKind
from combos.engine.commands import Break, Commit, Limit, Reply, Send
from combos.engine.events import ChunkReceived, ClientGone, Ended, Failed, HeadReceived, Started, WaitOver
from combos.engine.record import Outcome
from combos.engine.turn import Turn
from playbook import (
    JSON,
    Play,
    World,
    commits,
    config,
    discards,
    ends,
    error,
    finishes,
    header,
    relays,
    replies,
    sends,
    waits,
)

ANSWER = b'{"id":"r1","status":"completed","model":"m","output":[{"type":"message"}]}'


@pytest.fixture
def world() -> World:
    return World(config())


def started(world: World, **kwargs: object) -> Play:
    return world.turn(**kwargs) >> Started() << sends("alpha/m1")  # type: ignore[arg-type]


def test_a_whole_answer_is_given_as_it_is(world: World) -> None:
    play = started(world, stream=False)
    play.answer(0, 200, ANSWER) << replies(200, ANSWER) << discards(0) << finishes(Outcome.SUCCESS)
    record = play.done()
    assert (record.status, record.attempts[0].result, record.attempts[0].response_model) == (200, "completed", "m")
    assert world.cooling() == {}


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (TransportFault.REFUSED, 502),
        (TransportFault.DNS, 502),
        (TransportFault.TLS, 502),
        (TransportFault.CONNECT_TIMEOUT, 502),
        (TransportFault.HEAD_TIMEOUT, 502),
        (TransportFault.RESET, 502),
        (TransportFault.CLOSED, 502),
        (TransportFault.SELF_LOOP, 502),
    ],
)
def test_a_fault_before_the_head_hops_and_the_last_one_is_the_answer(
    world: World, fault: TransportFault, status: int
) -> None:
    play = started(world) >> Failed(0, fault) << discards(0) << sends("beta/m2")
    play >> Failed(1, fault) << replies(status, code=fault.value) << discards(1) << finishes(Outcome.EXHAUSTED)
    record = play.done()
    assert world.cooling() == {"alpha/m1": 60_000, "beta/m2": 60_000}
    assert [attempt.result for attempt in record.attempts] == [fault.value] * 2
    assert [attempt.status for attempt in record.attempts] == [None, None]


def test_a_stop_is_returned_unchanged_and_cools_nothing(world: World) -> None:
    body = b'{"error":  {"type":"invalid_request_error","message":"no"}}'
    play = started(world)
    play.answer(
        0, 400, body, ((b"Content-Type", b"application/json"), (b"x-request-id", b"q"), (b"openai-model", b"m1"))
    )
    play << replies(400, body) << discards(0) << finishes(Outcome.TERMINAL)
    play.done()
    reply = next(c for c in play.log if isinstance(c, Reply))
    assert (header(reply, b"x-request-id"), header(reply, b"openai-model")) == (b"q", b"combo/main")
    assert (world.cooling(), play.calls) == ({}, ["alpha/m1"])


def test_exhausted_gives_the_last_failure_not_the_first(world: World) -> None:
    play = started(world)
    play.answer(0, 429, error("first")) << discards(0) << sends("beta/m2")
    play.answer(1, 503, b"second", ((b"retry-after", b"7"),))
    play << replies(503, b"second") << discards(1) << finishes(Outcome.EXHAUSTED)
    play.done()
    assert world.cooling() == {"alpha/m1": 60_000, "beta/m2": 7_000}


def test_the_backups_own_stop_is_the_answer(world: World) -> None:
    play = started(world)
    play.answer(0, 503, b"") << discards(0) << sends("beta/m2")
    play.answer(1, 422, error("x")) << replies(422) << discards(1) << finishes(Outcome.TERMINAL)
    play.done()
    assert world.cooling() == {"alpha/m1": 60_000}


def test_nothing_available_without_and_with_retry_after(world: World) -> None:
    world.unusable = {"alpha": "no_credentials", "beta": "self_loop"}
    play = world.turn() >> Started() << replies(503, code="combo_unavailable") << finishes(Outcome.UNAVAILABLE)
    assert play.done().reason == "alpha/m1: no_credentials, beta/m2: self_loop"
    assert header(play.log[0], b"retry-after") is None


def test_a_provider_wide_failure_cools_its_targets_of_this_combo_only() -> None:
    document = config("alpha/m1", "alpha/m2", "beta/m2")
    combos = document["combos"]
    assert isinstance(combos, dict)
    combos["other"] = {"targets": [{"provider": "alpha", "model": "m1"}]}
    world = World(document)
    play = started(world)
    play.answer(0, 401, error(code="invalid_api_key")) << discards(0) << sends("beta/m2") >> ClientGone()
    play << discards(1) << finishes(Outcome.CANCELLED)
    assert world.cooling() == {"alpha/m1": 600_000, "alpha/m2": 600_000}
    world.turn("combo/other") >> Started() << sends("alpha/m1")


def test_a_request_local_refusal_hops_without_cooling(world: World) -> None:
    play = started(world)
    local = error("Unsupported parameter: user", type="invalid_request_error", param="user")
    play.answer(0, 400, local) << discards(0) << sends("beta/m2")
    assert world.cooling() == {}
    assert play.record.attempts[0].verdict is not None
    assert play.record.attempts[0].cooldown is None


@pytest.mark.parametrize("phase", ["waiting", "connecting", "error body", "prefix", "whole"])
def test_a_gone_client_ends_everything(phase: str) -> None:
    world = World(config("alpha/m1", waitForCooldownMs=5000))
    play = started(world)
    if phase == "waiting":
        play.answer(0, 429, b"", ((b"retry-after", b"2"),)) << discards(0) << waits(2000)
    else:
        heads = {"error body": HeadReceived(0, 503, JSON), "whole": HeadReceived(0, 200, JSON)}
        stream = HeadReceived(0, 200, ((b"content-type", b"text/event-stream"),))
        if phase != "connecting":
            play >> heads.get(phase, stream) >> ChunkReceived(0, b": x\n\n")
    before = world.cooling()
    play >> ClientGone()
    if phase != "waiting":
        play << discards(0)
    record = (play << finishes(Outcome.CANCELLED)).done()
    assert (record.status, world.cooling()) == (499, before)
    if phase == "waiting":
        assert play.feed(WaitOver(1)) == []
    else:
        assert record.attempts[0].result == "cancelled"


def test_error_bodies_are_read_under_a_tight_limit(world: World) -> None:
    play = started(world) >> HeadReceived(0, 503, JSON)
    limit = play.log[-1]
    assert isinstance(limit, Limit)
    assert (limit.idle_ms, limit.total_ms) == (5_000, 5_000)


def test_an_unreadable_error_body_is_judged_by_its_status(world: World) -> None:
    headers = ((b"retry-after", b"9"),)
    play = started(world) >> [
        HeadReceived(0, 400, headers),
        ChunkReceived(0, b"{"),
        Failed(0, TransportFault.IDLE_TIMEOUT),
    ]
    play << replies(400, code="Provider error 400") << discards(0) << finishes(Outcome.TERMINAL)
    play.done()
    assert header(next(c for c in play.log if isinstance(c, Reply)), b"retry-after") == b"9"


def test_a_stopping_error_body_over_the_bound_is_streamed_whole(world: World) -> None:
    first, second, third = b"a" * 65_536, b"b", b"c" * 10
    play = started(world) >> [HeadReceived(0, 400, JSON), ChunkReceived(0, first), ChunkReceived(0, second)]
    play << commits(0, 400) << relays(first + second) >> ChunkReceived(0, third) << relays(third)
    limits = [c for c in play.log if isinstance(c, Limit)]
    assert (limits[-1].idle_ms, limits[-1].total_ms) == (300_000, None)
    play >> Ended(0) << ends() << finishes(Outcome.TERMINAL)
    assert play.done().status == 400


def test_a_cut_in_a_streamed_error_body_is_no_clean_end(world: World) -> None:
    play = started(world) >> [HeadReceived(0, 400, JSON), ChunkReceived(0, b"a" * 70_000)] << commits(0, 400)
    play << relays(b"a" * 70_000) >> Failed(0, TransportFault.RESET)
    assert play.pending == [Break(b"", "connection_reset"), play.pending[1]]
    assert play.record.outcome is Outcome.TERMINAL


def test_a_hopping_error_body_over_the_bound_is_closed_at_once(world: World) -> None:
    big = [HeadReceived(0, 503, JSON), ChunkReceived(0, b"a" * 65_537)]
    play = started(world) >> big << discards(0) << sends("beta/m2")
    assert play.feed(ChunkReceived(0, b"more")) == []
    play >> [HeadReceived(1, 500, JSON), ChunkReceived(1, b"z" * 65_537)] << commits(1, 500) << relays(b"z" * 65_537)
    play >> Ended(1) << ends() << finishes(Outcome.EXHAUSTED)
    play.done()


def test_a_large_error_body_that_is_waited_past_is_replaced() -> None:
    world = World(config("alpha/m1", waitForCooldownMs=90_000))
    play = (
        started(world) >> [HeadReceived(0, 503, JSON), ChunkReceived(0, b"a" * 65_537)] << discards(0) << waits(60_000)
    )
    world.reload({"providers": config()["providers"], "combos": {}})
    play >> WaitOver(1) << replies(503, code="Provider error 503") << finishes(Outcome.EXHAUSTED)
    play.done()


IN_BODY = "http 200 with an error body"


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (b"", "malformed_response"),
        (b"<html>login</html>", "malformed_response"),
        (
            b'{"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}',
            "http 200 with an error body",
        ),
        (b'{"error":{"message":"upstream overloaded","code":"server_is_overloaded"}}', IN_BODY),
    ],
)
def test_a_200_that_is_no_answer_hops(world: World, body: bytes, result: str) -> None:
    play = started(world, stream=False)
    play.answer(0, 200, body) << discards(0) << sends("beta/m2")
    assert play.record.attempts[0].result == result
    assert world.cooling() == {"alpha/m1": 60_000}


def test_a_200_with_a_caller_error_stops_and_is_given_unchanged(world: World) -> None:
    body = b'{"error":{"message":"too long","code":"context_length_exceeded"}}'
    play = started(world, stream=False)
    play.answer(0, 200, body) << replies(200, body) << discards(0) << finishes(Outcome.TERMINAL)
    play.done()


def test_an_answer_over_the_limit_hops() -> None:
    world = World(config())
    world.options = type(world.options)(answer_bytes=10)
    play = started(world, stream=False) >> [HeadReceived(0, 200, JSON), ChunkReceived(0, b"x" * 11)]
    play << discards(0) << sends("beta/m2")
    assert play.record.attempts[0].result == "response_too_large"


@pytest.mark.parametrize(
    ("fault", "status"),
    [(TransportFault.TRUNCATED, 502), (TransportFault.IDLE_TIMEOUT, 504), (TransportFault.RESET, 502)],
)
def test_a_whole_answer_that_breaks_hops(world: World, fault: TransportFault, status: int) -> None:
    play = started(world, stream=False) >> [HeadReceived(0, 200, JSON), ChunkReceived(0, b"{"), Failed(0, fault)]
    play << discards(0) << sends("beta/m2") >> [HeadReceived(1, 200, JSON), Failed(1, fault)]
    play << replies(status) << discards(1) << finishes(Outcome.EXHAUSTED)


def test_a_compressed_answer_is_read_and_given_compressed(world: World) -> None:
    body = gzip.compress(ANSWER)
    play = started(world, stream=False)
    play.answer(0, 200, body, (*JSON, (b"content-encoding", b"gzip"))) << replies(200, body)
    assert header(next(c for c in play.log if isinstance(c, Reply)), b"content-encoding") == b"gzip"
    assert play.record.attempts[0].response_model == "m"


@pytest.mark.parametrize("status", [301, 302, 307, 304])
def test_redirects_stop(world: World, status: int) -> None:
    play = started(world) >> [HeadReceived(0, status, ((b"location", b"http://elsewhere/"),)), Ended(0)]
    play << replies(status, b"") << discards(0) << finishes(Outcome.TERMINAL)
    assert header(next(c for c in play.log if isinstance(c, Reply)), b"location") is None
    play.done()


@pytest.mark.parametrize("status", [204, 205])
def test_empty_success_statuses_hop(world: World, status: int) -> None:
    play = started(world) >> [HeadReceived(0, status, JSON), Ended(0)] << discards(0) << sends("beta/m2")
    assert play.record.attempts[0].result == "malformed_response"


def test_context_overflow_stops_and_hops_only_when_asked_to() -> None:
    for chosen, calls in (("stop", 1), ("hop", 2)):
        world = World(config(contextOverflow=chosen))
        play = started(world)
        play.answer(0, 400, error("x", code="context_length_exceeded"))
        assert (len(play.calls), world.cooling()) == (calls, {})


# -- the send budget


def test_a_budget_that_refuses_the_first_target(world: World) -> None:
    request = world.request()
    budget = SendBudget(2)
    for _ in range(5):
        budget.reserve(SendKind.FIRST)
    play = Play(world, Turn(request, world.state, world.options, budget), request)
    play >> Started() << replies(429, code="request_send_budget_exhausted") << finishes(Outcome.REFUSED)
    assert play.done().reason.startswith("send budget")
    assert header(play.log[0], b"retry-after") is None


def test_a_budget_that_refuses_a_later_target() -> None:
    world = World(config("alpha/m1", "beta/m2", "gamma/m3"))
    request = world.request()
    play = Play(world, Turn(request, world.state, world.options, SendBudget(1)), request)
    play >> Started() << sends("alpha/m1")
    play.answer(0, 503, b"down") << discards(0) << sends("beta/m2")
    play.answer(1, 500, b"last") << replies(500, b"last") << discards(1) << finishes(Outcome.EXHAUSTED)
    assert play.done().reason == "send budget: target-transition-exhausted"


# -- direct routes and auxiliary endpoints


def test_a_direct_route_is_one_attempt_and_cools_nothing(world: World) -> None:
    play = world.turn("alpha/m1") >> Started() << sends("alpha/m1")
    play.answer(0, 503, b"down") << replies(503, b"down") << discards(0) << finishes(Outcome.EXHAUSTED)
    play.done()
    assert (world.cooling(), play.record.combo) == ({}, None)


def test_a_direct_route_without_credentials(world: World) -> None:
    world.unusable = {"alpha": "no_credentials"}
    play = world.turn("alpha/m1") >> Started() << replies(503, code="target_unavailable") << finishes(Outcome.REFUSED)
    assert play.done().reason == "no_credentials"


def test_a_direct_route_of_another_dialect(world: World) -> None:
    world = World(config(providers={"delta": {"adapter": "google", "baseUrl": "https://g.example/"}}))
    play = world.turn("delta/m", background=True) >> Started()
    play << replies(400, code="unsupported_by_target") << finishes(Outcome.REFUSED)
    play.done()


@pytest.mark.parametrize("stream", [True, False])
def test_an_xai_policy_refusal_becomes_an_incomplete_answer_on_direct_routes(stream: bool) -> None:
    xai = {"adapter": "openai-responses", "baseUrl": "https://api.x.ai/v1", "apiKey": "k"}
    world = World(config("delta/m1", "beta/m2", providers={"delta": xai}))
    refusal = error("I can't help with that request.")
    play = world.turn("delta/m1", stream=stream) >> Started() << sends("delta/m1")
    play.answer(0, 403, refusal) << replies(200, code="content_filter") << discards(0) << finishes(Outcome.EXHAUSTED)
    reply = next(c for c in play.log if isinstance(c, Reply))
    assert header(reply, b"cache-control") == b"no-store"
    assert (b"text/event-stream" in (header(reply, b"content-type") or b"")) is stream
    combo = world.turn() >> Started() << sends("delta/m1")
    combo.answer(0, 403, refusal) << discards(0) << sends("beta/m2")


def test_counting_tokens_asks_once_and_leaves_no_trace() -> None:
    world = World(config(wire="M", strategy="round-robin"), wire="M")
    path = "/v1/messages/count_tokens"
    play = world.turn(path=path, body=b'{"model":"combo/main","messages":[]}') >> Started() << sends("alpha/m1")
    assert play.sends[0].request.url == "http://127.0.0.1:7101/v1/messages/count_tokens"
    play.answer(0, 200, b'{"input_tokens":5}') << replies(200, b'{"input_tokens":5}') << discards(0)
    play << finishes(Outcome.SUCCESS)
    again = world.turn(path=path, body=b'{"model":"combo/main","messages":[]}') >> Started() << sends("alpha/m1")
    again.answer(0, 503, b"x") << replies(503, b"x") << discards(0) << finishes(Outcome.EXHAUSTED)
    assert world.cooling() == {}
    assert world.state.peek_rotation("main").counts == {}


def test_an_unknown_combo(world: World) -> None:
    world.turn("combo/nope") >> Started() << replies(404, code="Unknown combo: nope") << finishes(Outcome.REFUSED)


def test_timeouts_come_from_the_provider_where_it_sets_them() -> None:
    from playbook import provider

    world = World(config(providers={"alpha": provider("alpha", headTimeoutMs=7_000)}))
    send = next(c for c in (world.turn() >> Started()).log if isinstance(c, Send))
    assert (send.timeouts.connect_ms, send.timeouts.head_ms, send.timeouts.idle_ms) == (10_000, 7_000, 300_000)


def test_events_of_unknown_and_closed_attempts_are_ignored(world: World) -> None:
    play = started(world)
    assert play.feed(ChunkReceived(5, b"x")) == []
    play.answer(0, 503, b"") << discards(0) << sends("beta/m2")
    assert play.feed(Ended(0)) == []
    assert play.feed(Failed(0, TransportFault.RESET)) == []
    assert not any(isinstance(c, Commit) for c in play.log)
