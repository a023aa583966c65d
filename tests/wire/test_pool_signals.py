"""What an error answer says to a pool."""

import gzip
import json
from typing import Any

import pytest

from combos.wire.pool_signals import pool_signals

NOW = 1_790_856_000_000
SECOND = NOW // 1000


@pytest.mark.parametrize(
    ("document", "dated"),
    [
        ({"error": {"resets_at": SECOND + 5}}, NOW + 5_000),
        ({"error": {"resets_in_seconds": 90}}, NOW + 90_000),
        ({"error": {"reset_at": "2026-10-01T12:00:05Z"}}, NOW + 5_000),
        ({"resetAt": NOW + 7}, NOW + 7),
        ({"error": {"message": "resets at 5"}}, None),
        ({"error": {"resets_at": True}}, None),
        ({"error": {"resets_at": "soon"}}, None),
        ({"error": {"resets_in_seconds": -1}}, None),
        ([], None),
    ],
)
def test_a_dated_reset(document: Any, dated: int | None) -> None:
    assert pool_signals((), json.dumps(document).encode(), NOW).dated == dated


def test_bodies_that_cannot_be_read_say_nothing() -> None:
    assert pool_signals((), None, NOW).dated is None
    assert pool_signals((), b"{broken", NOW).dated is None
    assert pool_signals(((b"content-encoding", b"gzip"),), b"no gzip", NOW).dated is None
    packed = gzip.compress(b'{"error": {"resets_in_seconds": 1}}')
    assert pool_signals(((b"Content-Encoding", b"gzip"),), packed, NOW).dated == NOW + 1_000


def test_headers_and_the_rest_of_the_combo_are_passed_on() -> None:
    headers = (
        (b"anthropic-ratelimit-unified-7d-status", b"rejected"),
        (b"anthropic-ratelimit-unified-7d-reset", str(SECOND + 9).encode()),
    )
    signals = pool_signals(headers, None, NOW, spares=True)
    assert signals.rejected == (NOW + 9_000,)
    assert signals.spares
