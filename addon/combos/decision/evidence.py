"""The bounded evidence that a decision is made from: a task, the last step, two signals, the operator's notes.

Nothing else of a request is ever read: no headers, no tool arguments, no images, no reasoning, no older history.
"""

from collections.abc import Iterable, Mapping, Sequence

from combos.core.facts import Dialect
from combos.core.values import dataclass
from combos.decision.envelopes import clean
from combos.decision.transcript import Item, Kind, items_of
from combos.wire.request import RequestFacts

# Characters (code points); functional spec, "Shared limits, state, and statistics".
TASK_MAX = 500
TASK_HEAD = 320
TASK_GAP = "\n[...]\n"
ASSISTANT_MAX = 240
OUTPUT_MAX = 520
NAME_MAX = 160
# Items that the signals look at.
WINDOW = 6

type Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of the request. Texts are cleaned and clipped; an empty one says nothing."""

    task: str
    has_image: bool = False
    tool_history: bool = False
    step: str = "user_turn"
    tool_output: str = ""
    tool_name: str = ""
    previous_assistant: str = ""

    @property
    def is_enough(self) -> bool:
        """Whether there is anything to decide from: what an assistant or an operator said alone is not."""
        return bool(self.task or self.has_image or self.tool_output)

    def state(self, notes: Mapping[str, str]) -> Json:
        """The state as it is sent; `notes` by target key. Members that say nothing are left out, but for the task."""
        step: Json = {"type": self.step}
        if self.tool_output:
            step["last_tool_output_tail"] = self.tool_output
        if self.tool_name:
            step["tool_call"] = {"name": self.tool_name}
        signals = {"has_image": self.has_image, "tool_history": self.tool_history}
        state: Json = {"task": self.task, "signals": signals, "step": step}
        if self.previous_assistant:
            state["previous_assistant"] = self.previous_assistant
        if notes:
            state["operator_notes"] = dict(notes)
        return state


_STEPS = {Kind.OUTPUT: "tool_step", Kind.USER: "user_turn"}


def evidence_of(facts: RequestFacts) -> Evidence:
    """Read a request."""
    items = items_of(facts)
    last = items[-1] if items else Item(Kind.OTHER)
    recent = items[-WINDOW:]
    is_tool_step = last.kind is Kind.OUTPUT
    return Evidence(
        task=_clipped(_first(clean(item.text).task for item in _newest(items, Kind.USER))),
        has_image=any(_shows_image(item, facts) for item in recent),
        tool_history=any(item.kind is Kind.OUTPUT for item in recent),
        step=_STEPS.get(last.kind, "other"),
        tool_output=clean(last.output).visible[-OUTPUT_MAX:] if is_tool_step else "",
        tool_name=_tool_name(items, last) if is_tool_step else "",
        previous_assistant=_first(clean(item.text).visible for item in _newest(items, Kind.ASSISTANT))[-ASSISTANT_MAX:],
    )


def _newest(items: Sequence[Item], kind: Kind) -> Iterable[Item]:
    return (item for item in reversed(items) if item.kind is kind)


def _first(texts: Iterable[str]) -> str:
    return next((text for text in texts if text), "")


def _clipped(text: str) -> str:
    if len(text) <= TASK_MAX:
        return text
    return text[:TASK_HEAD] + TASK_GAP + text[TASK_HEAD + len(TASK_GAP) - TASK_MAX :]


def _shows_image(item: Item, facts: RequestFacts) -> bool:
    """Images count where the dialect's conversation shows them; in tool outputs only Messages does."""
    return item.has_image and (item.kind is not Kind.OUTPUT or facts.dialect is Dialect.MESSAGES)


def _tool_name(items: Sequence[Item], output: Item) -> str:
    """The name of the call that an output answers; where the dialect has it there, the output says it itself."""
    if output.name is not None:
        return output.name[:NAME_MAX]
    if output.call_id is None:
        return ""
    names = (item.name for item in _newest(items, Kind.CALL) if item.call_id == output.call_id)
    return (next(names, None) or "")[:NAME_MAX]
