"""Takes machine context out of a text: what clients wrap in known tags is not what a person said.

One pass from left to right with a stack; the work is linear in the length of the text. It knows tags and nothing of
the meaning of what is between them.
"""

import re
from dataclasses import field

from combos.core.values import dataclass

GOAL = "codex_internal_context"
REMINDER = "system-reminder"
TAGS = (
    REMINDER,
    GOAL,
    "recommended_plugins",
    "environment_context",
    "skills_instructions",
    "plugins_instructions",
    "apps_instructions",
    "app-context",
    "collaboration_mode",
    "model_switch",
    "multi_agent_mode",
    "permissions instructions",
    "memory_instructions",
)

# Nothing between a tag's name and its `>` may be an angle bracket, so that no two attempts to match overlap.
_TOKEN = re.compile(r"<(/?)(" + "|".join(re.escape(tag) for tag in TAGS) + r")(?:\s[^<>]*)?>")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The text outside every envelope, trimmed, and the goal that stands in for it where that is empty."""

    visible: str
    goal: str

    @property
    def task(self) -> str:
        """What a person asked for, as far as the text says."""
        return self.visible or self.goal


@dataclass(slots=True)
class _Open:
    """An envelope that is open. `direct` collects the text right inside it; None where nobody asks for that."""

    tag: str
    direct: list[str] | None


@dataclass(slots=True)
class _Scan:
    visible: list[str] = field(default_factory=list)
    goal: str | None = None
    stack: list[_Open] = field(default_factory=list)
    depth: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TAGS, 0))

    def text(self, text: str) -> None:
        if not self.stack:
            self.visible.append(text)
        elif (direct := self.stack[-1].direct) is not None:
            direct.append(text)

    def open(self, tag: str) -> None:
        if not self.stack:
            self.visible.append("\n")
        wanted = tag == GOAL and self.goal is None and not self.depth[REMINDER]
        self.stack.append(_Open(tag, [] if wanted else None))
        self.depth[tag] += 1

    def close(self, tag: str) -> None:
        """End the innermost open envelope of this tag and all inside it; without one the token means nothing."""
        if not self.depth[tag]:
            return
        while True:
            ended = self.stack.pop()
            self.depth[ended.tag] -= 1
            if ended.tag == tag:
                break
        if self.goal is None and ended.direct is not None:
            self.goal = "".join(ended.direct).strip()


def clean(text: str) -> Cleaned:
    """Remove every known envelope. One that is never closed hides the rest of the text."""
    scan = _Scan()
    position = 0
    for token in _TOKEN.finditer(text):
        scan.text(text[position : token.start()])
        position = token.end()
        if token[1]:
            scan.close(token[2])
        else:
            scan.open(token[2])
    scan.text(text[position:])
    return Cleaned("".join(scan.visible).strip(), scan.goal or "")
