"""When a stream counts as silent."""

import pytest

from combos.engine.silence import Silence


@pytest.mark.parametrize(
    ("data", "counts"),
    [
        (b": ping\n", False),
        (b"\n\n", False),
        (b":\r\n: a\r\r\n", False),
        (b": cut off", True),
        (b": a\ndata", True),
        (b"data: x\n\n", True),
        (b"\ndata: x\n\n", True),
    ],
)
def test_comments_and_blank_lines_do_not_count(data: bytes, counts: bool) -> None:
    silence = Silence(0, 10)
    silence.listen(data, 8)
    silence.listen(b": ping\n", 18 if counts else 10)
    assert not silence.is_over_limit
    silence.listen(b": ping\n", 19 if counts else 11)
    assert silence.is_over_limit


def test_what_is_heard_otherwise_counts() -> None:
    silence = Silence(0, 10)
    silence.heard(9)
    silence.listen(b":\n", 19)
    assert not silence.is_over_limit
