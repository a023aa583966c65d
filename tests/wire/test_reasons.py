"""The words after a status."""

import pytest

from combos.wire.reasons import reason_of


@pytest.mark.parametrize(
    ("status", "words"),
    [(200, b"OK"), (404, b"Not Found"), (431, b"Request Header Fields Too Large"), (529, b"Overloaded"), (599, b"")],
)
def test_statuses_have_their_words(status: int, words: bytes) -> None:
    assert reason_of(status) == words
