"""Turns with LiteLLM. The first argument is the prefix that chooses its client: openai, anthropic or gemini."""

import json
import sys
from typing import Any

import litellm
from turns import DESCRIPTION, SCHEMA, SILENT, Turn, shell, take

TOOL = {"type": "function", "function": {"name": "shell", "description": DESCRIPTION, "parameters": SCHEMA}}


def turn(asked: Turn) -> str:
    said: list[Any] = [{"role": "user", "content": "run it"}]
    while True:
        message = ask(f"{sys.argv[1]}/{asked.model}", said, stream=asked.stream)
        if not message.tool_calls:
            return str(message.content)
        said.append(message)
        for call in message.tool_calls:
            output = shell(json.loads(call.function.arguments)["command"])
            said.append({"role": "tool", "tool_call_id": call.id, "content": output})


def ask(model: str, said: list[Any], *, stream: bool) -> Any:
    answer = litellm.completion(model=model, messages=said, tools=[TOOL], stream=stream)
    if stream:
        chunks = list(answer)
        if not any(choice.finish_reason for chunk in chunks for choice in chunk.choices):
            raise RuntimeError(SILENT)
        answer = litellm.stream_chunk_builder(chunks, messages=said)
    return answer.choices[0].message


litellm.suppress_debug_info = True
take(turn)
