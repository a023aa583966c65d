"""Writes the answer of a summarising turn as the compaction a Codex client asked for.

A summary that failed, was cut off or is empty becomes a failure, never an empty history.
"""

from combos.wire.translate import compaction
from combos.wire.translate.context import Context, Mint
from combos.wire.translate.ir import Delta, Event, Failure, Finish, Kind, Open, Reason, Start
from combos.wire.translate.responses_stream_out import Writer as ResponsesWriter
from combos.wire.translate.shape import Json
from combos.wire.translate.stage import AnswerError, Block

_NO_SUMMARY = Failure("server_error", "server_error", "The target made no usable summary of the conversation.")
_WHOLE = (Reason.STOP, Reason.TOOL_CALLS)


class Writer(ResponsesWriter):
    """One streamed compaction: no text is shown, one item carries the summary."""

    def __init__(self, context: Context, mint: Mint) -> None:
        super().__init__(context, mint)
        self._texts: set[object] = set()
        self._summary: list[str] = []

    def on(self, event: Event) -> bytes:
        """The bytes of one event."""
        match event:
            case Start() | Failure():
                return super().on(event)
            case Open() if event.kind is Kind.TEXT:
                self._texts.add(event.key)
            case Delta() if event.key in self._texts:
                self._summary.append(event.text)
            case Finish():
                return self._end(event)
            case _:
                pass
        return b""

    def _end(self, event: Finish) -> bytes:
        summary = "".join(self._summary)
        if event.reason not in _WHOLE or not summary.strip():
            return super().on(_NO_SUMMARY)
        item = compaction.item(summary, self._mint("cmp_"))
        out = self._send("response.output_item.added", output_index=0, item=item)
        out += self._send("response.output_item.done", output_index=0, item=item)
        self._output[0] = item
        return out + super().on(Finish(Reason.STOP, event.usage))


def whole(blocks: list[Block], finish: Finish, context: Context) -> Json:
    """The answer of `/responses/compact`. Raises AnswerError without a usable summary."""
    summary = "".join(block.text for block in blocks if block.kind is Kind.TEXT)
    if finish.reason not in _WHOLE or not summary.strip():
        raise AnswerError(_NO_SUMMARY)
    return compaction.history(list(context.recent), summary)


def native(items: list[Json], context: Context) -> Json | None:
    """The answer of `/responses/compact` around an item that the target made itself; None when it made none."""
    made = [item for item in items if item.get("type") == "compaction"]
    return {"output": [*context.recent, made[0]]} if len(made) == 1 else None
