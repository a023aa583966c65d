"""Is a sub-agent's task readable, or sealed for the vendor's own backend? Judges structure only, decrypts nothing."""

import base64
import binascii
import re
from collections.abc import Mapping

# A sealed text that was cut over several parts is joined up to these bounds.
MAX_JOINED_PARTS = 32
MAX_JOINED_BYTES = 2 * 1024 * 1024

_TRAILERS = frozenset({"compaction_trigger", "additional_tools"})
_RUN = re.compile(r"[A-Za-z0-9_=-]{100,}")
# Version, timestamp, initialisation vector and signature of a Fernet token; between them whole AES blocks.
_OVERHEAD_BYTES = 57
_BLOCK_BYTES = 16
_VERSION = 0x80
_ENVELOPE = re.compile(
    r"^[ \t]*message type:[ \t]*(?:new_task|message)[ \t]*\r?\n"
    r"[ \t]*task name:[^\n]*\n[ \t]*sender:[^\n]*\n[ \t]*payload:",
    re.IGNORECASE | re.MULTILINE,
)
_PARAGRAPH_BREAK = re.compile(r"\n[ \t\r]*\n")


def is_unreadable(items: object) -> bool:
    """Whether the last item of a Responses `input` is a task of which nothing but ciphertext can be read."""
    content = _task_content(items)
    if content is None:
        return False
    sealed, texts = _split(content)
    return sealed and not any(_readable(text) for text in texts)


def _task_content(items: object) -> list[object] | None:
    """The content of the last item, if that is a message between agents."""
    if not isinstance(items, list):
        return None
    last = next((item for item in reversed(items) if not _is_trailer(item)), None)
    if not isinstance(last, Mapping) or last.get("type") != "agent_message":
        return None
    content = last.get("content")
    routed = isinstance(last.get("author"), str) and isinstance(last.get("recipient"), str)
    return content if routed and isinstance(content, list) else None


def _is_trailer(item: object) -> bool:
    kind = item.get("type") if isinstance(item, Mapping) else None
    return isinstance(kind, str) and kind in _TRAILERS


def _split(content: list[object]) -> tuple[bool, list[str]]:
    """Whether there is ciphertext, and the texts that remain without it."""
    sealed = False
    texts: list[str] = []
    pending: list[str] = []
    for part in [*content, None]:
        slot = _text_of(part, "encrypted_content")
        bare = _without_tokens(slot) if slot is not None else None
        if slot is not None and bare == slot:
            pending.append(slot)
            continue
        joined, rest = _join(pending)
        pending = []
        sealed = sealed or joined or slot is not None
        texts += rest
        texts += [text for text in (bare, _text_of(part, "input_text"), _text_of(part, "text")) if text]
    return sealed, texts


def _text_of(part: object, kind: str) -> str | None:
    """The text of a part of this kind; None for any other part."""
    if not isinstance(part, Mapping) or part.get("type") != kind:
        return None
    value = part.get("encrypted_content" if kind == "encrypted_content" else "text")
    return value if isinstance(value, str) else None


def _join(slots: list[str]) -> tuple[bool, list[str]]:
    """Slots that hold no token each may hold one together."""
    if 2 <= len(slots) <= MAX_JOINED_PARTS and sum(map(len, slots)) <= MAX_JOINED_BYTES:
        whole = "".join(slots)
        bare = _without_tokens(whole)
        if bare != whole:
            return True, [bare]
    return False, slots


def _without_tokens(text: str) -> str:
    return _RUN.sub(lambda run: "" if _is_token(run[0]) else run[0], text)


def _is_token(run: str) -> bool:
    """A Fernet token by its structure: canonical base64url, version byte, whole cipher blocks. Age and key unknown."""
    if len(run) % 4 or not run.startswith("gA"):
        return False
    try:
        raw = base64.urlsafe_b64decode(run)
    except binascii.Error:
        return False
    blocks = len(raw) - _OVERHEAD_BYTES
    if raw[0] != _VERSION or blocks < _BLOCK_BYTES or blocks % _BLOCK_BYTES:
        return False
    return base64.urlsafe_b64encode(raw).decode() == run


def _readable(text: str) -> str:
    """The text without the routing envelope and without paragraphs that are addressed to the client's own machinery."""
    paragraphs = _PARAGRAPH_BREAK.split(_ENVELOPE.sub("\n\n", text))
    return "".join(p.strip() for p in paragraphs if not p.lstrip().startswith("[CXC-"))
