"""Speed of the translations: rounds per measurement (default 15), of which the best one counts, in processor time.

Prints for every pair of dialects how long a request of 1 MB takes (many small messages, and fewer large ones: the
parsed request becomes the body for the target) and how many chunks of a stream go through in a second. Fails beyond
15 ms or below 30 000 chunks a second.
"""

import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "addon"), str(ROOT / "tests")]

from combos.core.facts import Dialect  # noqa: E402
from combos.wire.translate import StreamTranslator, translate_request  # noqa: E402
from translations import GIVEN, context, profile  # noqa: E402

REQUEST_MS = 15
CHUNKS_S = 30_000
MEGABYTE = 1_000_000
SHAPES = {"small messages": 1_500, "large messages": 450}
CHUNKS = 5_000

R, C, M, G = Dialect.RESPONSES, Dialect.CHAT, Dialect.MESSAGES, Dialect.GEMINI
TOOL = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def conversation(dialect: Dialect, messages: int) -> dict[str, Any]:
    """A request of 1 MB as an agent makes it: questions, thoughts aloud, calls and their results in turn."""
    text = "The tide turns at noon, \u201cperhaps\u201d. "
    size = MEGABYTE // messages
    filler = (text * (size // len(text) + 1))[: max(1, size - _ENVELOPE[dialect])]
    made = [_SAYS[dialect](number, filler) for number in range(messages)]
    return _AROUND[dialect]([item for items in made for item in items])


def _responses(number: int, text: str) -> list[Any]:
    call = f"call_{number - number % 4}"
    match number % 4:
        case 0:
            return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
        case 1:
            return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
        case 2:
            arguments = json.dumps({"path": text}, ensure_ascii=False)
            return [{"type": "function_call", "call_id": call, "name": "read", "arguments": arguments}]
        case _:
            return [{"type": "function_call_output", "call_id": call, "output": text}]


def _chat(number: int, text: str) -> list[Any]:
    call = f"call_{number - number % 4}"
    match number % 4:
        case 0:
            return [{"role": "user", "content": text}]
        case 1:
            return [{"role": "assistant", "content": text}]
        case 2:
            function = {"name": "read", "arguments": json.dumps({"path": text}, ensure_ascii=False)}
            calls = [{"id": call, "type": "function", "function": function}]
            return [{"role": "assistant", "content": None, "tool_calls": calls}]
        case _:
            return [{"role": "tool", "tool_call_id": call, "content": text}]


def _messages(number: int, text: str) -> list[Any]:
    call = f"call_{number - number % 4}"
    match number % 4:
        case 0:
            return [{"role": "user", "content": text}]
        case 1:
            return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]
        case 2:
            block: dict[str, Any] = {"type": "tool_use", "id": call, "name": "read", "input": {"path": text}}
            return [{"role": "assistant", "content": [block]}]
        case _:
            result = {"type": "tool_result", "tool_use_id": call, "content": text}
            return [{"role": "user", "content": [result]}]


def _gemini(number: int, text: str) -> list[Any]:
    call = f"call_{number - number % 4}"
    match number % 4:
        case 0:
            return [{"role": "user", "parts": [{"text": text}]}]
        case 1:
            return [{"role": "model", "parts": [{"text": text}]}]
        case 2:
            made = {"id": call, "name": "read", "args": {"path": text}}
            return [{"role": "model", "parts": [{"functionCall": made}]}]
        case _:
            answer = {"id": call, "name": "read", "response": {"output": text}}
            return [{"role": "user", "parts": [{"functionResponse": answer}]}]


_SAYS = {R: _responses, C: _chat, M: _messages, G: _gemini}
_ENVELOPE = {R: 110, C: 90, M: 90, G: 90}
_AROUND: dict[Dialect, Callable[[list[Any]], dict[str, Any]]] = {
    R: lambda items: {
        "model": "m",
        "input": items,
        "tools": [{"type": "function", "name": "read", "parameters": TOOL}],
        "stream": True,
    },
    C: lambda items: {
        "model": "m",
        "messages": items,
        "tools": [{"type": "function", "function": {"name": "read", "parameters": TOOL}}],
        "stream": True,
    },
    M: lambda items: {
        "model": "m",
        "max_tokens": 1000,
        "messages": items,
        "tools": [{"name": "read", "input_schema": TOOL}],
        "stream": True,
    },
    G: lambda items: {
        "contents": items,
        "tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": TOOL}]}],
    },
}


def stream(dialect: Dialect) -> list[bytes]:
    """The chunks of an answer with a text that is made word by word."""
    words = [f"word{number} " for number in range(CHUNKS)]
    match dialect:
        case Dialect.RESPONSES:
            item = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
            deltas = [{"type": "response.output_text.delta", "output_index": 0, "delta": word} for word in words]
            added = {"type": "response.output_item.added", "output_index": 0, "item": item}
            final = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}
            events: list[Any] = [added, *deltas, final]
        case Dialect.CHAT:
            made = [{"index": 0, "delta": {"content": word}, "finish_reason": None} for word in words]
            made.append({"index": 0, "delta": {}, "finish_reason": "stop"})
            events = [{"id": "c", "choices": [choice]} for choice in made]
        case Dialect.MESSAGES:
            began = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            deltas = [
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
                for word in words
            ]
            ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
            last = [{"type": "content_block_stop", "index": 0}, ended, {"type": "message_stop"}]
            events = [{"type": "message_start", "message": {"id": "m"}}, began, *deltas, *last]
        case Dialect.GEMINI:
            contents = [{"content": {"role": "model", "parts": [{"text": word}]}} for word in words]
            events = [{"candidates": [content]} for content in contents]
            events[-1]["candidates"][0]["finishReason"] = "STOP"
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]


def best(rounds: int, work: Callable[[], object]) -> float:
    """Seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def request_ms(client: Dialect, target: Dialect, document: dict[str, Any], rounds: int) -> float:
    wanted = profile(target)
    return best(rounds, lambda: translate_request(document, client, target, wanted, GIVEN)) * 1000


def chunks_per_s(client: Dialect, target: Dialect, rounds: int) -> float:
    chunks = stream(target)

    def run() -> None:
        translator = StreamTranslator(client, target, context(client, target))
        for chunk in chunks:
            translator.feed(chunk)
        translator.finish()
        assert translator.fault is None, translator.fault

    return len(chunks) / best(rounds, run)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    requests = {(d, shape): conversation(d, many) for d in (R, C, M, G) for shape, many in SHAPES.items()}
    fast = []
    for client, target in itertools.permutations((R, C, M, G), 2):
        pair = f"{client} to {target}"
        for shape in SHAPES:
            document = requests[client, shape]
            ms = request_ms(client, target, document, rounds)
            size = len(json.dumps(document, ensure_ascii=False).encode())
            fast.append(ms <= REQUEST_MS)
            print(
                f"{pair:22} request of {size / MEGABYTE:.2f} MB, {shape:14} {ms:6.1f} ms {size / ms / 1000:7.0f} MB/s"
            )
        rate = chunks_per_s(client, target, max(1, rounds // 5))
        fast.append(rate >= CHUNKS_S)
        print(f"{pair:22} stream {rate:12,.0f} chunks/s")
    return 0 if all(fast) else 1


if __name__ == "__main__":
    sys.exit(main())
