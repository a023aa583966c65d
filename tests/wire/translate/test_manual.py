"""The manual of translation: every table in it is what the code's own tables say, or what the code does when asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from combos.core.facts import Dialect
from combos.wire.translate import ADAPTERS, Unsupported
from combos.wire.translate.errors import KINDS
from combos.wire.translate.fields import FIELDS, REFUSED
from combos.wire.translate.ir import Reason
from combos.wire.translate.profile import MODELS
from combos.wire.translate.tokens import REASONS_OUT
from combos.wire.translate.toolset import DROPPED_TOOLS
from translations import DIALECTS, Json, translate

MANUAL = Path(__file__).parents[3] / "docs" / "translation.md"
R, C, M, G = DIALECTS
HI = {"role": "user", "content": "Hi"}
PNG, PDF, URL = "data:image/png;base64,AA==", "data:application/pdf;base64,AA==", "https://example.invalid/x"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(text: str) -> str:
    return f"`{text}`" if text else "–"


def field_tables() -> Iterator[str]:
    """Per client: each field it has, and what becomes of it at each target."""
    for client in DIALECTS:
        targets = [target for target in DIALECTS if target is not client]
        rows = []
        for row in FIELDS:
            if client in row.spelling:
                note = f" (flag `{row.flag}`)" if row.flag else ""
                cells = [code(row.spelling[t]) + note if t in row.carried else "dropped" for t in targets]
                rows.append([code(row.spelling[client]), *cells])
        yield table([f"{client.value} client", *(f"to {target.value}" for target in targets)], rows)


def user(part: Json) -> Json:
    return {"role": "user", "content": [part]}


def result(output: object) -> list[Json]:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    return [HI, call, {"type": "function_call_output", "call_id": "c", "output": output}]


def anthropic(*content: Json, **members: object) -> Json:
    return {"max_tokens": 9, "messages": [{"role": "user", "content": list(content)}], **members}


def anthropic_result(**members: object) -> Json:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", **members}]}
    return {"max_tokens": 9, "messages": [HI, call, answer]}


def block(kind: str, source: str, **members: object) -> Json:
    return {"type": kind, "source": {"type": source, **members}}


PNG_BLOCK = block("image", "base64", media_type="image/png", data="AA==")
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /x/"}
SPACE = {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "f"}]}

# What is said, by client; and what stands in a target's body when it is said in the target's own way.
CONTENT: list[tuple[str, dict[Dialect, Json], dict[Dialect, str]]] = [
    (
        "image inline",
        {
            R: {"input": [user({"type": "input_image", "image_url": PNG})]},
            C: {"messages": [user({"type": "image_url", "image_url": {"url": PNG}})]},
            M: anthropic(PNG_BLOCK),
            G: {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]}]},
        },
        {R: "input_image", C: "image_url", M: '"base64"', G: "inlineData"},
    ),
    (
        "image by address",
        {
            R: {"input": [user({"type": "input_image", "image_url": URL})]},
            C: {"messages": [user({"type": "image_url", "image_url": {"url": URL}})]},
            M: anthropic(block("image", "url", url=URL)),
        },
        {R: URL, C: URL, M: URL},
    ),
    (
        "PDF inline",
        {
            R: {"input": [user({"type": "input_file", "file_data": PDF})]},
            C: {"messages": [user({"type": "file", "file": {"file_data": PDF}})]},
            M: anthropic(block("document", "base64", media_type="application/pdf", data="AA==")),
            G: {"contents": [{"parts": [{"inlineData": {"mimeType": "application/pdf", "data": "AA=="}}]}]},
        },
        {R: "input_file", C: "file_data", M: "document", G: "inlineData"},
    ),
    (
        "PDF by address",
        {
            R: {"input": [user({"type": "input_file", "file_url": URL})]},
            M: anthropic(block("document", "url", url=URL)),
        },
        {R: "file_url", M: "document"},
    ),
    (
        "file by provider id",
        {
            R: {"input": [user({"type": "input_file", "file_id": "f"})]},
            C: {"messages": [user({"type": "file", "file": {"file_id": "f"}})]},
            M: anthropic(block("document", "file", file_id="f")),
            G: {"contents": [{"parts": [{"fileData": {"fileUri": "f"}}]}]},
        },
        {},
    ),
    (
        "audio",
        {
            R: {"input": [user({"type": "input_audio"})]},
            C: {"messages": [user({"type": "input_audio"})]},
            G: {"contents": [{"parts": [{"inlineData": {"mimeType": "audio/wav", "data": ""}}]}]},
        },
        {},
    ),
    (
        "image in a tool result",
        {
            R: {"input": result([{"type": "input_image", "image_url": PNG}])},
            M: anthropic_result(content=[PNG_BLOCK]),
        },
        {R: '"output":[', M: '"content":[{"type":"image"'},
    ),
    (
        "failed tool result",
        {M: anthropic_result(content="no", is_error=True)},
        {},
    ),
    (
        "system text in the middle",
        {
            R: {"input": [HI, {"role": "developer", "content": "S"}]},
            C: {"messages": [HI, {"role": "system", "content": "S"}]},
            M: {"max_tokens": 9, "messages": [HI, {"role": "system", "content": "S"}]},
        },
        {R: '"role":"developer"', C: '"role":"system"', M: '"role":"system"'},
    ),
    (
        "refusal in the history",
        {
            R: {"input": [HI, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]}]},
            C: {"messages": [HI, {"role": "assistant", "refusal": "No"}]},
        },
        {R: '"refusal":"No"', C: '"refusal":"No"'},
    ),
    (
        "freeform tool",
        {
            R: {"input": [HI], "tools": [{"type": "custom", "name": "p", "format": GRAMMAR}]},
            C: {"messages": [HI], "tools": [{"type": "custom", "custom": {"name": "p"}}]},
        },
        {R: '"custom"', C: '"custom"'},
    ),
    ("namespaced tool", {R: {"input": [HI], "tools": [SPACE]}}, {}),
    (
        "hosted search",
        {
            R: {"input": [HI], "tools": [{"type": "web_search"}]},
            C: {"messages": [HI], "web_search_options": {}},
            M: {"max_tokens": 9, "messages": [HI], "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            G: {"contents": [], "tools": [{"googleSearch": {}}]},
        },
        {},
    ),
    (
        "hosted code, files, computer",
        {
            R: {"input": [HI], "tools": [{"type": "code_interpreter"}]},
            M: {"max_tokens": 9, "messages": [HI], "tools": [{"type": "bash_20250124", "name": "bash"}]},
            G: {"contents": [], "tools": [{"codeExecution": {}}]},
        },
        {},
    ),
    (
        "state kept at the provider",
        {
            R: {"input": [HI], "previous_response_id": "r"},
            M: {"max_tokens": 9, "messages": [HI], "container": "c"},
            G: {"contents": [], "cachedContent": "c"},
        },
        {},
    ),
    (
        "several answers",
        {C: {"messages": [HI], "n": 2}, G: {"contents": [], "generationConfig": {"candidateCount": 2}}},
        {},
    ),
]


def fate(sample: Json, client: Dialect, target: Dialect, native: str | None) -> str:
    """What the code does with a sample."""
    try:
        translated = translate(sample, client, target)
    except Unsupported:
        return "refused"
    if translated.dropped:
        return "dropped"
    return "carried" if native is not None and native in translated.body.decode() else "converted"


def content_tables() -> Iterator[str]:
    for client in DIALECTS:
        targets = [target for target in DIALECTS if target is not client]
        rows = [
            [label, *(fate(samples[client], client, target, native.get(target)) for target in targets)]
            for label, samples, native in CONTENT
            if client in samples
        ]
        yield table([f"{client.value} client", *(f"to {target.value}" for target in targets)], rows)


def refused_table() -> str:
    rows = [[client.value, ", ".join(code(name) for name in REFUSED[client])] for client in DIALECTS]
    return table(["client", "refused when set"], rows)


def hosted_table() -> str:
    rows = [[client.value, ", ".join(code(f"{name}*") for name in DROPPED_TOOLS[client]) or "–"] for client in DIALECTS]
    return table(["client", "hosted tools that are dropped"], rows)


def reason_table() -> str:
    rows = [[reason.value, *(code(REASONS_OUT[dialect][reason]) for dialect in DIALECTS)] for reason in Reason]
    return table(["end of the answer", *(f"{dialect.value} client" for dialect in DIALECTS)], rows)


def error_table() -> str:
    rows = [
        [
            kind.name,
            str(kind.status),
            code(kind.type),
            code(kind.code or ""),
            code(kind.anthropic) + (f" ({kind.anthropic_status})" if kind.anthropic_status else ""),
            code(kind.gemini),
        ]
        for kind in KINDS
    ]
    return table(["kind", "status", "OpenAI type", "OpenAI code", "Messages type", "Gemini status"], rows)


def adapter_table() -> str:
    rows = [
        [code(name), dialect.value, ", ".join(code(f"{flag}={value}") for flag, value in flags.items()) or "–"]
        for name, (dialect, flags) in ADAPTERS.items()
    ]
    return table(["adapter", "dialect", "flags"], rows)


def model_table() -> str:
    rows = [
        [name, dialect.value, ", ".join(code(f"{flag}={value}") for flag, value in flags.items())]
        for name, dialect, _pattern, flags in MODELS
    ]
    return table(["model family", "dialect", "flags"], rows)


TABLES = [
    *field_tables(),
    *content_tables(),
    refused_table(),
    hosted_table(),
    reason_table(),
    error_table(),
    adapter_table(),
    model_table(),
]


@pytest.mark.parametrize("text", TABLES, ids=lambda text: text.partition("\n")[0])
def test_the_manual_holds_the_table(text: str) -> None:
    assert text in MANUAL.read_text()


def test_the_manual_holds_no_other_table() -> None:
    lines = [line for line in MANUAL.read_text().splitlines() if line.startswith("|")]
    assert sorted(lines) == sorted(line for text in TABLES for line in text.splitlines())


def test_every_content_sample_has_a_fate_of_its_own() -> None:
    """The samples are told apart: all four fates occur."""
    seen = {cell for text in content_tables() for line in text.splitlines()[2:] for cell in line.split(" | ")[1:]}
    assert {cell.removesuffix(" |") for cell in seen} == {"carried", "converted", "dropped", "refused"}
