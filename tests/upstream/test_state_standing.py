"""Whether a link holds: pauses that grow while it does not, and one warning for one trouble."""

import logging

import pytest

from combos.upstream.state_standing import PAUSE_S, SHORT_MAX, STEADY_S, Standing

LOST = "combos: the shared state at it is out of reach: why; every proxy goes on with its own until it is back"
SHARED = "combos: state is shared at it"
BACK = "combos: the shared state at it is back"


class Link:
    """A standing on a clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.standing = Standing("it", lambda: self.now_s)

    def connection(self, lasts_s: float, *, is_rejoin: bool = False, is_proved: bool = True) -> float:
        """One that is joined, pushes as soon as it can and once more at its end; the pause after it."""
        self.standing.joined()
        if is_proved:
            self.standing.proved()
        self.now_s += lasts_s
        if is_proved:
            self.standing.proved()
        return self.standing.failed("why", is_rejoin=is_rejoin)


@pytest.fixture
def link(caplog: pytest.LogCaptureFixture) -> Link:
    caplog.set_level(logging.INFO)
    return Link()


def growing(pauses: list[float]) -> bool:
    return pauses == [min(pauses[0] * 2**n, PAUSE_S[1]) for n in range(len(pauses))] and pauses[-1] == PAUSE_S[1]


def test_a_server_that_cannot_be_joined_is_one_warning_and_then_one_note(
    link: Link, caplog: pytest.LogCaptureFixture
) -> None:
    assert growing([link.standing.failed("why") for _ in range(20)])
    link.standing.joined()
    assert caplog.messages == [LOST], "joining alone proves nothing"
    assert not link.standing.is_connected
    link.standing.proved()
    link.standing.proved()
    assert caplog.messages == [LOST, BACK]
    assert link.standing.is_connected
    assert link.standing.failed("why") == PAUSE_S[0]


@pytest.mark.parametrize("is_rejoin", [False, True])
def test_one_that_can_be_joined_and_takes_no_push_is_not_back(
    link: Link, caplog: pytest.LogCaptureFixture, is_rejoin: bool
) -> None:
    pauses = [link.connection(1, is_rejoin=is_rejoin, is_proved=False) for _ in range(50)]
    assert growing(pauses)
    assert caplog.messages == [LOST]


@pytest.mark.parametrize("is_rejoin", [False, True])
def test_one_that_takes_a_push_and_fails_again_and_again_is_soon_one_trouble(
    link: Link, caplog: pytest.LogCaptureFixture, is_rejoin: bool
) -> None:
    pauses = [link.connection(STEADY_S - 1, is_rejoin=is_rejoin) for _ in range(50)]
    assert growing(pauses[SHORT_MAX - 1 :])
    assert caplog.messages == ([SHARED, LOST] if is_rejoin else [SHARED, LOST, *[BACK, LOST] * (SHORT_MAX - 1)])
    link.standing.joined()
    link.standing.proved()
    assert BACK not in caplog.messages[-1]
    link.now_s += STEADY_S
    link.standing.proved()
    assert caplog.messages[-1] == BACK
    assert link.standing.failed("why") == PAUSE_S[0]


def test_something_missed_now_and_then_is_not_said(link: Link, caplog: pytest.LogCaptureFixture) -> None:
    assert [link.connection(STEADY_S, is_rejoin=True) for _ in range(9)] == [PAUSE_S[0]] * 9
    assert caplog.messages == [SHARED]


def test_a_long_connection_that_ends_is_said_each_time(link: Link, caplog: pytest.LogCaptureFixture) -> None:
    assert [link.connection(STEADY_S) for _ in range(3)] == [PAUSE_S[0]] * 3
    assert caplog.messages == [SHARED, LOST, BACK, LOST, BACK, LOST]
