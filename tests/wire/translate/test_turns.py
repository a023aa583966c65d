"""The order of a conversation: every call has one result right after it, turns alternate, nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from combos.wire.translate.ir import Call, Message, Part, Reasoning, Result, Role, Text
from combos.wire.translate.turns import NO_RESULT, settle

U, A, S = Role.USER, Role.ASSISTANT, Role.SYSTEM


def call(call_id: str) -> Call:
    return Call(call_id, "f", "{}")


def result(call_id: str, text: str = "ok") -> Result:
    return Result(call_id, [Text(text)])


def shape(messages: list[Message]) -> list[tuple[str, list[str]]]:
    return [(message.role.value, [_name(part) for part in message.parts]) for message in messages]


def _name(part: Part) -> str:
    match part:
        case Call():
            return f"call {part.id}"
        case Result():
            return f"result {part.call_id} {''.join(p.text for p in part.parts if isinstance(p, Text))}"
        case _:
            return getattr(part, "text", "?")


def test_interleaved_rounds_stay_apart() -> None:
    turns = [Message(A, [call("a")]), Message(U, [result("a")]), Message(A, [call("b")]), Message(U, [result("b")])]
    assert shape(settle(turns)) == [
        ("assistant", ["call a"]),
        ("user", ["result a ok"]),
        ("assistant", ["call b"]),
        ("user", ["result b ok"]),
    ]


def test_results_keep_the_clients_order_and_come_before_what_else_was_said() -> None:
    turns = [Message(A, [call("a"), call("b")]), Message(U, [Text("x"), result("b"), result("a"), Text("y")])]
    assert shape(settle(turns))[1] == ("user", ["result b ok", "result a ok", "x", "y"])


def test_a_late_result_is_brought_to_its_call() -> None:
    turns = [Message(A, [call("a")]), Message(S, [Text("note")]), Message(A, [Text("t")]), Message(U, [result("a")])]
    assert shape(settle(turns)) == [
        ("assistant", ["call a"]),
        ("user", ["result a ok"]),
        ("system", ["note"]),
        ("assistant", ["t"]),
    ]


def test_a_missing_result_is_said_to_be_missing() -> None:
    (_, answer) = settle([Message(A, [call("a")])])
    assert shape([answer]) == [("user", [f"result a {NO_RESULT}"])]
    assert isinstance(answer.parts[0], Result)
    assert answer.parts[0].is_error


def test_an_orphan_is_said_in_words_and_never_twice() -> None:
    turns = [
        Message(U, [result("a", "early")]),
        Message(A, [call("a")]),
        Message(U, [result("a"), result("a", "again")]),
    ]
    assert shape(settle(turns)) == [
        ("user", ["[result of an earlier tool call]\nearly"]),
        ("assistant", ["call a"]),
        ("user", ["result a ok", "[result of an earlier tool call]\nagain"]),
    ]


def test_what_is_empty_goes() -> None:
    turns = [Message(U, [Text("")]), Message(A, [Reasoning(""), Text("")]), Message(U, [Text("a")]), Message(A, [])]
    assert shape(settle(turns)) == [("user", ["a"])]


parts = st.one_of(
    st.builds(Text, st.text(max_size=3)),
    st.builds(call, st.sampled_from("abc")),
    st.builds(result, st.sampled_from("abc"), st.text(min_size=1, max_size=3)),
)
conversations = st.lists(st.builds(Message, st.sampled_from([U, A, S]), st.lists(parts, max_size=4)), max_size=8)


@given(conversations)
def test_every_call_has_one_result_right_after_it(messages: list[Message]) -> None:
    for message in messages:
        # Calls are the assistant's and results the user's in every dialect.
        wrong = Result if message.role is A else Call
        message.parts = [part for part in message.parts if not isinstance(part, wrong)]
    said = sorted(part.text for m in messages for part in m.parts if isinstance(part, Text) and part.text)
    turns = settle(messages)
    for index, turn in enumerate(turns):
        calls = [part.id for part in turn.parts if isinstance(part, Call)]
        after = turns[index + 1].parts if index + 1 < len(turns) else []
        answers = [part.call_id for part in after if isinstance(part, Result)]
        assert sorted(calls) == sorted(answers) or (turn.role is not A and not calls)
        assert turn.parts
        assert index == 0 or turn.role is not turns[index - 1].role
    kept = [part.text for m in turns for part in m.parts if isinstance(part, Text)]
    assert sorted(text for text in kept if not text.startswith("[result of")) == said


def round_of(*ids: str) -> list[Message]:
    return [Message(A, [call(one) for one in ids]), Message(U, [result(one, f"said {n}") for n, one in enumerate(ids)])]


IDS = st.lists(st.lists(st.sampled_from(["", "c", "c_2", "call", "call_2"]), min_size=1, max_size=3), max_size=6)


@given(IDS)
def test_an_id_stands_for_one_call_and_does_not_change_with_later_turns(rounds: list[list[str]]) -> None:
    told: list[list[str]] = []
    for length in range(len(rounds) + 1):
        settled = settle([message for ids in rounds[:length] for message in round_of(*ids)])
        calls = [[part.id for part in turn.parts if isinstance(part, Call)] for turn in settled if turn.role is A]
        results = [[part for part in turn.parts if isinstance(part, Result)] for turn in settled if turn.role is U]
        assert calls[: len(told)] == told
        assert [[one.call_id for one in row] for row in results] == calls
        assert all(_name(one).endswith(f"said {n}") for row in results for n, one in enumerate(row))
        flat = [one for row in calls for one in row]
        assert all(flat)
        assert len(set(flat)) == len(flat)
        told = calls


def test_ids_that_are_told_apart_already_stay() -> None:
    settled = settle([*round_of("a", "b"), *round_of("c")])
    assert [part.id for turn in settled for part in turn.parts if isinstance(part, Call)] == ["a", "b", "c"]
