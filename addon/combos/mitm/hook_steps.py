"""Who is called for a hook, in which order, and which neighbours can be left out at one look. Calls nobody."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from combos.core.values import dataclass
from combos.mitm.idle import Idlers, Left, idleness
from combos.mitm.internals import AddonManager, addon_chain, traverse


@dataclass(frozen=True, slots=True)
class Step:
    """One addon that handles the hook. Its handler is looked up when it is called: it may be replaced at any time."""

    addon: Any
    name: str
    left: Left | None
    is_ours: bool
    """Whether the handler belongs to this addon, which never changes who handles what."""
    following: int
    """Where the next addon of the chain begins: after a failure nothing else below the same one is called."""
    idlers: Idlers | None = None
    """On the first of several that may be left out: who is, up to the step `past`."""
    past: int = 0


type Steps = tuple[Step, ...]


def steps_of(manager: AddonManager, name: str) -> Steps | None:
    """The steps of a hook; None when one handler cannot be called, which mitmproxy has to judge itself."""
    steps: list[Step] = []
    for addon in addon_chain(manager):
        members = [each for each in traverse([addon]) if _may_handle(each, name)]
        if not all(callable(handler) for each in members if (handler := getattr(each, name))):
            return None
        following = len(steps) + len(members)
        steps += [Step(each, name, idleness(each, name), _is_ours(each, name), following) for each in members]
    return tuple(_with_idlers(steps, name))


def _may_handle(addon: object, name: str) -> bool:
    """Whether the addon has a handler, or a place of its own for one: what is put there later is not noticed."""
    return bool(getattr(addon, name, None)) or name in getattr(addon, "__dict__", ())


def has_coroutine(steps: Steps) -> bool:
    """Whether a handler must be awaited."""
    return any(inspect.iscoroutinefunction(getattr(step.addon, step.name, None)) for step in steps)


def _with_idlers(steps: Sequence[Step], name: str) -> Iterator[Step]:
    past = 0
    for place, step in enumerate(steps):
        if place < past or step.left is None:
            yield step
            continue
        past = next((n for n in range(place, len(steps)) if steps[n].left is None), len(steps))
        members = [each.left for each in steps[place:past] if each.left is not None]
        yield replace(step, idlers=Idlers(name, members), past=past)


def _is_ours(addon: object, name: str) -> bool:
    return type(addon).__module__.startswith("combos.") and name not in getattr(addon, "__dict__", ())
