"""Sealed sub-agent tasks: what counts as ciphertext, and what still counts as readable."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.wire import encrypted_task
from combos.wire.encrypted_task import is_unreadable


def token(blocks: int = 2, version: int = 0x80) -> str:
    return base64.urlsafe_b64encode(bytes([version]) + bytes(range(56)) + bytes(16 * blocks)).decode()


TOKEN = token()
ENVELOPE = "Message Type: NEW_TASK\nTask name: /root/worker\nSender: /root\nPayload:\n"


def sealed(value: object) -> dict[str, object]:
    return {"type": "encrypted_content", "encrypted_content": value}


def text(value: str) -> dict[str, object]:
    return {"type": "input_text", "text": value}


def task(*content: object, **fields: object) -> dict[str, object]:
    return {"type": "agent_message", "author": "/root", "recipient": "/root/w", "content": list(content), **fields}


SENTENCE = "Please read the file."


@pytest.mark.parametrize(
    ("content", "unreadable"),
    [
        ([sealed(TOKEN)], True),
        ([text(ENVELOPE), sealed(TOKEN)], True),
        ([sealed(ENVELOPE + TOKEN)], True),
        ([text(ENVELOPE.replace("NEW_TASK", "MESSAGE").upper().replace("\n", "\r\n")), sealed(TOKEN)], True),
        ([sealed(TOKEN[:70]), sealed(TOKEN[70:])], True),
        ([sealed(TOKEN), sealed(TOKEN[:70]), sealed(TOKEN[70:])], True),
        ([text("[CXC-1] handle with care\nsecond line"), text(ENVELOPE), sealed(TOKEN)], True),
        ([text(f"[CXC-1] control\n\n{ENVELOPE}"), sealed(TOKEN)], True),
        ([sealed(f'"{TOKEN}"')], False),
        ([text(ENVELOPE), sealed(TOKEN), text(SENTENCE)], False),
        ([text(ENVELOPE + SENTENCE), sealed(TOKEN)], False),
        ([text(ENVELOPE.rstrip() + " " + SENTENCE), sealed(TOKEN)], False),
        ([{"type": "text", "text": SENTENCE}, sealed(TOKEN)], False),
        ([text("Message Type: NEW_TASK\nSender: /root"), sealed(TOKEN)], False),
        ([text("[CXC-1] control\n\n" + SENTENCE), sealed(TOKEN)], False),
        ([sealed(SENTENCE)], False),
        ([sealed(TOKEN[:70]), text(" "), sealed(TOKEN[70:])], False),
        ([sealed(TOKEN[:70])], False),
        ([text(TOKEN)], False),
        ([sealed(7), sealed(None), 5, None], False),
        ([], False),
    ],
)
def test_content(content: list[object], unreadable: bool) -> None:
    assert is_unreadable([{"type": "message"}, task(*content)]) is unreadable


@pytest.mark.parametrize(
    ("candidate", "valid"),
    [
        (token(1), True),
        (token(200), True),
        (token(0), False),
        (token(2, version=0x81), False),
        (TOKEN[:-4], False),
        (TOKEN[:-1] + "*", False),
        (TOKEN + "AAAA", False),
        (TOKEN.replace("=", "A"), False),
        ("gAAA" + "A" * 96 + "=" * 40, False),
        ("gAAA" + "=" * 100, False),
    ],
)
def test_tokens(candidate: str, valid: bool) -> None:
    assert is_unreadable([task(sealed(candidate))]) is valid


def test_a_token_must_be_written_canonically() -> None:
    """The unused bits of the last character must be zero."""
    one = next(t for t in (token(n) for n in range(1, 4)) if t.endswith("="))
    body = one.rstrip("=")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = body[:-1] + alphabet[alphabet.index(body[-1]) + 1] + "=" * (len(one) - len(body))
    assert is_unreadable([task(sealed(one))])
    assert not is_unreadable([task(sealed(other))])


@pytest.mark.parametrize(
    ("items", "unreadable"),
    [
        ([task(sealed(TOKEN)), {"type": "compaction_trigger"}, {"type": "additional_tools"}], True),
        ([task(sealed(TOKEN)), {"type": "message", "role": "user", "content": "new"}], False),
        ([task(sealed(TOKEN), type="message")], False),
        ([task(sealed(TOKEN), author=None)], False),
        ([task(content=TOKEN)], False),
        ([{"type": ["odd"]}], False),
        ([{"type": "compaction_trigger"}], False),
        (["text"], False),
        ([], False),
        ("text", False),
        (None, False),
    ],
)
def test_only_the_last_item_counts(items: object, unreadable: bool) -> None:
    assert is_unreadable(items) is unreadable


def test_joining_is_bounded() -> None:
    def cut(parts: int) -> list[object]:
        size = -(-len(long) // parts)
        return [sealed(long[start : start + size]) for start in range(0, len(long), size)]

    long = token(400)
    assert len(cut(encrypted_task.MAX_JOINED_PARTS)) == 32
    assert is_unreadable([task(*cut(32))])
    assert not is_unreadable([task(*cut(40))])
    long = token(100_000)
    assert len(long) > encrypted_task.MAX_JOINED_BYTES
    assert not is_unreadable([task(*cut(2))])


@given(st.lists(st.sampled_from([TOKEN, TOKEN[:50], "gAAAA" * 30, ENVELOPE, "message type:", "\n", " x ", "=" * 9])))
@settings(max_examples=200)
def test_a_readable_word_always_counts(parts: list[str]) -> None:
    assert not is_unreadable([task(sealed(TOKEN), *(sealed(part) for part in parts), text(SENTENCE))])


def test_long_hostile_texts_are_decided() -> None:
    hostile = ["gA" + "A" * 400_000, "gAAA=" * 80_000, "message type: new_task\n" * 20_000, "\n \t" * 100_000 + "\n"]
    for value in hostile:
        assert not is_unreadable([task(sealed(value), text("x"))])
