"""Times every reader and writer on input of a size, and of four times that size; prints the ratio of both.

Linear work gives 4, quadratic 16. CPU time of the best of three, so that what else the machine does counts little.
"""

import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator

import brotli

from combos.core.config import parse_config
from combos.core.errors import ConfigError
from combos.core.facts import Dialect
from combos.core.failures import classify
from combos.decision.envelopes import clean
from combos.decision.transcript import items_of
from combos.wire.bodies import Decoder
from combos.wire.dialect import inspector, whole_answer
from combos.wire.envelope import failure_facts
from combos.wire.headers import request_headers, response_headers
from combos.wire.json_text import loads
from combos.wire.model_header import with_requested_model
from combos.wire.model_list import parse_model_list
from combos.wire.readable import read_answer
from combos.wire.request import peek_model, request_facts
from combos.wire.splice import replace_members
from combos.wire.translate import StreamTranslator, translate_request, translate_response
from combos.wire.zstd import compress
from translations import DIALECTS, GIVEN, context, profile

R, C, M, G = DIALECTS
BOUND = 8.0
type Work = Callable[[], object]


def sse(*payloads: object, name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return b"".join(head + b"data: " + json.dumps(one).encode() + b"\n\n" for one in payloads)


def chat(delta: object, finish: str | None = None) -> object:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index: int, arguments: str, **more: str) -> object:
    return chat({"tool_calls": [{"index": index, "function": {"arguments": arguments, **more}, "id": f"call_{index}"}]})


def chat_stream(*deltas: object) -> bytes:
    return sse(*deltas, chat({}, "tool_calls")) + b"data: [DONE]\n\n"


def through(raw: bytes, client: Dialect, target: Dialect, step: int) -> object:
    translator = StreamTranslator(client, target, context(client, target))
    for start in range(0, len(raw), step):
        translator.feed(raw[start : start + step])
    return translator.finish()


def looked_at(raw: bytes, dialect: Dialect, step: int) -> None:
    reader = inspector(dialect)
    for start in range(0, len(raw), step):
        reader.feed(raw[start : start + step])
    reader.close()


def decoded(coding: str, raw: bytes, step: int) -> None:
    decoder = Decoder(coding)
    for start in range(0, len(raw), step):
        decoder.feed(raw[start : start + step])


def conversation(dialect: Dialect, turns: int) -> dict[str, object]:
    match dialect:
        case Dialect.RESPONSES:
            return {"model": "m", "input": [{"role": "user", "content": "hello"}] * turns}
        case Dialect.GEMINI:
            return {"contents": [{"role": "user", "parts": [{"text": "hello"}]}] * turns}
        case _:
            return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}] * turns}


def tools(count: int) -> dict[str, object]:
    rows = [{"type": "function", "name": f"tool_{n}", "parameters": {"type": "object"}} for n in range(count)]
    return {"model": "m", "input": "x", "tools": rows}


def config(count: int) -> None:
    row = {"adapter": "openai-chat", "baseUrl": "https://vendor.example/v1"}
    providers = {f"p{n}": row for n in range(count)}
    combos = {f"c{n}": {"targets": [{"provider": f"p{n}", "model": "m"}]} for n in range(count)}
    try:
        parse_config({"providers": providers, "combos": combos})
    except ConfigError:
        raise SystemExit("the configuration of this script is not valid") from None


def streams(n: int) -> Iterator[tuple[str, Work]]:
    """Streams in small pieces, and with much of everything."""
    long = sse(chat({"content": "x" * 40 * n}))
    for dialect in DIALECTS:
        yield f"look at a long event byte by byte, {dialect}", lambda d=dialect: looked_at(long, d, 1)
    texts = chat_stream(*[chat({"content": "word "})] * n)
    calls = chat_stream(call(0, "", name="f"), *[call(0, "1")] * n)
    many = chat_stream(*(call(index, "{}", name="f") for index in range(n)))
    whole = json.dumps({"choices": [{"message": {"content": "x" * 40 * n}, "finish_reason": "stop"}]}).encode()
    for client in (R, M, G):
        yield f"translate deltas of text, chat to {client}", lambda c=client: through(texts, c, C, 700)
        yield f"translate deltas of arguments, chat to {client}", lambda c=client: through(calls, c, C, 700)
        yield f"translate many calls, chat to {client}", lambda c=client: through(many, c, C, 700)
        yield f"translate byte by byte, chat to {client}", lambda c=client: through(texts[: 20 * n], c, C, 1)
        context_ = context(client, C)
        yield (
            f"translate a whole answer, chat to {client}",
            lambda c=client, k=context_: translate_response(whole, c, C, k),
        )
    yield "read a recorded stream of deltas", lambda: read_answer(C, texts)


def requests(n: int) -> Iterator[tuple[str, Work]]:
    """Requests with many members, turns, tools, fields, escapes, brackets."""
    keys = json.dumps({**{f"k{i}": [{}, [i]] for i in range(n)}, "model": "m"}).encode()
    yield "splice among many members", lambda: replace_members(keys, {"model": b'"b"', ("k1", "x"): b"1"})
    brackets = b'{"a":' + b"[{}," * n + b"0" + b"]" * n + b',"model":"m"}'
    yield "splice behind many brackets", lambda: replace_members(brackets, {"model": b'"b"', "n": b"1"})
    yield "look for the model among its likes", lambda: peek_model(b'{"a":"' + b'\\"model\\":' * n + b'","model":"m"}')
    yield "look for the model before blanks", lambda: peek_model(b'{"model"' + b" " * 40 * n + b":1}")
    yield "read half surrogates", lambda: loads(b'["' + b"\\ud83d\\\\" * n + b'"]')
    yield "name the model in a header event", lambda: with_requested_model(b'"openai-model" : "' * n, "m")
    for dialect in DIALECTS:
        document = conversation(dialect, n)
        for target in DIALECTS:
            if dialect is not target:
                work = lambda d=document, c=dialect, t=target: translate_request(d, c, t, profile(t), GIVEN)  # noqa: E731
                yield f"translate many turns, {dialect} to {target}", work
    catalog = tools(n)
    yield "translate many tools", lambda: translate_request(catalog, R, M, profile(M), GIVEN)
    fields = (*tuple((b"X-%d" % i, b"v") for i in range(n)), (b"Connection", b", ".join(b"x-%d" % i for i in range(n))))
    yield (
        "header fields of a request",
        lambda: request_headers(fields, dialect=R, client_dialect=R, model="m", configured={}),
    )
    yield "header fields of an answer", lambda: response_headers(fields, requested_model=None, keep_length=False)
    body = json.dumps(conversation(R, n)).encode()
    yield "items of a conversation", lambda: [one.text for one in items_of(request_facts("/v1/responses", body))]
    yield "envelopes opened and never closed", lambda: clean("<system-reminder>" * n)
    yield "envelopes closed and never opened", lambda: clean("</system-reminder>" * n + "<" * n)
    yield "beginnings of envelopes", lambda: clean("<system-reminder " * n)


def others(n: int) -> Iterator[tuple[str, Work]]:
    """Errors, answers, codings, lists, configurations."""
    prose = json.dumps({"error": {"message": ("rate limit of the prompt is " * 40 * n)[:60_000], "type": "x"}}).encode()
    yield "judge long prose", lambda: [classify(failure_facts(429, (), prose)) for _ in range(n // 500)]
    yield "judge blanks", lambda: [classify(failure_facts(400, (), b" " * 60_000)) for _ in range(n // 500)]
    yield "read a whole answer", lambda: whole_answer(R, b'{"output":[' + b"{}," * n + b"{}]}")
    for coding, encode in (("gzip", gzip.compress), ("br", brotli.compress), ("zstd", compress)):
        raw = encode(json.dumps(list(range(5 * n))).encode())
        yield f"decode byte by byte, {coding}", lambda c=coding, r=raw: decoded(c, r, 1)
        members = encode(b"x" * 50) * min(n, 2000) if coding != "br" else raw
        yield f"decode many members, {coding}", lambda c=coding, r=members: decoded(c, r, 1 << 20)
    yield (
        "read a list of models",
        lambda: parse_model_list(json.dumps({"data": [{"id": f"m{i}"} for i in range(n)]}).encode()),
    )
    yield "read a configuration", lambda: config(n // 10)


def seconds(work: Work) -> float:
    best = 1e9
    for _ in range(3):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def main(words: list[str]) -> int:
    size, bad = 1500, 0
    for group in (streams, requests, others):
        small, large = dict(group(size)), dict(group(4 * size))
        for name in small:
            if not all(word in name for word in words):
                continue
            before, after = seconds(small[name]), seconds(large[name])
            ratio = after / max(before, 1e-5)
            is_bad = ratio > BOUND and after > 0.02
            bad += is_bad
            print(f"{name:58} {1000 * after:9.1f} ms  {ratio:5.1f}{'  TOO STEEP' if is_bad else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
