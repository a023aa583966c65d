"""Replays the failure rules over flows from a file: per attempt, which rule fires and what would happen today.

A program of its own (`python -m combos.mitm.recorded`), so that the command line needs no mitmproxy to be imported: it
reads a file that `mitmdump -w` or mitmweb wrote, and the configuration as it is now. Nothing is sent anywhere.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mitmproxy.exceptions import FlowReadException
from mitmproxy.http import HTTPFlow
from mitmproxy.io import FlowReader

from combos.admin.live_config import Change, LiveConfig
from combos.core.facts import Now
from combos.core.registry import Combo, Registry
from combos.core.values import dataclass
from combos.mitm.attempt_flows import is_attempt_record
from combos.mitm.judge import Judgement, dialect_of, judge

DONE, REFUSED = 0, 1


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt, or a request that was none of a combo's. `recorded_rule` is the rule at that time, None when it is
    not on record; `then` is what would happen today."""

    flow: str
    request: str | None
    combo: str | None
    attempt: int | None
    target: str
    seen: str
    rule: str | None
    action: str
    cooldown_ms: int | None
    cooldown_source: str | None
    recorded_rule: str | None
    then: str

    @property
    def has_changed(self) -> bool:
        """Whether another rule decides today."""
        return self.rule is not None and self.recorded_rule is not None and self.recorded_rule != self.rule


def read(path: Path) -> tuple[list[HTTPFlow], str | None]:
    """The HTTP flows of a file, and what ended them before the file did: one that is still written, or was when its
    writer died, ends in half a flow. Raises `OSError`, and `FlowReadException` when there is no flow in it at all.
    """
    flows, some = [], False
    with path.open("rb") as file:
        try:
            for flow in FlowReader(file).stream():
                some = True
                if isinstance(flow, HTTPFlow):
                    flows.append(flow)
        except Exception as error:  # the reader trusts what it reads: the bytes may make it raise anything
            if not some:
                raise FlowReadException(_what_broke(error)) from error
            return flows, _what_broke(error)
    return flows, None


def _what_broke(error: Exception) -> str:
    return str(error) if isinstance(error, FlowReadException) else "Invalid data format."


def rows(flows: Sequence[HTTPFlow], registry: Registry) -> Iterator[Row]:
    """Every attempt, in the order of the file; the attempts of a request that are no flows stand where it stands."""
    clients = {flow.id: flow for flow in flows if "attempts" in _noted(flow)}
    kept = {_place(flow) for flow in flows}
    for flow in flows:
        place = _place(flow)
        if place is not None:
            client, number = clients.get(place[0]), place[1]
            yield _attempt(flow, client, number, str(_noted(flow).get("target")), registry)
        elif flow.id in clients:
            yield from _without_flow(flow, kept, registry)
        elif dialect_of(flow) is not None:
            judgement = judge(flow, _time_of(flow))
            yield _row(flow, None, None, flow.request.pretty_host, judgement, None, _alone(judgement))


def _noted(flow: HTTPFlow) -> dict[str, Any]:
    """What Combos noted at a flow; empty when there is nothing, or nothing that it would have written."""
    seen = flow.metadata.get("combos")
    return seen if isinstance(seen, dict) else {}


def _attempts(flow: HTTPFlow | None) -> list[Mapping[str, Any]]:
    """The attempts that a request's own flow knows, in order."""
    listed = _noted(flow).get("attempts") if flow is not None else None
    return [one if isinstance(one, dict) else {} for one in listed] if isinstance(listed, list) else []


def _place(flow: HTTPFlow) -> tuple[str, int] | None:
    """The request that an attempt belongs to, and its number from 1 on; None for other flows."""
    seen = _noted(flow)
    number = seen.get("attempt")
    if not is_attempt_record(seen) or not isinstance(number, int) or number < 1:
        return None
    return str(seen["client_flow"]), number


def _without_flow(client: HTTPFlow, kept: set[tuple[str, int] | None], registry: Registry) -> Iterator[Row]:
    """The attempts that only the request's own flow knows: the last one's answer is what the client got."""
    attempts = _attempts(client)
    for number, seen in enumerate(attempts, 1):
        if (client.id, number) in kept:
            continue
        if number == len(attempts):
            yield _attempt(client, client, number, str(seen.get("target")), registry)
        else:
            lost, rule = Judgement(str(seen.get("status") or seen.get("result"))), _text(seen.get("rule"))
            yield _row(client, client, number, str(seen.get("target")), lost, rule, "its answer was not kept")


def _attempt(flow: HTTPFlow, client: HTTPFlow | None, number: int, target: str, registry: Registry) -> Row:
    name = _combo_of(client)
    combo = registry.combos.get(name or "")
    judgement = judge(flow, _time_of(flow), combo.config.cooldown_ms if combo is not None else None)
    attempts = _attempts(client)
    recorded = _text(attempts[number - 1].get("rule")) if number <= len(attempts) else None
    tried = [str(one.get("target")) for one in attempts[:number]] or [target]
    return _row(flow, client, number, target, judgement, recorded, _then(judgement, combo, tried, name))


def _combo_of(client: HTTPFlow | None) -> str | None:
    return None if client is None else _text(_noted(client).get("combo"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _row(
    flow: HTTPFlow,
    client: HTTPFlow | None,
    number: int | None,
    target: str,
    judgement: Judgement,
    recorded: str | None,
    then: str,
) -> Row:
    cooldown, verdict = judgement.cooldown, judgement.verdict
    return Row(
        flow=flow.id,
        request=None if client is None else client.id,
        combo=_combo_of(client),
        attempt=number,
        target=target,
        seen=judgement.seen,
        rule=None if verdict is None else verdict.rule,
        action=judgement.action,
        cooldown_ms=None if cooldown is None else cooldown.ms,
        cooldown_source=None if cooldown is None else cooldown.source,
        recorded_rule=recorded,
        then=then,
    )


def _then(judgement: Judgement, combo: Combo | None, tried: Sequence[str], name: object) -> str:
    """What follows from the verdict with the combo as it is configured now."""
    if judgement.verdict is None:
        return "served"
    if not judgement.verdict.hop:
        return "the client gets this answer"
    if combo is None:
        return f"combo {name} is not configured any more" if name else "the next target would be asked"
    left = [target.key for target in combo.targets if target.key not in tried]
    return f"on to {left[0]}" if left else "no target is left"


def _alone(judgement: Judgement) -> str:
    if judgement.verdict is None:
        return "no combo request"
    return f"no combo request; in a combo: {'the next target is asked' if judgement.verdict.hop else 'stop'}"


def _time_of(flow: HTTPFlow) -> Now:
    """The moment of the answer: dates in its headers are meant for then."""
    start = flow.response.timestamp_start if flow.response is not None else flow.timestamp_start
    return Now(0, int((start or 0) * 1000))


def _line(row: Row) -> str:
    head = f"{row.flow[:8]}  {row.combo or '-'}  {f'attempt {row.attempt}' if row.attempt else 'request'}  {row.target}"
    if row.rule is None:
        return f"{head}  {row.seen}  {row.then}"
    rest = f"cooldown {row.cooldown_ms / 1000:g} s by {row.cooldown_source}" if row.cooldown_ms else "no cooldown"
    changed = f"  (then: {row.recorded_rule})" if row.has_changed else ""
    return f"{head}  {row.seen}  rule {row.rule}: {row.action}, {rest}{changed}  {row.then}"


def _registry(path: Path) -> Registry:
    """The configuration as it is now; an empty one without a file. Raises `ValueError` with its problems."""
    config = LiveConfig(path)
    if config.reload() is Change.INVALID:
        raise ValueError("\n".join([f"{path} cannot be used:", *map(str, config.problems)]))
    return config.registry


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line per attempt, or one JSON document. Exit code 1 when a file cannot be used."""
    parser = argparse.ArgumentParser(prog="ocx explain-flow")
    parser.add_argument("file", type=Path)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    try:
        flows, broken = read(asked.file)
        found = list(rows(flows, _registry(asked.config)))
    except (OSError, FlowReadException, ValueError) as error:
        shown = str(error) if type(error) is ValueError else f"{asked.file}: {error}"
        print(f"Error: {shown}", file=sys.stderr)
        return REFUSED
    try:
        _show(found, as_json=asked.json)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; the interpreter flushes once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if broken is None:
        return DONE
    print(f"Error: {asked.file}: {broken} What stood before that is shown.", file=sys.stderr)
    return REFUSED


def _show(found: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"attempts": [{**asdict(row), "changed": row.has_changed} for row in found]}))
    else:
        print("\n".join(map(_line, found)) or "No request for a model in this file.")


if __name__ == "__main__":
    sys.exit(main())
