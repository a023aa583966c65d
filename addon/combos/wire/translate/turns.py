"""Puts a conversation in the order every API demands: turns alternate, each call is followed by exactly one result.

Client-side truncation breaks that order; nothing is invented but the words that say so.
"""

from collections import defaultdict, deque
from collections.abc import Iterator

from combos.wire.translate.ir import Call, Media, Message, Part, Reasoning, Refusal, Result, Role, Text

NO_RESULT = "[no result]"


def settle(messages: list[Message]) -> list[Message]:
    """The conversation with results right after their calls, orphans turned into text, and empty turns removed."""
    pending = _results_by_id(messages)
    settled: set[int] = set()
    taken: dict[str, int] = {}
    turns: list[Message] = []
    for message in _merged(messages):
        if message.role is Role.ASSISTANT:
            _append(turns, Role.ASSISTANT, _leftover(message.parts, settled))
            calls = [part for part in message.parts if isinstance(part, Call)]
            answers = [_claim(call, pending, settled) for call in calls]
            for call, (_position, result) in zip(calls, answers, strict=True):
                call.id = result.call_id = _told_apart(call.id, taken)
            if answers:
                turns.append(Message(Role.USER, list(_in_client_order(answers))))
        else:
            _append(turns, message.role, _leftover(message.parts, settled))
    return turns


def _results_by_id(messages: list[Message]) -> dict[str, deque[tuple[int, Result]]]:
    found: dict[str, deque[tuple[int, Result]]] = defaultdict(deque)
    results = (part for message in messages for part in message.parts if isinstance(part, Result))
    for position, result in enumerate(results):
        found[result.call_id].append((position, result))
    return found


def _claim(call: Call, pending: dict[str, deque[tuple[int, Result]]], settled: set[int]) -> tuple[int, Result]:
    queue = pending.get(call.id)
    while queue:
        position, result = queue.popleft()
        if id(result) not in settled:
            settled.add(id(result))
            result.freeform = call.freeform
            return position, result
    return 1 << 62, Result(call.id, [Text(NO_RESULT)], True, call.freeform)


def _told_apart(ident: str, taken: dict[str, int]) -> str:
    """An id of one call only: some servers number the calls of every turn from zero, some give none.

    Which call gets which id depends on the calls before it alone, so it stays the same over the turns. `taken` counts
    how often an id was wanted.
    """
    base = ident or "call"
    number = taken.get(base, 0) + 1
    made = base if number == 1 else f"{base}_{number}"
    while made in taken:
        number += 1
        made = f"{base}_{number}"
    taken[base] = number
    taken.setdefault(made, 1)
    return made


def _in_client_order(answers: list[tuple[int, Result]]) -> Iterator[Result]:
    return (result for _position, result in sorted(answers, key=lambda pair: pair[0]))


def _leftover(parts: list[Part], settled: set[int]) -> list[Part]:
    """What is left of a turn once its results went to their calls; results nobody asked for are said in words."""
    left: list[Part] = []
    for part in parts:
        if isinstance(part, Text):
            if part.text:
                left.append(part)
        elif not isinstance(part, Result):
            if not _is_empty(part):
                left.append(part)
        elif id(part) not in settled:
            settled.add(id(part))
            left += _as_text(part)
    return left


def _as_text(result: Result) -> Iterator[Text | Media]:
    text = "".join(part.text for part in result.parts if isinstance(part, Text))
    yield Text(f"[result of an earlier tool call]\n{text}")
    yield from (part for part in result.parts if isinstance(part, Media))


def _merged(messages: list[Message]) -> Iterator[Message]:
    """Adjacent messages of one role as one, results told apart from the system text between them."""
    current: Message | None = None
    for message in messages:
        if current is not None and current.role is message.role:
            current = Message(message.role, [*current.parts, *message.parts])
            continue
        if current is not None:
            yield current
        current = message
    if current is not None:
        yield current


def _append(turns: list[Message], role: Role, parts: list[Part]) -> None:
    if not parts:
        return
    if turns and turns[-1].role is role:
        turns[-1].parts.extend(parts)
    else:
        turns.append(Message(role, parts))


def _is_empty(part: Part) -> bool:
    if isinstance(part, Reasoning):
        return not part.text and part.opaque is None
    return isinstance(part, Refusal) and not part.text
