"""An earlier request, its answer and a new request as one body: nothing is written anew, nothing comes twice."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.wire.history import continued, kept_output, previous_response
from combos.wire.splice import SpliceError

ANSWER = b'[ {"type":"message","id":"msg_1","content":[]} ]'


def body(value: str, more: str = "") -> bytes:
    return b'{"model":"m", "previous_response_id" : "resp_1",%s "input": %s}' % (more.encode(), value.encode())


def test_items_are_copied_as_they_were_written() -> None:
    earlier = b'{ "input" :[ {"n": 123456789012345678901234567890, "a": "\\u00e9"} ,\n{"b":1.0} ]}'
    made = continued(body('[ {"role":"user"} ]', '"x" : 1.50,'), earlier, ANSWER)
    assert made == (
        b'{"model":"m","x" : 1.50, "input": [{"n": 123456789012345678901234567890, "a": "\\u00e9"} ,\n{"b":1.0},'
        b'{"type":"message","id":"msg_1","content":[]},{"role":"user"}]}'
    )


def test_a_plain_text_becomes_the_message_it_stands_for() -> None:
    made = json.loads(continued(body('"now"'), b'{"input":"then"}', b"[]"))
    assert made["input"] == [{"type": "message", "role": "user", "content": text} for text in ("then", "now")]
    assert "previous_response_id" not in made


@pytest.mark.parametrize("earlier", [b"{}", b'{"input":[]}', b'{"input": null}'])
def test_a_request_without_items_adds_none(earlier: bytes) -> None:
    assert json.loads(continued(b'{"previous_response_id":"a"}', earlier, ANSWER))["input"] == json.loads(ANSWER)


def test_the_last_of_two_inputs_counts_as_it_does_for_every_reader() -> None:
    earlier = b'{"input":["old"],"input":["new"]}'
    assert json.loads(continued(body("[]"), earlier, b"[]"))["input"] == ["new"]


def test_a_history_that_the_client_sends_itself_comes_once() -> None:
    earlier = b'{"input":[{"role":"user","content":"hi"}]}'
    whole = [{"role": "user", "content": "hi"}, *json.loads(ANSWER), {"role": "user", "content": "more"}]
    assert json.loads(continued(body(json.dumps(whole)), earlier, ANSWER))["input"] == whole


@pytest.mark.parametrize(
    ("earlier", "answer"),
    [
        ([{"role": "user", "content": "hi"}], []),  # "hi" may be said twice
        ([{"role": "user", "content": "hi"}], [{"type": "message", "content": []}]),  # no id: the model may repeat it
        ([{"role": "user", "content": "ho"}], [{"type": "message", "id": "m"}]),
    ],
)
def test_what_only_looks_like_the_history_is_new(earlier: list[Any], answer: list[Any]) -> None:
    new = [{"role": "user", "content": "hi"}, *answer]
    made = continued(body(json.dumps(new)), json.dumps({"input": earlier}).encode(), json.dumps(answer).encode())
    assert json.loads(made)["input"] == [*earlier, *answer, *new]


def test_bytes_that_are_no_request_raise() -> None:
    with pytest.raises(SpliceError):
        continued(b"[]", b"{}", b"[]")


items = st.lists(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=9), max_size=3), max_size=4)


@given(items, items, items)
def test_any_items_are_all_there_in_order(old: list[Any], answer: list[Any], new: list[Any]) -> None:
    written = json.dumps({"previous_response_id": "a", "input": new, "z": 1}).encode()
    made = json.loads(continued(written, json.dumps({"input": old}).encode(), json.dumps(answer).encode()))
    assert made["z"] == 1
    assert made["input"] in ([*old, *answer, *new], new)


def test_which_answers_can_be_gone_on_from() -> None:
    output = [{"type": "message"}]
    assert kept_output({"output": output}, stored=True) == orjson.dumps(output)
    assert kept_output({"output": output, "status": "completed"}, stored=True) is not None
    for reason, known in (("max_output_tokens", True), ("content_filter", False), ("other", False)):
        cut = {"output": output, "status": "incomplete", "incomplete_details": {"reason": reason}}
        assert (kept_output(cut, stored=True) is not None) is known
    for status in ("failed", "cancelled", "in_progress"):
        assert kept_output({"output": output, "status": status}, stored=True) is None
    assert kept_output({"status": "completed"}, stored=True) is None


def test_thoughts_that_nobody_stored_are_left_out() -> None:
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    sealed, plain = {**bare, "encrypted_content": "gAAA"}, {**bare, "content": [{"type": "reasoning_text"}]}
    response = {"output": [bare, sealed, plain, {"type": "message"}]}
    assert kept_output(response, stored=True) == orjson.dumps(response["output"])
    assert kept_output(response, stored=False) == orjson.dumps([sealed, plain, {"type": "message"}])


def test_an_id_is_a_text() -> None:
    assert previous_response({"previous_response_id": "a"}) == "a"
    assert previous_response({"previous_response_id": None}) == previous_response({}) == ""
