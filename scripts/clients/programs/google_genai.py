"""Turns with Google's library for Python (google-genai)."""

from typing import Any

from google import genai
from google.genai import types
from turns import DESCRIPTION, SCHEMA, SILENT, Turn, shell, take

DECLARED = types.FunctionDeclaration(name="shell", description=DESCRIPTION, parameters_json_schema=SCHEMA)
CONFIG = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[DECLARED])])


def turn(client: genai.Client, asked: Turn) -> str:
    said: list[Any] = [types.UserContent("run it")]
    while True:
        parts = (streamed if asked.stream else whole)(client, asked.model, said)
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts)
        said.append(types.ModelContent(parts))
        said.append(types.UserContent([result(call) for call in calls]))


def result(call: Any) -> types.Part:
    output = {"output": shell(call.args["command"])}
    return types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response=output))


def whole(client: genai.Client, model: str, said: list[Any]) -> list[types.Part]:
    answer: Any = client.models.generate_content(model=model, contents=said, config=CONFIG)
    return list(answer.candidates[0].content.parts or [])


def streamed(client: genai.Client, model: str, said: list[Any]) -> list[types.Part]:
    parts: list[types.Part] = []
    finish = None
    for chunk in client.models.generate_content_stream(model=model, contents=said, config=CONFIG):
        for candidate in chunk.candidates or []:
            finish = candidate.finish_reason or finish
            parts += (candidate.content.parts or []) if candidate.content else []
    if finish is None:
        raise RuntimeError(SILENT)
    return parts


def take_turn(asked: Turn) -> str:
    with genai.Client() as client:
        return turn(client, asked)


take(take_turn)
