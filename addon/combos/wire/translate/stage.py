"""Between a reader and a writer: gives calls the client's names and forms, fixes the finish, bounds what is held.

It knows the catalog of the request and which forms of calls the client's dialect has; no wire format.
"""

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from combos.core.facts import Dialect
from combos.wire.translate import toolset
from combos.wire.translate.context import Context, Mint
from combos.wire.translate.ir import CallMeta, Close, Delta, Event, Failure, Finish, Kind, Opaque, Open, Reason, Start

MAX_HELD = 32 * 1024 * 1024
"""Characters of one answer that may wait in memory for a block to close."""

_UNDECLARED = "The target called a tool that the request does not offer."
# A call that names no tool: the client answers that there is no such tool, and the conversation stays one that every
# vendor accepts. An empty name in it would be refused from then on.
_UNNAMED = "unnamed_tool"
_FOREIGN_IN_ID = re.compile(r"[^A-Za-z0-9_-]")


class AnswerError(Exception):
    """A target's answer cannot become an answer of the client's dialect. `status` is what HTTP should say."""

    def __init__(self, failure: Failure, status: int = 502) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.status = status


class Budget:
    """Counts held characters. Raises AnswerError beyond the bound."""

    def __init__(self, limit: int = MAX_HELD) -> None:
        self._left = limit

    def take(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise AnswerError(Failure("server_error", "server_error", "The answer holds too much at once."))

    def give_back(self, characters: int) -> None:
        self._left += characters


@dataclass(slots=True)
class _Held:
    """Argument deltas of a call whose form changes at its end."""

    wrap: bool
    text: list[str] = field(default_factory=list)


class Stage:
    """One answer on its way. `mint` makes identifiers for calls that came without one."""

    def __init__(self, context: Context, mint: Mint, budget: Budget) -> None:
        self._context = context
        self._mint = mint
        self._budget = budget
        self._held: dict[Hashable, _Held] = {}
        self._started = False
        self._called = False
        self._spoken = False
        self.finished = False

    def passing(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events as the client's dialect means them; one Start first, nothing after the end."""
        for event in events:
            if self.finished:
                return
            if isinstance(event, Start):
                if self._started:
                    continue
                self._started = True
            elif not self._started:
                self._started = True
                yield Start("")
            yield from self._one(event)

    def _one(self, event: Event) -> Iterator[Event]:
        match event:
            case Delta() if event.key in self._held:
                self._budget.take(len(event.text))
                self._held[event.key].text.append(event.text)
            case Open() if self._is_undeclared(event):
                raise AnswerError(Failure("undeclared_tool_call", "server_error", _UNDECLARED))
            case Open() if event.call is not None:
                self._called = True
                yield Open(event.key, event.kind, self._named(event.key, event.call))
            case Close() if event.key in self._held:
                yield from self._release(event)
            case Finish():
                self.finished = True
                yield self._finish(event)
            case Failure():
                self.finished = True
                yield event
            case _:
                yield event

    def _is_undeclared(self, event: Open) -> bool:
        """Whether an answer that may call declared tools only begins with another one; thoughts do not count."""
        if not self._context.declared_only or self._spoken or event.kind is Kind.REASONING:
            return False
        self._spoken = True
        return event.call is not None and self._context.catalog.find(event.call.name, event.call.namespace) is None

    def _named(self, key: Hashable, call: CallMeta) -> CallMeta:
        tool = self._context.catalog.find(call.name, call.namespace)
        native = call.freeform
        if tool is not None:
            freeform, name, namespace = tool.freeform, tool.name, tool.namespace
        else:
            freeform, name, namespace = native, self._undeclared_name(call), call.namespace
        freeform = freeform and self._takes_freeform(declared=tool is not None and tool.freeform)
        if native is not freeform:
            self._held[key] = _Held(wrap=native)
        return CallMeta(self._id(call.id), name, namespace, freeform)

    def _undeclared_name(self, call: CallMeta) -> str:
        """Only Responses clients know namespaces."""
        if self._context.client is Dialect.RESPONSES or not call.namespace:
            return call.name or _UNNAMED
        return toolset.plain_name(call.namespace, call.name)

    def _takes_freeform(self, *, declared: bool) -> bool:
        """Chat libraries know only function calls unless the client itself declared the custom tool."""
        client = self._context.client
        return client is Dialect.RESPONSES or (client is Dialect.CHAT and declared)

    def _id(self, call_id: str) -> str:
        if not call_id:
            return self._mint("call_", 16)
        return _FOREIGN_IN_ID.sub("_", call_id) if self._context.client is Dialect.MESSAGES else call_id

    def _release(self, event: Close) -> Iterator[Event]:
        held = self._held.pop(event.key)
        text = "".join(held.text)
        self._budget.give_back(len(text))
        text = toolset.wrap_freeform(text) if held.wrap else toolset.unwrap_freeform(text)
        if text:
            yield Delta(event.key, text)
        yield event

    def _finish(self, event: Finish) -> Finish:
        if self._called and event.reason is Reason.STOP:
            return Finish(Reason.TOOL_CALLS, event.usage, event.detail)
        return event


@dataclass(slots=True)
class Block:
    """A whole block of an answer."""

    kind: Kind
    call: CallMeta | None = None
    text: str = ""
    opaque: Opaque | None = None


def collect(events: Iterable[Event]) -> tuple[list[Block], Finish]:
    """The blocks of a whole answer in opening order. Raises AnswerError when it did not end well."""
    blocks: dict[Hashable, Block] = {}
    texts: dict[Hashable, list[str]] = {}
    finish: Finish | None = None
    for event in events:
        match event:
            case Open():
                blocks[event.key] = Block(event.kind, event.call)
                texts[event.key] = []
            case Delta():
                texts[event.key].append(event.text)
            case Close():
                blocks[event.key].opaque = event.opaque
            case Finish():
                finish = event
            case Failure():
                raise AnswerError(event, event.status if event.status and event.status >= 400 else 502)
            case Start():
                pass
    if finish is None:
        raise AnswerError(Failure("server_error", "server_error", "The answer has no end."))
    for key, block in blocks.items():
        block.text = "".join(texts[key])
    return list(blocks.values()), finish
