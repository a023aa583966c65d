"""The faults of providers, one row each: how often, for which requests, and what is done. Healthy answers are a row."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from answers import Speech, busy, refused
from codings import CODINGS, packed
from known import CASES, Case
from plans import EVENTS, JSON, LAST, Asked, Fate, Plan, answered, chunk, head, scattered, speech, streamed

type Build = Callable[[random.Random, Asked], Plan]


@dataclass(frozen=True)
class Row:
    """`weight` is relative to the others of the same kind of request; `on` is `any`, `stream` or `whole`.

    `stalls`: the provider says nothing until the proxy gives it up.
    """

    name: str
    weight: float
    on: str
    build: Build
    stalls: bool = False


# -- healthy


def _healthy(rng: random.Random, asked: Asked, **pieces: int) -> Plan:
    return _told(rng, asked, speech(rng, asked, **pieces))


def _told(rng: random.Random, asked: Asked, said: Speech) -> Plan:
    """All of it, as it was asked for."""
    plan = Plan("healthy", Fate.OK, [], said=said)
    if asked.stream:
        return streamed(rng, plan, [*said.start(), *said.output(), *said.finish()])
    return answered(rng, plan, said.whole(), [JSON])


def _slow_head(rng: random.Random, asked: Asked) -> Plan:
    plan = _healthy(rng, asked)
    plan.steps.insert(0, rng.uniform(0.01, min(0.4, asked.patience_s / 8)))
    return plan


def _early_hints(rng: random.Random, asked: Asked) -> Plan:
    plan = _healthy(rng, asked)
    plan.steps.insert(0, head(rng.choice((100, 102, 103)), [("x-early", "1")]))
    return plan


def _long_answer(rng: random.Random, asked: Asked) -> Plan:
    return _healthy(rng, asked, least=100, most=400)


def _large_answer(rng: random.Random, asked: Asked) -> Plan:
    """More than anybody's buffer takes, in few pieces or in many."""
    said = speech(rng, asked, least=2)
    count, size = rng.choice((2, 20, 200)), rng.choice((70_000, 300_000, 700_000))
    pieces = tuple(f"<{asked.ident}:{number}>{'x' * (size // count)}" for number in range(count))
    return _told(rng, asked, replace(said, pieces=pieces))


def _closes_after(rng: random.Random, asked: Asked) -> Plan:
    """The connection is promised to live on, and does not."""
    plan = _healthy(rng, asked)
    plan.steps.append(rng.choice(("close", "reset", "half")) if plan.keeps and not asked.stream else "close")
    plan.keeps = False
    return _perhaps_lost(plan)


def _perhaps_lost(plan: Plan) -> Plan:
    """A reset can overtake what was sent before it."""
    if plan.steps[-1] == "reset":
        plan.fate = Fate.ANY
    return plan


def _empty(rng: random.Random, asked: Asked) -> Plan:
    return _healthy(rng, asked, least=0, most=0)


def _several_ends(rng: random.Random, asked: Asked) -> Plan:
    said = speech(rng, asked)
    plan = Plan("", Fate.OK, [], said=said, repeats=True)
    return streamed(rng, plan, [*said.start(), *said.output(), *said.finish(), *said.finish()])


def _compressed(rng: random.Random, asked: Asked, *, cut: bool = False) -> Plan:
    coding = rng.choice(CODINGS)
    said = speech(rng, asked)
    plan = Plan("", Fate.HOP if cut else Fate.OK, [], said=said)
    kind = EVENTS if asked.stream else JSON
    events = b"".join([*said.start(), *said.output(), *said.finish()])
    body = packed(coding, events if asked.stream else said.whole())
    if cut:
        body = body[: rng.randint(1, len(body) // 2)]
        # How much a decoder gives out of a half depends on its blocks.
        plan.fate = Fate.ANY if asked.stream else Fate.HOP
    return answered(rng, plan, body, [kind, ("content-encoding", coding)])


def _cut_compressed(rng: random.Random, asked: Asked) -> Plan:
    return _compressed(rng, asked, cut=True)


# -- statuses and their bodies


_WAITS = ("", "abc", "-5", "1e3", "0", "0.001", "Thu, 01 Oct 2020 11:59:00 GMT")
_LONG_WAITS = ("3600", "7200.5", "Fri, 01 Jan 2100 00:00:00 GMT")
_BARE = (401, 402, 403, 404, 408, 425, 429, 500, 501, 502, 503, 504, 507, 520, 522, 524, 529, 599)
_FINAL = (405, 406, 409, 411, 413, 415, 418, 422, 451)


def _status(rng: random.Random, _asked: Asked) -> Plan:
    plan = Plan("", Fate.HOP, [], status=rng.choice(_BARE))
    fields = [rng.choice((JSON, ("content-type", "text/html")))]
    wait = rng.choice((None, None, *_WAITS, rng.choice(_LONG_WAITS)))
    if wait is not None:
        fields.append(("retry-after", wait))
        plan.rests = wait in _LONG_WAITS
    body = rng.choice((b"", b'{"error":{"message":"no"}}', b"<!doctype html><html><body>Bad Gateway</body></html>"))
    return answered(rng, plan, body, fields)


def _final_status(rng: random.Random, _asked: Asked) -> Plan:
    plan = Plan("", Fate.STOP, [], status=rng.choice(_FINAL))
    return answered(rng, plan, b'{"error":{"message":"no"}}', [JSON])


def _known(rng: random.Random, _asked: Asked) -> Plan:
    """A failure of the shared case file."""
    return _case(rng, rng.choice(CASES.plain))


def _known_event(rng: random.Random, asked: Asked) -> Plan:
    cases = CASES.events.get(asked.dialect)
    return _case(rng, rng.choice(cases)) if cases else _error_before(rng, asked)


def _case(rng: random.Random, case: Case) -> Plan:
    fate = {("hop",): Fate.HOP, ("stop",): Fate.STOP}.get(case.verdicts, Fate.ANY)
    plan = Plan(f"case {case.id}", fate, [], status=case.status, rests=case.rests)
    return answered(rng, plan, case.body, list(case.headers))


def _redirect(rng: random.Random, _asked: Asked) -> Plan:
    plan = Plan("", Fate.STOP, [], status=rng.choice((301, 302, 307, 308)))
    return answered(rng, plan, b"", [("location", "http://127.0.0.1:9/elsewhere")])


def _large_error(rng: random.Random, _asked: Asked) -> Plan:
    plan = Plan("", Fate.HOP, [], status=503)
    size = max(30, rng.choice(_EDGES) + rng.choice((-100, -1, 0, 1, 100, 15_000)))
    return answered(rng, plan, b'{"error":{"message":"%s"}}' % (b"x" * (size - 26)), [JSON])


_EDGES = (16_384, 65_536, 65_536, 131_072, 262_144, 524_288)
"""Sizes at which a buffer is full: of TLS records, of error bodies that are read whole, of sockets, of readers."""


def _cut_error(rng: random.Random, _asked: Asked) -> Plan:
    status = rng.choice((503, 429, 400))
    first = head(status, [JSON, ("content-length", "500")]) + b'{"error":{"message":"ha'
    return Plan("", Fate.STOP if status == 400 else Fate.HOP, [first, rng.choice(("close", "reset"))], status=status)


# -- the connection


def _no_answer(rng: random.Random, _asked: Asked) -> Plan:
    return Plan("", Fate.HOP, [rng.uniform(0, 0.02), rng.choice(("close", "reset"))])


def _half_head(rng: random.Random, _asked: Asked) -> Plan:
    first = head(200, [JSON, ("content-length", "20")])
    return Plan("", Fate.HOP, [first[: rng.randint(1, len(first) - 3)], 0.0, rng.choice(("close", "reset"))])


def _garbage(rng: random.Random, _asked: Asked) -> Plan:
    noise = rng.choice(
        (rng.randbytes(40), b"\x15\x03\x01\x00\x02\x02\x46", b"SSH-2.0-x\r\n", b"HTTP/9.9 hello\r\n\r\n")
    )
    return Plan("", Fate.HOP, [noise, 0.0, "close"])


def _protocols(_rng: random.Random, _asked: Asked) -> Plan:
    return Plan("", Fate.HOP, [head(101, [("upgrade", "x"), ("connection", "upgrade")]), 0.01, "close"])


def _no_head(_rng: random.Random, _asked: Asked) -> Plan:
    return Plan("", Fate.HOP, ["stall"])


# -- whole answers


def _short_body(rng: random.Random, asked: Asked) -> Plan:
    body = speech(rng, asked).whole()
    part = body[: rng.randint(0, len(body) - 1)]
    if rng.random() < 0.5:
        first, data = head(200, [JSON, ("content-length", str(len(body)))]), part
    else:
        first, data = head(200, [JSON, ("transfer-encoding", "chunked")]), chunk(part) if part else b""
    return Plan("", Fate.HOP, [first, *scattered(rng, data), rng.choice(("close", "reset"))])


def _body_stalls(rng: random.Random, asked: Asked) -> Plan:
    body = speech(rng, asked).whole()
    return Plan("", Fate.HOP, [head(200, [JSON, ("content-length", str(len(body)))]) + body[:20], "stall"])


def _no_json(rng: random.Random, _asked: Asked) -> Plan:
    body = rng.choice((b"", b"{", b"null", b"[]", b"not json", b"<html><title>ok</title></html>", b'{"a":"\xff"}'))
    return answered(rng, Plan("", Fate.HOP, []), body, [rng.choice((JSON, ("content-type", "text/html")))])


def _error_with_200(rng: random.Random, asked: Asked) -> Plan:
    body = busy(asked.dialect).partition(b"data: ")[2]
    if asked.dialect == "responses":
        body = (
            b'{"id":"resp_f","object":"response","status":"failed","output":[],"error":{"code":"server_is_overloaded"}}'
        )
    return answered(rng, Plan("", Fate.HOP, []), body, [JSON])


def _odd_type(rng: random.Random, asked: Asked) -> Plan:
    said = speech(rng, asked)
    return answered(rng, Plan("", Fate.OK, [], said=said), said.whole(), [("content-type", "text/plain")])


# -- streams


def _error_before(rng: random.Random, asked: Asked) -> Plan:
    events = speech(rng, asked).start() if rng.random() < 0.8 else []
    return streamed(rng, Plan("", Fate.HOP, []), [*events, b": waiting\n\n", busy(asked.dialect)])


def _refusal_before(rng: random.Random, asked: Asked) -> Plan:
    events = speech(rng, asked).start() if rng.random() < 0.8 else []
    return streamed(rng, Plan("", Fate.STOP, []), [*events, refused(asked.dialect)])


def _end_before(rng: random.Random, asked: Asked) -> Plan:
    events = rng.choice(([], [b": ping\n\n"], speech(rng, asked).start()))
    ends = rng.random() < 0.5
    plan = streamed(rng, Plan("", Fate.HOP, []), events, ends=ends)
    plan.steps += [] if ends else [rng.choice(("close", "reset"))]
    return plan


def _stall_before(rng: random.Random, asked: Asked) -> Plan:
    plan = streamed(rng, Plan("", Fate.HOP, []), speech(rng, asked).start(), ends=False)
    plan.steps.append("stall")
    return plan


def _begun(rng: random.Random, asked: Asked, after: list[bytes], *, ends: bool) -> Plan:
    said = speech(rng, asked, least=2)
    plan = Plan("", Fate.CUT, [], said=said)
    return streamed(rng, plan, [*said.start(), *said.output(), *after], ends=ends)


def _error_after(rng: random.Random, asked: Asked) -> Plan:
    return _begun(rng, asked, [busy(asked.dialect)], ends=rng.random() < 0.5)


def _end_after(rng: random.Random, asked: Asked) -> Plan:
    return _begun(rng, asked, [], ends=True)


def _break_after(rng: random.Random, asked: Asked) -> Plan:
    plan = _begun(rng, asked, [], ends=False)
    plan.steps.append(rng.choice(("close", "reset")))
    return _perhaps_lost(plan)


def _half_frame(rng: random.Random, asked: Asked) -> Plan:
    said = speech(rng, asked, least=2)
    last = said.finish()[-1] if asked.dialect != "chat" else said.output()[-1]
    plan = Plan("", Fate.CUT, [], said=said)
    half = last[: rng.randint(1, len(last) // 2)]
    streamed(rng, plan, [*said.start(), *said.output(), half], ends=rng.random() < 0.5)
    plan.steps.append("close")
    plan.keeps = False
    return plan


def _stall_after(rng: random.Random, asked: Asked) -> Plan:
    plan = _begun(rng, asked, [], ends=False)
    plan.steps.append("stall")
    return plan


def _bad_chunk(rng: random.Random, asked: Asked) -> Plan:
    plan = _begun(rng, asked, [], ends=False)
    plan.steps += [b"zz\r\nnot a chunk\r\n", 0.01, "close"]
    plan.fate = Fate.ANY  # what comes together with it is lost before anybody reads it
    return plan


def _garbled_before(rng: random.Random, asked: Asked) -> Plan:
    said = speech(rng, asked)
    plan = Plan("", Fate.ANY, [], said=said)
    return streamed(rng, plan, [*said.start(), b"data: {broken\n\n", *said.output(), *said.finish()])


def _untyped(rng: random.Random, asked: Asked) -> Plan:
    said = speech(rng, asked)
    plan = Plan("", Fate.OK, [], said=said)
    return streamed(rng, plan, [*said.start(), *said.output(), *said.finish()], fields=[])


def _wrong_type(rng: random.Random, asked: Asked) -> Plan:
    said = speech(rng, asked)
    return streamed(rng, Plan("", Fate.HOP, []), [*said.start(), *said.output(), *said.finish()], fields=[JSON])


def _whole_for_stream(rng: random.Random, asked: Asked) -> Plan:
    said = speech(rng, asked)
    return answered(rng, Plan("", Fate.OK, [], said=said), said.whole(), [JSON])


def _long_prefix(_rng: random.Random, asked: Asked) -> Plan:
    """More pings than may be held back."""
    plan = Plan("", Fate.ANY, [head(200, [EVENTS, ("transfer-encoding", "chunked")])])
    plan.steps += [chunk(b": %s\n\n" % (b"p" * 65_000))] * 70
    plan.steps += [chunk(busy(asked.dialect)), LAST]
    return plan


ROWS = (
    Row("healthy", 30, "any", _healthy),
    Row("slow head", 3, "any", _slow_head),
    Row("early hints", 2, "any", _early_hints),
    Row("long answer", 1, "any", _long_answer),
    Row("large answer", 0.3, "any", _large_answer),
    Row("closes afterwards", 4, "any", _closes_after),
    Row("empty", 1.5, "any", _empty),
    Row("compressed", 2, "any", _compressed),
    Row("cut compressed", 1.5, "any", _cut_compressed),
    Row("status", 8, "any", _status),
    Row("final status", 2, "any", _final_status),
    Row("known failure", 10, "any", _known),
    Row("redirect", 0.7, "any", _redirect),
    Row("large error", 0.5, "any", _large_error),
    Row("cut error", 1.5, "any", _cut_error),
    Row("no answer", 4, "any", _no_answer),
    Row("half a head", 2, "any", _half_head),
    Row("garbage", 2, "any", _garbage),
    Row("other protocol", 0.7, "any", _protocols),
    Row("no head", 0.4, "any", _no_head, stalls=True),
    Row("short body", 4, "whole", _short_body),
    Row("body stalls", 0.4, "whole", _body_stalls, stalls=True),
    Row("no JSON", 3, "whole", _no_json),
    Row("error with 200", 2, "whole", _error_with_200),
    Row("odd type", 1, "whole", _odd_type),
    Row("known event", 5, "stream", _known_event),
    Row("error before output", 4, "stream", _error_before),
    Row("refusal before output", 1.5, "stream", _refusal_before),
    Row("end before output", 4, "stream", _end_before),
    Row("stall before output", 0.4, "stream", _stall_before, stalls=True),
    Row("error after output", 3, "stream", _error_after),
    Row("end after output", 2, "stream", _end_after),
    Row("break after output", 4, "stream", _break_after),
    Row("half a frame", 1.5, "stream", _half_frame),
    Row("stall after output", 0.4, "stream", _stall_after, stalls=True),
    Row("bad chunk", 1, "stream", _bad_chunk),
    Row("garbled before output", 1, "stream", _garbled_before),
    Row("several ends", 1.5, "stream", _several_ends),
    Row("no type", 1, "stream", _untyped),
    Row("wrong type", 1, "stream", _wrong_type),
    Row("JSON for a stream", 1, "stream", _whole_for_stream),
    Row("long prefix", 0.05, "stream", _long_prefix),
)


def plan_of(rng: random.Random, asked: Asked, *, stalls: bool) -> Plan:
    """What the generator decides for this request; `stalls`: a provider may fall silent."""
    kind = "stream" if asked.stream else "whole"
    rows = [row for row in ROWS if row.on in ("any", kind) and (stalls or not row.stalls)]
    row = rng.choices(rows, [row.weight for row in rows])[0]
    plan = row.build(rng, asked)
    plan.name = plan.name if plan.name.startswith("case") else row.name
    return plan
