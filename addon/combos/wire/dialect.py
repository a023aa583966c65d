"""One door to the dialects: the inspector of a stream and the reading of a whole answer."""

from combos.core.facts import Dialect
from combos.wire.chat import ChatInspector
from combos.wire.gemini import GeminiInspector
from combos.wire.inspector import StreamInspector
from combos.wire.messages import MessagesInspector
from combos.wire.responses import ResponsesInspector
from combos.wire.terminal import FailureTerminal, SuccessTerminal, Terminal
from combos.wire.whole import WholeAnswer, whole_answer

__all__ = [
    "FailureTerminal",
    "StreamInspector",
    "SuccessTerminal",
    "Terminal",
    "WholeAnswer",
    "inspector",
    "whole_answer",
]

_INSPECTORS: dict[Dialect, type[StreamInspector]] = {
    Dialect.RESPONSES: ResponsesInspector,
    Dialect.CHAT: ChatInspector,
    Dialect.MESSAGES: MessagesInspector,
    Dialect.GEMINI: GeminiInspector,
}


def inspector(dialect: Dialect) -> StreamInspector:
    """A fresh inspector for one streamed answer of a dialect."""
    return _INSPECTORS[dialect]()
