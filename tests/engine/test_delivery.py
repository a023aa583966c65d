"""The status of an upstream failure as the client gets it."""

import pytest

from combos.core.facts import Headers, TransportFault
from combos.engine.events import ChunkReceived, Failed, HeadReceived, Started
from combos.engine.record import Outcome
from playbook import JSON, World, commits, config, discards, error, finishes, provider, replies, sends

LOGIN: Headers = ((b"ChatGPT-Account-Id", b"acc"),)
REFUSED = error("bad key", code="invalid_api_key")


@pytest.mark.parametrize(
    ("headers", "auth", "status", "shown"),
    [
        (LOGIN, "key", 401, 403),
        (LOGIN, "forward", 401, 401),
        ((), "key", 401, 401),
        (LOGIN, "key", 402, 402),
        (LOGIN, "key", 500, 500),
    ],
)
def test_a_401_of_a_foreign_credential_is_none_of_a_chatgpt_login(
    headers: Headers, auth: str, status: int, shown: int
) -> None:
    world = World(config("alpha/m1", providers={"alpha": provider("alpha", authMode=auth)}))
    play = world.turn(headers=headers) >> Started()
    play = (play << sends("alpha/m1")).answer(0, status, REFUSED)
    record = (play << replies(shown, code="bad key") << discards(0) << finishes(Outcome.EXHAUSTED)).done()
    assert record.status == shown
    assert record.attempts[0].status == status


def test_the_same_of_an_error_body_too_large_to_hold() -> None:
    world = World(config("alpha/m1"))
    play = world.turn(headers=LOGIN) >> Started() << sends("alpha/m1")
    play = play >> [HeadReceived(0, 401, JSON), ChunkReceived(0, b"x" * 70_000)] << commits(0, 403)
    assert play.skip() is play


def test_the_same_of_an_error_body_that_was_lost() -> None:
    world = World(config("alpha/m1"))
    play = world.turn(headers=LOGIN) >> Started() << sends("alpha/m1")
    play = play >> [HeadReceived(0, 401, JSON), Failed(0, TransportFault.RESET)] << replies(403, code="error 401")
    assert (play << discards(0) << finishes(Outcome.EXHAUSTED)).done().status == 403
