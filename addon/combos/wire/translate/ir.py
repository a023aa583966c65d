"""The intermediate form every dialect is read into and written from: a request, and the events of an answer.

It holds what all dialects can mean and nothing about how any of them spells it.
"""

from collections.abc import Hashable
from dataclasses import field
from enum import StrEnum

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.wire.translate.shape import Json


class Role(StrEnum):
    """Who speaks. Tool results are user parts; a system message here stands in the middle of a conversation."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(slots=True)
class Text:
    """Plain text."""

    text: str


@dataclass(slots=True)
class Refusal:
    """Text in which a model declined."""

    text: str


@dataclass(slots=True)
class Media:
    """An image or file: `data` is base64, or `url` is set. `where` names the part in the client's request."""

    image: bool
    where: str
    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str | None = None
    filename: str | None = None


@dataclass(slots=True)
class Opaque:
    """State that only the provider that made it can read.

    `origin` is the target key it came from ("" = the client's own dialect, minted by an unknown provider), `text` the
    exact thinking text that was signed, `place` where a Gemini signature sat: thought, text or call.
    """

    dialect: Dialect
    blob: str
    origin: str = ""
    item_id: str = ""
    redacted: bool = False
    text: str = ""
    place: str = ""


@dataclass(slots=True)
class Reasoning:
    """Reasoning of an earlier turn."""

    text: str
    opaque: Opaque | None = None


@dataclass(slots=True)
class Call:
    """A tool call. `arguments` is JSON text, or the plain input of a freeform tool."""

    id: str
    name: str
    arguments: str
    namespace: str | None = None
    freeform: bool = False


@dataclass(slots=True)
class Result:
    """The answer to a call."""

    call_id: str
    parts: list[Text | Media]
    is_error: bool = False
    freeform: bool = False


type Part = Text | Refusal | Media | Reasoning | Call | Result


@dataclass(slots=True)
class Message:
    """One turn of one role."""

    role: Role
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the client declared. `schema` is None for freeform tools, `format` their grammar in the Responses form."""

    name: str
    namespace: str | None = None
    description: str | None = None
    schema: Json | None = None
    strict: bool | None = None
    freeform: bool = False
    format: Json | None = None


class Mode(StrEnum):
    """How free the model is in calling tools."""

    AUTO = "auto"
    REQUIRED = "required"
    NONE = "none"
    NAMED = "named"


@dataclass(frozen=True, slots=True)
class Choice:
    """The tool choice; `names` is the one tool of NAMED, or the allowed subset of AUTO and REQUIRED (empty = all)."""

    mode: Mode
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """Structured output: a JSON schema, or any JSON object when `schema` is None."""

    schema: Json | None
    name: str | None = None
    strict: bool | None = None
    description: str | None = None


@dataclass(slots=True)
class Request:
    """A request in no dialect. `dropped` collects the client's names of what the target will not see."""

    system: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    choice: Choice | None = None
    parallel: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: list[str] = field(default_factory=list)
    schema: Schema | None = None
    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    cache_key: str | None = None
    user: str | None = None
    stream: bool = False
    include_usage: bool = False
    echo: Json = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)

    def add(self, role: Role, *parts: Part) -> None:
        """Append parts, to the last message when it has the same role."""
        if self.messages and self.messages[-1].role is role:
            self.messages[-1].parts.extend(parts)
        else:
            self.messages.append(Message(role, list(parts)))

    def add_system(self, text: str) -> None:
        """System text: leading text is set apart, text in the middle keeps its place."""
        if not text:
            return
        if self.messages:
            self.add(Role.SYSTEM, Text(text))
        else:
            self.system.append(text)


class Kind(StrEnum):
    """What a block of an answer holds."""

    TEXT = "text"
    REASONING = "reasoning"
    REFUSAL = "refusal"
    CALL = "call"


class Reason(StrEnum):
    """Why an answer ended well."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"


@dataclass(slots=True)
class Usage:
    """Tokens. `input` counts cached and cache-written ones, `output` counts reasoning."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(slots=True)
class CallMeta:
    """Identity of a call in an answer: the target's own names first, the client's after the catalog was asked."""

    id: str
    name: str
    namespace: str | None = None
    freeform: bool = False


@dataclass(slots=True)
class Start:
    """The answer began: identifier, and usage when it is known this early."""

    id: str
    usage: Usage | None = None


@dataclass(slots=True)
class Open:
    """A block began; `call` is set for calls only."""

    key: Hashable
    kind: Kind
    call: CallMeta | None = None


@dataclass(slots=True)
class Delta:
    """More text of a block."""

    key: Hashable
    text: str


@dataclass(slots=True)
class Close:
    """A block is whole."""

    key: Hashable
    opaque: Opaque | None = None


@dataclass(slots=True)
class Finish:
    """The answer is whole: every block was closed before. `detail` explains a refusal."""

    reason: Reason
    usage: Usage | None = None
    detail: str | None = None


@dataclass(slots=True)
class Failure:
    """The answer failed: what the target said of it."""

    code: str
    type: str
    message: str
    status: int | None = None


type Event = Start | Open | Delta | Close | Finish | Failure
