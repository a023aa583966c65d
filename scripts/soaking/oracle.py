"""Whether what a client got agrees with what the providers did for it."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from answers import Speech
from asks import Ask
from heard import Answer, Heard, heard
from plans import Fate, Plan
from provider import Send
from reading import Said
from scene import Target

_SLOW_SHARE = 0.4
"""In a request that took this part of the time limit, any send may have been given up for it."""
_CONNECTING_S = 8
"""So long, and a target may have been given up before the request reached it: connecting has a limit of its own."""
_MARK = re.compile(r"<(r\d+\.[^:>]+):[\w-]+>")


@dataclass
class Case:
    """One request that is over. `cooling`: targets that must not, `doubtful`: those that need not be asked."""

    ask: Ask
    answer: Answer
    sends: list[Send]
    patience_s: float
    seconds: float
    cooling: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()
    heard: Heard = field(default_factory=Heard)

    def __post_init__(self) -> None:
        self.heard = heard(self.ask.dialect, self.answer)


def judge(case: Case) -> list[str]:
    """Everything that is wrong."""
    combo = case.ask.combo
    assert combo is not None
    if case.answer.hung:
        return ["no end of the answer in time"]
    found = [*case.answer.faults, *_credentials(case), *_mixtures(case)]
    if not case.answer.left:
        found += _silent(case)
    if found:
        return found
    return list(_strictly(case)) if combo.strict else list(_loosely(case))


def _credentials(case: Case) -> Iterator[str]:
    shown = bytes(case.answer.body) + repr(case.answer.fields).encode()
    if b"canary-" in shown:
        yield "the client was shown a credential"


def _mixtures(case: Case) -> Iterator[str]:
    """Text, thoughts or calls of two sends, or of somebody else's request."""
    makers = _makers(case)
    if len(makers) > 1:
        yield f"words of several: {sorted(makers)}"
    if any(not maker.startswith(f"r{case.ask.number}.") for maker in makers):
        yield f"words of another request: {sorted(makers)}"


def _makers(case: Case) -> set[str]:
    """Who said what the client heard."""
    return set(_MARK.findall(case.heard.said.everything))


def _silent(case: Case) -> Iterator[str]:
    if case.heard.ending == "silent":
        yield "the answer ends as if it were complete, and is not"
    if case.heard.ending == "none":
        yield f"no answer at all ({case.answer.reason})"


# -- requests whose way is known


def _strictly(case: Case) -> Iterator[str]:
    combo = case.ask.combo
    assert combo is not None
    by_target: dict[str, list[Send]] = {}
    for send in case.sends:
        by_target.setdefault(send.target, []).append(send)
    hopped: list[Send] = []
    gap = ""
    order = _order(combo.targets, case.sends)
    for number, target in enumerate(order):
        sends = by_target.pop(target.key, [])
        if target.key in case.cooling and sends:
            yield f"{target.key} was asked while it rested"
        if not sends:
            gap = gap or ("" if _may_be_skipped(case, target, hopped) else target.key)
            continue
        if gap:
            yield f"{gap} was not asked"
        last, wrong = _one_target(case, target, sends)
        yield from wrong
        after = [send for name in order[number + 1 :] for send in by_target.get(name.key, [])]
        if _went_on(case, last, after):
            hopped.append(last)
            continue
        yield from (f"{send.target} was asked although {last.target} had answered: {last.plan.name}" for send in after)
        yield from _owner(case, last)
        return
    if by_target:
        yield f"asked and no target of the combo: {sorted(by_target)}"
    if not case.answer.left:
        if gap:
            yield f"{gap} was not asked"
        yield from _exhausted(case, hopped)


def _order(targets: tuple[Target, ...], sends: list[Send]) -> list[Target]:
    """The order of the configuration; where a provider comes twice, a failure of it may put its other target off."""
    if len({target.provider for target in targets}) == len(targets):
        return list(targets)
    first = {send.target: send.begun for send in reversed(sends)}
    return sorted(targets, key=lambda target: first.get(target.key, float("inf")))


def _may_be_skipped(case: Case, target: Target, hopped: list[Send]) -> bool:
    siblings = any(send.target.partition("/")[0] == target.provider for send in hopped)
    return (
        case.seconds > _CONNECTING_S
        or not target.place.answers
        or target.key in case.cooling
        or target.key in case.doubtful
        or siblings
        or target.place.keys > 1
    )


def _one_target(case: Case, target: Target, sends: list[Send]) -> tuple[Send, list[str]]:
    """The send that counts, and what is wrong with the others: only dead connections and spent keys are replaced."""
    live = [send for send, following in zip(sends, [*sends[1:], None], strict=True) if not _replaced(send, following)]
    if not live:
        return sends[-1], [] if case.answer.left else [f"{target.key}: a dead connection was not replaced"]
    wrong = []
    if len({send.key for send in live}) < len(live):
        wrong.append(f"{target.key} was asked {len(live)} times: {[send.plan.name for send in live]}")
    wrong += [
        f"{target.key} was asked again after {send.plan.name} ({send.plan.status})"
        for send in live[:-1]
        if target.place.keys == 1 or send.plan.status not in (401, 429)
    ]
    return live[-1], wrong


def _replaced(send: Send, following: Send | None) -> bool:
    """Whether a pooled connection was closed without a byte, and the request sent once more."""
    quiet = send.stale or send.plan.name == "no answer"
    return send.reused and quiet and following is not None and not following.reused and following.key == send.key


def _slow(case: Case, send: Send) -> bool:
    return send.ended is None or case.seconds > case.patience_s * _SLOW_SHARE


def _went_on(case: Case, send: Send, after: list[Send]) -> bool:
    """Whether the next target had, or was free, to be asked after this send."""
    if send.plan.fate is Fate.HOP:
        return True
    if send.plan.fate is Fate.ANY or _slow(case, send):
        return bool(after)
    return False


def _owner(case: Case, send: Send) -> Iterator[str]:
    """The send whose answer the client has to have."""
    told, plan = case.heard, send.plan
    if plan.said is not None and (unlike := _unlike(told.said, plan.said)):
        yield f"not what {send.target} said ({plan.name}): {unlike}"
        return
    if case.answer.left:
        return
    if _slow(case, send) and told.ending in ("error", "cut"):
        return
    yield from _AS_TOLD[plan.fate](case, send)


def _unlike(told: Said, said: Speech) -> str:
    """Where what was heard is not the beginning of what was said; empty when it is."""
    for name, heard_, meant in (("text", told.text, said.text), ("thoughts", told.thoughts, said.thoughts)):
        if not meant.startswith(heard_):
            return f"{name} {heard_[:200]!r} for {meant[:200]!r}"
    if len(told.calls) > len(said.calls):
        return f"{len(told.calls)} calls for {len(said.calls)}"
    for (name, arguments), call in zip(told.calls, said.calls, strict=False):
        if name != call.name or not (call.arguments.startswith(arguments) or _same(arguments, call.arguments)):
            return f"call {name} {arguments!r} for {call.arguments!r}"
    return ""


def _same(arguments: str, said: str) -> bool:
    """Whether both are the same JSON: some dialects have objects in the place of the text."""
    try:
        return bool(json.loads(arguments) == json.loads(said))
    except ValueError:
        return False


def _is_all(told: Said, said: Speech) -> bool:
    return (
        (told.text, told.thoughts) == (said.text, said.thoughts)
        and len(told.calls) == len(said.calls)
        and all(_same(arguments, call.arguments) for (_, arguments), call in zip(told.calls, said.calls, strict=True))
    )


def _end(said: Said) -> str:
    """How it ends, for people to read."""
    calls = "".join(f" {name}({arguments})" for name, arguments in said.calls)
    return f"thoughts {said.thoughts[-40:]!r}, text {said.text[-80:]!r},{calls or ' no calls'}"


def _whole(case: Case, send: Send) -> Iterator[str]:
    told, plan = case.heard, send.plan
    if told.ending != "complete" or (plan.said is not None and not _is_all(told.said, plan.said)):
        yield f"{send.target} answered ({plan.name}), the client heard {told.ending}: {_end(told.said)}"
    if told.faults and not plan.repeats:
        yield f"{plan.name}: {told.faults}"


def _broken(case: Case, send: Send) -> Iterator[str]:
    if case.heard.ending not in ("error", "cut"):
        yield f"{send.target} broke ({send.plan.name}), the client heard {case.heard.ending}"


def _coherent(case: Case, send: Send) -> Iterator[str]:
    told, plan = case.heard, send.plan
    if told.ending == "complete" and plan.said is not None and not _is_all(told.said, plan.said):
        yield f"{plan.name}: a part of the answer ends as a whole one: {_end(told.said)}"


def _failure(case: Case, send: Send) -> Iterator[str]:
    told, answer = case.heard, case.answer
    if told.ending != "error" or _makers(case):
        yield f"{send.target} failed for good ({send.plan.name}), the client heard {told.ending} {_end(told.said)}"
    if answer.status >= 300 and told.faults and bytes(answer.body) != send.plan.raw:
        yield f"{send.plan.name}: {told.faults} {bytes(answer.body)[:200]!r}"


_AS_TOLD: dict[Fate, Callable[[Case, Send], Iterator[str]]] = {
    Fate.OK: _whole,
    Fate.CUT: _broken,
    Fate.STOP: _failure,
    Fate.HOP: _coherent,
    Fate.ANY: _coherent,
}


def _exhausted(case: Case, hopped: list[Send]) -> Iterator[str]:
    combo = case.ask.combo
    assert combo is not None
    # Those behind the last that was asked may have been passed over, or not been reached: then their failure counts.
    if hopped and (case.answer.status < 300 or _named(combo.targets[-1].key, hopped) is not None):
        yield from _failure(case, hopped[-1])
        return
    if case.heard.ending != "error" or case.answer.status < 300:
        yield f"no target was left, the client heard {case.heard.ending} ({case.answer.status})"
    reached = hopped or [target for target in combo.targets if not target.place.answers]
    if case.seconds > _CONNECTING_S or any(target.place.keys > 1 for target in combo.targets):
        return
    if not reached and case.answer.status != 503:
        yield f"nobody was asked, and the status is {case.answer.status}"


def _named(target: str, sends: list[Send]) -> Send | None:
    return next((send for send in sends if send.target == target), None)


# -- requests of shared combos


def _loosely(case: Case) -> Iterator[str]:
    """Whatever the way was: one answer of one send, or an error after failures alone."""
    told = case.heard
    hedged = "hedgeAfterMs" in (case.ask.combo.fields if case.ask.combo else {})
    live = [send for send in case.sends if not (send.reused and send.stale)]
    owners = [send for send in live if send.plan.fate in (Fate.OK, Fate.CUT, Fate.STOP) and not _slow(case, send)]
    if len(owners) > 1 and not _impatient(case) and not hedged:
        yield f"asked after an answer: {[(send.target, send.plan.name) for send in owners]}"
    makers = _makers(case)
    owner = next((send for send in live if send.plan.said is not None and send.plan.said.ident in makers), None)
    if makers and owner is None:
        yield f"nobody said {_end(told.said)}"
    elif owner is not None:
        yield from _owner(case, owner)
    elif told.ending == "complete" and not any(_may_say_nothing(send.plan) for send in live):
        yield "the client heard an answer that says nothing"


def _may_say_nothing(plan: Plan) -> bool:
    return plan.said is None or plan.said.is_empty or plan.fate is Fate.ANY


def _impatient(case: Case) -> bool:
    fields = case.ask.combo.fields if case.ask.combo else {}
    return "firstOutputTimeoutMs" in fields or "contextOverflow" in fields
