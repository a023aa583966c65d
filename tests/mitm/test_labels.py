"""Header fields that tell how a request was served."""

from combos.mitm.labels import labelled
from records import attempt, turn


def test_an_answer_names_its_target_and_what_came_before() -> None:
    headers = ((b"content-type", b"x"), (b"X-Combos-Target", b"forged"))
    assert labelled(headers, turn(), 1) == (
        (b"content-type", b"x"),
        (b"x-combos-request-id", b"r1"),
        (b"x-combos-target", b"beta/m2"),
        (b"x-combos-attempts", b"2"),
    )


def test_an_answer_made_here_names_no_target() -> None:
    record = turn(id="")
    record.attempts.clear()
    assert labelled((), record, None) == ((b"x-combos-attempts", b"0"),)


def test_no_model_id_breaks_a_header() -> None:
    record = turn(attempt(model="a\r\nx: y é"))
    assert dict(labelled((), record, 0))[b"x-combos-target"] == b"alpha/a%0D%0Ax: y %C3%A9"
