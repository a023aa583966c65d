"""Turns with the OpenAI library for Python: the Responses API."""

import json
from typing import Any

import openai
from turns import DESCRIPTION, SCHEMA, SILENT, Turn, shell, take

TOOL: Any = {"type": "function", "name": "shell", "description": DESCRIPTION, "parameters": SCHEMA, "strict": False}


def turn(client: openai.OpenAI, asked: Turn) -> str:
    said: list[Any] = [{"role": "user", "content": "run it"}]
    while True:
        answer = ask(client, asked, said)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return str(answer.output_text)
        said += answer.output
        for call in calls:
            output = shell(json.loads(call.arguments)["command"])
            said.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


def ask(client: openai.OpenAI, asked: Turn, said: list[Any]) -> Any:
    if not asked.stream:
        return client.responses.create(model=asked.model, input=said, tools=[TOOL])
    last = None
    for event in client.responses.create(model=asked.model, input=said, tools=[TOOL], stream=True):
        last = event
    if last is not None and last.type in ("response.completed", "response.incomplete"):
        return last.response
    if last is not None and last.type in ("response.failed", "error"):
        raise RuntimeError(f"the stream ended with {last.type}")
    raise RuntimeError(SILENT)


take(lambda asked: turn(openai.OpenAI(), asked))
