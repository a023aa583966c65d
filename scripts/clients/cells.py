"""The cells of the matrix: which client is run, through which entrance, towards which dialect, in which scenario.

Data only, so that the tests and the document can be checked without any client. What a client is expected to do in a
scenario is written here once, for every entrance and every dialect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from upstream import Step

DIALECTS = {"responses": "openai-responses", "chat": "openai-chat", "messages": "anthropic", "gemini": "google"}
"""The dialects of targets, and the adapter of a provider that speaks each."""

FORWARD = "forward proxy"
BASE = "base URL"
MANAGEMENT = "base URL, management listener"

_DOWN: Step = (503, {})
_WAIT: Step = (429, {"retry-after": "1"})
_LONG: Step = (429, {"retry-after": "3600"})


@dataclass(frozen=True)
class Scenario:
    """What the targets of a combo do: one script for each, in order."""

    name: str
    title: str
    scripts: Sequence[Sequence[Step]]


SCENARIOS = (
    Scenario("tool", "two-step tool turn, one target", (("tool", "answer"),)),
    Scenario("hop", "the first target answers 503, the second takes the tool turn", ((_DOWN,), ("tool", "answer"))),
    Scenario("early", "the first target's stream breaks before any output", (("cut-early",), ("answer",))),
    Scenario("late", "the first target's stream breaks after output", (("cut",), ("answer",))),
    Scenario("limit", "the only target answers 429 with Retry-After: 1, once", ((_WAIT, "answer"),)),
    Scenario("limit-hop", "the first target answers 429 with Retry-After: 3600", ((_LONG,), ("answer",))),
    Scenario("compact", "the conversation is compacted and goes on", (("full", "summary", "answer"),)),
)
NAMES = tuple(scenario.name for scenario in SCENARIOS)


@dataclass(frozen=True)
class Expected:
    """What has to come of a scenario: which targets are asked (a: the first), whether an answer comes, and in words."""

    calls: str
    answered: bool
    words: str


_TOOL = Expected("aa", True, "answer")
_HOP = Expected("abb", True, "answer")
_EARLY = Expected("ab", True, "answer")
_LIMIT_HOP = Expected("ab", True, "answer")
_FAILS = Expected("a", False, "the failure is raised, or said by the last event")
_NEVER = Expected("a", False, "an error is raised: it never asks again by itself")
_COMMON = {"tool": _TOOL, "hop": _HOP, "early": _EARLY, "limit-hop": _LIMIT_HOP}
_WAITS = Expected("aa", True, "waits as told, asks again and is answered")
_REPEATS = Expected("ab", True, "asks again at once, the second target answers")

_AGENT = {**_COMMON, "late": _REPEATS, "limit": _WAITS}
_LIBRARY = {**_COMMON, "late": _FAILS, "limit": _WAITS}
_CODEX = {**_AGENT, "compact": Expected("aaa", True, "the summary takes the place of the conversation")}
_CLAUDE = {**_AGENT, "compact": Expected("aaaa", True, "`/compact`: the summary takes the place of the conversation")}
_EDITOR = {
    "tool": Expected("a", True, "the edit is applied"),
    "hop": Expected("ab", True, "the edit is applied"),
    "early": Expected("ab", True, "the edit is applied"),
    "late": Expected("ab", True, "asks again, the edit is applied"),
    "limit": Expected("aa", True, "waits, asks again, the edit is applied"),
    "limit-hop": Expected("ab", True, "the edit is applied"),
}

EXPECTED: dict[str, dict[str, Expected]] = {
    "codex": _CODEX,
    "claude": _CLAUDE,
    "opencode": _AGENT,
    "aider": _EDITOR,
    "openai-python": _LIBRARY,
    "anthropic-python": _LIBRARY,
    "google-python": {**_LIBRARY, "limit": _NEVER},
    "litellm": _LIBRARY,
    "litellm-plain": {**_LIBRARY, "limit": _NEVER},
    "openai-node": _LIBRARY,
    "anthropic-node": _LIBRARY,
}


PACKAGES = {
    "codex": ("npm.lock", "@openai/codex"),
    "claude": ("npm.lock", "@anthropic-ai/claude-code"),
    "opencode": ("npm.lock", "opencode-ai"),
    "aider": ("aider.lock", "aider-chat"),
    "openai-python": ("requirements.lock", "openai"),
    "anthropic-python": ("requirements.lock", "anthropic"),
    "google-python": ("requirements.lock", "google-genai"),
    "litellm": ("aider.lock", "litellm"),
    "openai-node": ("npm.lock", "openai"),
    "anthropic-node": ("npm.lock", "@anthropic-ai/sdk"),
}
"""The package of each client, and the file that holds its version."""


@dataclass(frozen=True)
class Setup:
    """A client, set up in one way. `files` are under `setups/`; `program` is one of `programs/`, with its arguments."""

    client: str
    name: str
    entrance: str
    title: str
    files: tuple[str, ...]
    program: tuple[str, ...] = ()
    login: str = "key"

    @property
    def id(self) -> str:
        """Its name among all."""
        return f"{self.client}-{self.name}"

    @property
    def expected(self) -> dict[str, Expected]:
        """What it does in each scenario that it is run in. LiteLLM leaves repeats to OpenAI's library."""
        is_plain = self.client == "litellm" and self.program[-1] != "openai"
        return EXPECTED["litellm-plain" if is_plain else self.client]


_EDITS: dict[str, Step] = {"tool": "edit", "answer": "edit"}


@dataclass(frozen=True)
class Cell:
    """One run: a setup, a dialect of targets, a scenario. `in_ci`: it belongs to the part that is run every time."""

    setup: Setup
    dialect: str
    scenario: Scenario
    in_ci: bool

    @property
    def id(self) -> str:
        """The id of its combo."""
        return f"{self.setup.id}-{self.dialect}-{self.scenario.name}"

    @property
    def scripts(self) -> Sequence[Sequence[Step]]:
        """What its targets do. Aider has no tools: it gets an edit. Claude Code compacts when it is told to."""
        if self.setup.client == "claude" and self.scenario.name == "compact":
            return (("tool", "answer", "summary", "answer"),)
        if self.setup.client == "aider":
            return [[_EDITS.get(str(step), step) for step in script] for script in self.scenario.scripts]
        return self.scenario.scripts

    @property
    def expected(self) -> Expected:
        """What has to come of it."""
        return self.setup.expected[self.scenario.name]


def _codex(name: str, entrance: str, title: str, *files: str, login: str = "key") -> Setup:
    return Setup("codex", name, entrance, title, files, login=login)


def _library(client: str, name: str, title: str, base: str, *program: str, forward: bool = True) -> list[Setup]:
    """A library at each entrance. Those for Node cannot be told of a proxy from outside."""
    made = [Setup(client, f"{name}base", BASE, title, (base,), program)]
    made.append(Setup(client, f"{name}management", MANAGEMENT, title, (base,), program))
    return (
        [*made, Setup(client, f"{name}forward", FORWARD, title, ("python-forward.sh",), program)] if forward else made
    )


SETUPS: tuple[Setup, ...] = (
    _codex("own", BASE, "API key, own provider", "codex-own.toml", "codex-own.sh"),
    _codex("own-chatgpt", BASE, "ChatGPT login, own provider", "codex-own-login.toml", login="chatgpt"),
    _codex("builtin", BASE, "API key, built-in provider", "codex-builtin.toml"),
    _codex("builtin-chatgpt", BASE, "ChatGPT login, built-in provider", "codex-builtin.toml", login="chatgpt"),
    _codex("forward", FORWARD, "API key, built-in provider", "codex-forward.toml", "codex-forward.sh"),
    _codex(
        "forward-chatgpt",
        FORWARD,
        "ChatGPT login, built-in provider",
        "codex-forward.toml",
        "codex-forward.sh",
        login="chatgpt",
    ),
    _codex("own-management", MANAGEMENT, "API key, own provider", "codex-own.toml", "codex-own.sh"),
    _codex("builtin-management", MANAGEMENT, "ChatGPT login, built-in provider", "codex-builtin.toml", login="chatgpt"),
    Setup("claude", "base", BASE, "API key", ("claude-base.sh",)),
    Setup("claude", "token", BASE, "token", ("claude-token.sh",)),
    Setup("claude", "management", MANAGEMENT, "API key", ("claude-base.sh",)),
    Setup("claude", "forward", FORWARD, "API key", ("claude-forward.sh",)),
    Setup("opencode", "compatible", BASE, "Chat Completions", ("opencode-compatible.json",)),
    Setup("opencode", "openai", BASE, "Responses", ("opencode-openai.json",)),
    Setup("opencode", "anthropic", BASE, "Messages", ("opencode-anthropic.json",)),
    Setup("opencode", "management", MANAGEMENT, "Responses", ("opencode-openai.json",)),
    Setup("opencode", "forward", FORWARD, "Responses", ("opencode-forward.json", "opencode-forward.sh")),
    Setup("aider", "openai", BASE, "Chat Completions", ("aider-openai.sh",)),
    Setup("aider", "anthropic", BASE, "Messages", ("aider-anthropic.sh",)),
    Setup("aider", "management", MANAGEMENT, "Chat Completions", ("aider-openai.sh",)),
    Setup("aider", "forward", FORWARD, "Chat Completions", ("aider-forward.sh",)),
    *_library("openai-python", "responses-", "Responses", "openai-base.sh", "openai_responses.py"),
    *_library("openai-python", "chat-", "Chat Completions", "openai-base.sh", "openai_chat.py"),
    *_library("anthropic-python", "", "Messages", "anthropic-base.sh", "anthropic_messages.py"),
    *_library("google-python", "", "generateContent", "google-base.sh", "google_genai.py"),
    *_library("litellm", "openai-", "Chat Completions", "litellm-base.sh", "litellm_completion.py", "openai"),
    *_library("litellm", "anthropic-", "Messages", "litellm-base.sh", "litellm_completion.py", "anthropic"),
    *_library("litellm", "gemini-", "generateContent", "litellm-base.sh", "litellm_completion.py", "gemini"),
    *_library("openai-node", "responses-", "Responses", "openai-base.sh", "openai_responses.mjs", forward=False),
    *_library("openai-node", "chat-", "Chat Completions", "openai-base.sh", "openai_chat.mjs", forward=False),
    *_library("anthropic-node", "", "Messages", "anthropic-base.sh", "anthropic_messages.mjs", forward=False),
)


_QUICK = ("openai-python", "anthropic-python", "google-python", "openai-node", "anthropic-node")


def cells() -> list[Cell]:
    """Every cell. The vendors' libraries run all of theirs every time; of the others each setup runs every scenario,
    and over its scenarios every dialect, and each scenario meets every dialect."""
    made = []
    for row, setup in enumerate(SETUPS):
        for column, scenario in enumerate(SCENARIOS):
            if scenario.name not in setup.expected:
                continue
            for number, dialect in enumerate(DIALECTS):
                in_ci = setup.client in _QUICK or number == (row + column) % len(DIALECTS)
                made.append(Cell(setup, dialect, scenario, in_ci))
    return made
