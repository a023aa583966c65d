"""Callers are told apart by their credential, which is not kept."""

import pytest

from combos.core.facts import Headers
from combos.wire.caller import caller_of


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (((b"Authorization", b"Bearer a"),), ((b"authorization", b"Bearer a"), (b"cookie", b"x")), True),
        (((b"Authorization", b"Bearer a"),), ((b"authorization", b"Bearer b"),), False),
        (((b"x-api-key", b"a"),), ((b"x-api-key", b"b"),), False),
        (((b"x-goog-api-key", b"a"),), ((b"api-key", b"a"),), True),
        ((), ((b"user-agent", b"x"),), True),
        ((), ((b"x-api-key", b"a"),), False),
        (((b"x-api-key", b"\xe9\xff"),), ((b"x-api-key", b"\xe9\xfe"),), False),
    ],
)
def test_same_caller(one: Headers, other: Headers, same: bool) -> None:
    assert (caller_of(one) == caller_of(other)) is same


def test_the_credential_does_not_show() -> None:
    assert "secret" not in caller_of(((b"x-api-key", b"sk-secret"),))
