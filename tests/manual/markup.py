"""The documents as they lie there: their blocks of code, headings, links and words of code."""

import re
from dataclasses import dataclass
from pathlib import Path

from manual.schema import anchor

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
}

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its page, the line it begins at, the word behind the fence, its text."""

    page: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, and the lines shown below it."""

    line: str
    shown: tuple[str, ...]


def blocks(*kinds: str) -> list[Block]:
    """The blocks of these kinds in all documents."""
    found = [
        Block(page, text.count("\n", 0, match.start()) + 1, match[1], match[2])
        for page, text in DOCUMENTS.items()
        for match in _FENCED.finditer(text)
    ]
    return [block for block in found if not kinds or block.kind in kinds]


def commands(block: Block) -> list[Command]:
    """What a console block says to type, comments left out, with what it shows."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:].partition("  #")[0].rstrip(), ()))
        elif found:
            found[-1] = Command(found[-1].line, (*found[-1].shown, line))
        else:
            raise ValueError(f"{block}: output without a command")
    return found


def prose(page: str) -> str:
    """A document without its blocks."""
    return _FENCED.sub("", DOCUMENTS[page])


def links(page: str) -> list[str]:
    """Where the links and pictures of a document lead, as written."""
    return _LINK.findall(prose(page))


def anchors(page: str) -> set[str]:
    """The places of a document that a link can lead to."""
    made: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        place, number = anchor(heading), 1
        while place in made:
            place, number = f"{anchor(heading)}-{number}", number + 1
        made.add(place)
    return made


def code_words(page: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def matches(shown: tuple[str, ...], real: list[str]) -> bool:
    """Whether the real lines read as shown, where `…` stands for anything, a line of its own for any lines.

    Lines after the last shown one are not looked at.
    """
    parts = [".*?".join(re.escape(part) for part in line.split("…")) for line in shown]
    pattern = "\n".join(parts).replace("\n.*?\n", "\n(?:.*\n)*?")
    return re.match(f"{pattern}(?:\n|$)", "\n".join(real)) is not None
