"""Turns with the Anthropic library for Python."""

from typing import Any

import anthropic
from turns import DESCRIPTION, SCHEMA, SILENT, Turn, shell, take

TOOL: Any = {"name": "shell", "description": DESCRIPTION, "input_schema": SCHEMA}


def turn(client: anthropic.Anthropic, asked: Turn) -> str:
    said: list[Any] = [{"role": "user", "content": "run it"}]
    while True:
        answer = ask(client, asked, said)
        if not answer.stop_reason:
            raise RuntimeError(SILENT)
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in answer.content if block.type == "text")
        said.append({"role": "assistant", "content": answer.content})
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": shell(call.input["command"])} for call in calls
        ]
        said.append({"role": "user", "content": results})


def ask(client: anthropic.Anthropic, asked: Turn, said: list[Any]) -> Any:
    if not asked.stream:
        return client.messages.create(model=asked.model, max_tokens=1000, messages=said, tools=[TOOL])
    with client.messages.stream(model=asked.model, max_tokens=1000, messages=said, tools=[TOOL]) as stream:
        return stream.get_final_message()


take(lambda asked: turn(anthropic.Anthropic(), asked))
