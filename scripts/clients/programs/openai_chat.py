"""Turns with the OpenAI library for Python: the Chat Completions API."""

import json
from typing import Any

import openai
from turns import DESCRIPTION, SCHEMA, SILENT, Turn, shell, take

TOOL: Any = {"type": "function", "function": {"name": "shell", "description": DESCRIPTION, "parameters": SCHEMA}}


def turn(client: openai.OpenAI, asked: Turn) -> str:
    said: list[Any] = [{"role": "user", "content": "run it"}]
    while True:
        message = (streamed if asked.stream else whole)(client, asked.model, said)
        if not message.get("tool_calls"):
            return str(message["content"])
        said.append({"role": "assistant", **message})
        for call in message["tool_calls"]:
            output = shell(json.loads(call["function"]["arguments"])["command"])
            said.append({"role": "tool", "tool_call_id": call["id"], "content": output})


def whole(client: openai.OpenAI, model: str, said: list[Any]) -> dict[str, Any]:
    answer = client.chat.completions.create(model=model, messages=said, tools=[TOOL])
    return answer.choices[0].message.model_dump(include={"content", "tool_calls"}, exclude_none=True)


def streamed(client: openai.OpenAI, model: str, said: list[Any]) -> dict[str, Any]:
    with client.chat.completions.stream(model=model, messages=said, tools=[TOOL]) as stream:
        for _ in stream:
            pass
        choice = stream.current_completion_snapshot.choices[0]
    if not choice.finish_reason:
        raise RuntimeError(SILENT)
    calls = [{"id": call.id, "type": "function", "function": plain(call)} for call in choice.message.tool_calls or []]
    return {"content": choice.message.content or "", **({"tool_calls": calls} if calls else {})}


def plain(call: Any) -> dict[str, str]:
    return {"name": call.function.name, "arguments": call.function.arguments}


take(lambda asked: turn(openai.OpenAI(), asked))
