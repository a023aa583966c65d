"""A request's conversation as a flat list of items, whatever dialect it is in: messages, tool calls, tool outputs.

Items hold references into the parsed request and no text of their own; texts are joined only when somebody asks. Of a
tool call nothing but its name can be read, of other items (reasoning, system prompts) nothing at all.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.wire.request import RequestFacts


class Kind(StrEnum):
    """What an item is."""

    USER = "user"
    ASSISTANT = "assistant"
    CALL = "call"
    OUTPUT = "output"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Item:
    """One item. `content` is a message's or tool output's raw content, `call_id` ties outputs to calls."""

    kind: Kind
    content: object = None
    call_id: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """The text of a message."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(_text_parts(self.content))

    @property
    def output(self) -> str:
        """The text of a tool output."""
        parts = self.content if isinstance(self.content, list) else [self.content]
        return "\n".join(text for part in parts if (text := _output_text(part)) is not None)

    @property
    def has_image(self) -> bool:
        """Whether an image stands in the content."""
        return isinstance(self.content, list) and any(_is_image(part) for part in self.content)


_TEXT_TYPES = ("input_text", "output_text", "text")
_IMAGE_TYPES = ("input_image", "image_url", "image")
_OUTPUT_FIELDS = ("text", "output", "content")

type _Node = Mapping[str, object]


def items_of(facts: RequestFacts) -> list[Item]:
    """The items of a request, oldest first. A Responses `input` that is a text is one message."""
    match facts.dialect:
        case Dialect.RESPONSES:
            conversation = facts.document.get("input")
            if isinstance(conversation, str):
                return [Item(Kind.USER, conversation)]
            return [_responses_item(node) for node in _nodes(conversation)]
        case Dialect.CHAT:
            return [item for node in _nodes(facts.document.get("messages")) for item in _chat_items(node)]
        case Dialect.MESSAGES:
            return [item for node in _nodes(facts.document.get("messages")) for item in _messages_items(node)]
        case Dialect.GEMINI:
            return [item for node in _nodes(facts.document.get("contents")) for item in _gemini_items(node)]


def _nodes(value: object) -> Iterator[_Node]:
    for node in value if isinstance(value, list) else ():
        yield node if isinstance(node, Mapping) else {}


def _text_parts(content: object) -> Iterator[str]:
    for part in _nodes(content):
        text = part.get("text")
        if part.get("type") in _TEXT_TYPES and isinstance(text, str):
            yield text


def _output_text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return None
    return next((text for name in _OUTPUT_FIELDS if isinstance(text := part.get(name), str)), None)


def _is_image(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in _IMAGE_TYPES


def _word(node: _Node, name: str) -> str | None:
    value = node.get(name)
    return value if isinstance(value, str) else None


def _role_item(node: _Node) -> Item:
    match node.get("role"):
        case "user":
            return Item(Kind.USER, node.get("content"))
        case "assistant":
            return Item(Kind.ASSISTANT, node.get("content"))
        case _:
            return Item(Kind.OTHER, node.get("content"))


# -- Responses


def _responses_item(node: _Node) -> Item:
    kind = node.get("type", "message")
    if kind == "message":
        return _role_item(node)
    if isinstance(kind, str) and kind.endswith("_output"):
        return Item(Kind.OUTPUT, node.get("output"), _word(node, "call_id"))
    if isinstance(kind, str) and kind.endswith("_call"):
        return Item(Kind.CALL, None, _word(node, "call_id"), _word(node, "name"))
    return Item(Kind.OTHER)


# -- Chat Completions


def _chat_items(node: _Node) -> Iterator[Item]:
    if node.get("role") == "tool":
        yield Item(Kind.OUTPUT, node.get("content"), _word(node, "tool_call_id"))
        return
    calls = list(_nodes(node.get("tool_calls")))
    if not calls or node.get("content"):
        yield _role_item(node)
    for call in calls:
        function = call.get("function", call.get("custom"))
        name = _word(function, "name") if isinstance(function, Mapping) else None
        yield Item(Kind.CALL, None, _word(call, "id"), name)


# -- Messages


def _messages_items(node: _Node) -> Iterator[Item]:
    """The message without its tool blocks, then one item per tool block: a turn that answers a tool ends with that
    answer, whatever text the client put beside it."""
    content = node.get("content")
    if not isinstance(content, list):
        yield _role_item(node)
        return
    tools = [item for block in _nodes(content) if (item := _tool_item(block)) is not None]
    rest = [block for block in content if not isinstance(block, Mapping) or _tool_item(block) is None]
    if rest or not tools:
        yield _role_item({**node, "content": rest})
    yield from tools


def _tool_item(block: _Node) -> Item | None:
    match block.get("type"):
        case "tool_result":
            return Item(Kind.OUTPUT, block.get("content"), _word(block, "tool_use_id"))
        case "tool_use":
            return Item(Kind.CALL, None, _word(block, "id"), _word(block, "name"))
        case _:
            return None


# -- Gemini


def _gemini_items(node: _Node) -> Iterator[Item]:
    """As for Messages. An answer to a tool names the tool itself; thoughts are no text."""
    parts = list(_nodes(node.get("parts")))
    tools = [item for part in parts if (item := _function_item(part)) is not None]
    shown = [block for part in parts if (block := _gemini_block(part)) is not None]
    if shown or not tools:
        role = node.get("role", "user")
        yield Item(_GEMINI_ROLES.get(role, Kind.OTHER) if isinstance(role, str) else Kind.OTHER, shown)
    yield from tools


_GEMINI_ROLES = {"user": Kind.USER, "model": Kind.ASSISTANT}


def _function_item(part: _Node) -> Item | None:
    call, answer = _field(part, "functionCall", "function_call"), _field(part, "functionResponse", "function_response")
    if isinstance(call, Mapping):
        return Item(Kind.CALL, None, _word(call, "id"), _word(call, "name"))
    if isinstance(answer, Mapping):
        given = answer.get("response")
        result = given.get("result", given) if isinstance(given, Mapping) else given
        return Item(Kind.OUTPUT, result, _word(answer, "id"), _word(answer, "name"))
    return None


def _gemini_block(part: _Node) -> dict[str, object] | None:
    """A part in the form that the other dialects have."""
    text = part.get("text")
    if isinstance(text, str) and not part.get("thought"):
        return {"type": "text", "text": text}
    media = _field(part, "inlineData", "inline_data", "fileData", "file_data")
    kind = _field(media, "mimeType", "mime_type") if isinstance(media, Mapping) else None
    return {"type": "image"} if isinstance(kind, str) and kind.startswith("image/") else None


def _field(node: _Node, *names: str) -> object:
    """A field in one of its spellings."""
    return next((node[name] for name in names if name in node), None)
