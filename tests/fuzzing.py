"""Shared by the laws in `tests/fuzz`: how long they are tried, and inputs that are hostile or nearly right.

A law is a hypothesis test. Run by pytest it tries a fixed list of examples; `scripts/fuzz/run` gives the same law to a
coverage-guided fuzzer for as long as one likes.
"""

import json
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

law = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)

# What JSON readers disagree about: numbers out of range or precision, half surrogates, escapes, empty and long texts.
ODD_TEXTS = (
    '"\\ud83d"', '"\\udc00\\ud800"', '"\\u0000"', '"\\\\ud83d"', '"\\"model\\":"', '"' + "x" * 300 + '"', '""',
)  # fmt: skip
ODD_NUMBERS = ("1e400", "-1e400", "1e999999", "18446744073709551616", "-0", "0.10", "9" * 60, "18446744073709551615")
KEYS = (
    "model", "mod\\u0065l", "stream", "messages", "input", "contents", "parts", "role", "type", "content", "text",
    "tools", "error", "message", "code", "status", "param", "response", "last_error", "detail", "usage", "choices",
    "delta", "finish_reason", "candidates", "finishReason", "output", "item", "id", "name", "arguments", "index",
    "output_index", "content_block", "stop_reason", "details", "reason", "headers", "resets_at", "data", "metadata",
    "openai-model",
)  # fmt: skip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(("user", "assistant", "function", "message", "error", "response.completed", "429", "text", "stop")),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=4)), inner, max_size=5),
    ),
    max_leaves=24,
)


def _written(value: Any) -> str:
    return json.dumps(value)


def _containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """JSON text with repeated and escaped keys and any spaces, which no serialiser would write."""
    keys = st.sampled_from([f'"{key}"' for key in KEYS])
    spaces = st.sampled_from(["", " ", "\r\n\t"])
    members = st.lists(st.tuples(keys, spaces, inner).map(lambda m: f"{m[0]}{m[1]}:{m[1]}{m[2]}"), max_size=5)
    arrays = st.lists(inner, max_size=4).map(lambda items: "[" + ",".join(items) + "]")
    return st.one_of(arrays, members.map(lambda found: "{" + ",".join(found) + "}"))


json_texts = st.recursive(
    st.one_of(scalars.map(_written), st.sampled_from(ODD_TEXTS + ODD_NUMBERS)), _containers, max_leaves=24
)
"""Valid JSON in unusual spellings."""


@st.composite
def damaged(draw: st.DrawFn, texts: st.SearchStrategy[str] = json_texts) -> bytes:
    """Bytes that are JSON or nearly: cut, with a byte changed, or with something behind them."""
    raw = bytearray(draw(texts).encode("utf-8", "surrogatepass"))
    match draw(st.integers(0, 5)):
        case 0 if raw:
            raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
        case 1:
            del raw[draw(st.integers(0, len(raw))) :]
        case 2:
            raw += draw(st.binary(max_size=6))
        case 3:
            depth = draw(st.sampled_from([30, 600, 3000]))
            raw = bytearray(b'{"a":' * depth + bytes(raw) + b"}" * depth)
        case _:
            pass
    return bytes(raw)


header_names = st.sampled_from(
    [
        b"Retry-After", b"content-type", b"Content-Encoding", b"x-codex-primary-reset-at",
        b"x-codex-primary-used-percent",
        b"anthropic-ratelimit-unified-5h-reset", b"anthropic-ratelimit-unified-5h-status", b"Connection", b"Set-Cookie",
        b"anthropic-ratelimit-unified-7d-utilization", b"openai-model", b"content-length", b"Transfer-Encoding",
        b"x-codex-secondary-window-minutes", b"authorization", b"x-bad\r\nname", b"", b"x-codex-tertiary-reset-at",
    ]
)  # fmt: skip
header_values = st.one_of(
    st.binary(max_size=24),
    st.sampled_from(
        [
            b"5", b"1e3", b"-1", b"0.0001", b"9" * 120, b"gzip", b"br, gzip", b"rejected",
            b"Sun, 06 Nov 1994 08:49:37 GMT",
            b"Sunday, 06-Nov-94 08:49:37 GMT", b"Sun Nov  6 08:49:37 1994", b"Thu, 31 Feb 9999 23:59:59 GMT", b"inf",
            b"nan",
            b"text/event-stream", b"a\r\nb: c", b"\xc2\xb2", b"9999999999999", b"keep-alive, x-api-key",
        ]
    ),
)  # fmt: skip
headers = st.lists(st.tuples(header_names, header_values), max_size=5).map(tuple)
moments = st.integers(0, 4_000_000_000_000)


def lines(payloads: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Event streams around payloads: named and bare events, comments, `[DONE]`, every line end, broken frames."""
    ends = st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r", b"\n", b"\n\r\n"])
    names = st.sampled_from(
        [b"", b"event: error\n", b"event: message_stop\n", b"event: content_block_delta\r\n", b": ping\n", b"id: 1\r"]
    )
    prefixes = st.sampled_from([b"data: ", b"data:", b"data: [DONE]\n\ndata: ", b"\xef\xbb\xbfdata: ", b"garbage "])
    frames = st.tuples(names, prefixes, payloads, ends).map(b"".join)
    return st.lists(frames, max_size=6).map(b"".join)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data cut at these places, taken modulo its length."""
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


cuts = st.lists(st.integers(0, 4000), max_size=8)
