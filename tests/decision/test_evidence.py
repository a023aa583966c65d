"""The bounded evidence: where each part comes from, its limits, and what never gets into it."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.decision.evidence import Evidence, evidence_of
from decisions import facts

CONVERSATION = {"R": "input", "C": "messages", "M": "messages", "G": "contents"}


def of(wire: str, *conversation: Any) -> Evidence:
    return evidence_of(facts(wire, **{CONVERSATION[wire]: list(conversation)}))


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(name: str, ident: str = "c1") -> dict[str, Any]:
    return {"type": "function_call", "call_id": ident, "name": name, "arguments": '{"cmd":"secret-argument"}'}


def output(text: Any, ident: str = "c1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": ident, "output": text}


def test_a_text_input() -> None:
    assert evidence_of(facts("R", input=" fix it ")) == Evidence("fix it")


def test_a_whole_state() -> None:
    evidence = of(
        "R",
        user("Review the requested change"),
        assistant("I will run the tests next."),
        call("shell"),
        output("2 failed, 10 passed"),
    )
    notes = {"openai/gpt-5.6-luna": "Flat-rate subscription, prefer for small edits"}
    assert orjson.dumps(evidence.state(notes)).decode() == (
        '{"task":"Review the requested change","signals":{"has_image":false,"tool_history":true},'
        '"step":{"type":"tool_step","last_tool_output_tail":"2 failed, 10 passed","tool_call":{"name":"shell"}},'
        '"previous_assistant":"I will run the tests next.",'
        '"operator_notes":{"openai/gpt-5.6-luna":"Flat-rate subscription, prefer for small edits"}}'
    )


def test_members_that_say_nothing_are_left_out() -> None:
    assert of("R", user("x")).state({}) == {
        "task": "x",
        "signals": {"has_image": False, "tool_history": False},
        "step": {"type": "user_turn"},
    }


class TestTask:
    def test_the_newest_user_item_that_says_something(self) -> None:
        wrapped = "<environment_context>cwd</environment_context>"
        assert of("R", user("old"), user("real"), assistant("x"), user(wrapped), user(" ")).task == "real"

    def test_a_hidden_goal_makes_way_for_an_older_item(self) -> None:
        hidden = "<system-reminder><codex_internal_context>g</codex_internal_context></system-reminder>"
        assert of("R", user("older"), user(hidden)).task == "older"

    def test_a_goal_stands_for_the_task_only(self) -> None:
        goal = "<codex_internal_context>Goal: go on</codex_internal_context>"
        evidence = of("R", user(goal), assistant(goal), call("x"), output(goal))
        assert (evidence.task, evidence.previous_assistant, evidence.tool_output) == ("Goal: go on", "", "")

    def test_a_long_one_keeps_head_and_tail(self) -> None:
        task = of("R", user("A" * 400 + "B" * 400)).task
        assert task == "A" * 320 + "\n[...]\n" + "B" * 173
        assert len(task) == 500

    @pytest.mark.parametrize("length", [499, 500])
    def test_a_shorter_one_is_whole(self, length: int) -> None:
        assert of("R", user("x" * length)).task == "x" * length

    def test_characters_are_code_points(self) -> None:
        assert of("R", user("😀" * 500)).task == "😀" * 500


class TestStep:
    @pytest.mark.parametrize(
        ("last", "step"),
        [
            (user("x"), "user_turn"),
            (assistant("x"), "other"),
            (call("x"), "other"),
            (output("x"), "tool_step"),
            ({"type": "compaction_trigger"}, "other"),
        ],
    )
    def test_type_by_the_last_item(self, last: dict[str, Any], step: str) -> None:
        assert of("R", user("x"), last).step == step

    def test_no_items(self) -> None:
        assert of("R").step == "other"

    def test_output_only_of_the_last_item(self) -> None:
        assert of("R", call("x"), output("earlier"), user("y")).tool_output == ""

    def test_output_is_cleaned_and_its_tail_kept(self) -> None:
        text = "<system-reminder>no</system-reminder>" + "a" * 600 + "end \n"
        assert of("R", output(text)).tool_output == ("a" * 600 + "end")[-520:]

    def test_name_of_the_newest_call_with_this_id(self) -> None:
        assert of("R", call("old"), call("new"), call("other", "c2"), output("x")).tool_name == "new"

    @pytest.mark.parametrize("last", [output("x", "c9"), {"type": "function_call_output", "output": "x"}])
    def test_no_call_no_name(self, last: dict[str, Any]) -> None:
        evidence = of("R", call("shell"), last)
        assert evidence.tool_name == ""
        assert "tool_call" not in evidence.state({})["step"]  # type: ignore[operator]

    def test_a_long_name_is_cut(self) -> None:
        assert of("R", call("n" * 200), output("x")).tool_name == "n" * 160

    def test_chat(self) -> None:
        called = {"role": "assistant", "tool_calls": [{"id": "t", "function": {"name": "ls", "arguments": "{}"}}]}
        answered = {"role": "tool", "tool_call_id": "t", "content": [{"type": "text", "text": "a.py"}]}
        evidence = of("C", user("list"), called, answered)
        assert (evidence.step, evidence.tool_name, evidence.tool_output) == ("tool_step", "ls", "a.py")
        assert evidence.tool_history

    def test_messages(self) -> None:
        used = assistant([{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}])
        result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a.py"}]}
        evidence = of("M", user("list"), used, user([result, {"type": "text", "text": "<system-reminder>x"}]))
        assert (evidence.task, evidence.step, evidence.tool_name) == ("list", "tool_step", "Bash")
        assert evidence.tool_output == "a.py"


class TestSignals:
    IMAGES = (
        ("R", user([{"type": "input_image", "image_url": "data:"}])),
        ("C", user([{"type": "image_url", "image_url": {"url": "data:"}}])),
        ("M", user([{"type": "image", "source": {"type": "base64", "data": "x"}}])),
        ("M", user([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {}}]}])),
        ("G", {"parts": [{"fileData": {"mimeType": "image/png", "fileUri": "x"}}]}),
    )

    @pytest.mark.parametrize(("wire", "image"), IMAGES)
    def test_an_image_among_the_last_six(self, wire: str, image: dict[str, Any]) -> None:
        filler = {"parts": [{"text": "x"}]} if wire == "G" else user("x")
        assert of(wire, image, *[filler] * 5).has_image
        assert not of(wire, image, *[filler] * 6).has_image

    def test_an_image_in_a_responses_tool_output_is_none_of_the_content(self) -> None:
        assert not of("R", output([{"type": "input_image", "image_url": "data:"}])).has_image

    def test_a_tool_output_among_the_last_six(self) -> None:
        assert of("R", output("x"), *[user("x")] * 5).tool_history
        assert not of("R", output("x"), *[user("x")] * 6).tool_history

    def test_chat_items_count_as_responses_items(self) -> None:
        calls = [{"id": str(n), "function": {"name": "f"}} for n in range(5)]
        image = user([{"type": "image_url", "image_url": {"url": "data:"}}])
        assert of("C", image, {"role": "assistant", "content": None, "tool_calls": calls}).has_image
        assert not of("C", image, {"role": "assistant", "content": "text", "tool_calls": calls}).has_image


class TestAssistant:
    def test_the_newest_that_says_something(self) -> None:
        assert of("R", assistant("one"), assistant(""), user("x")).previous_assistant == "one"

    def test_the_tail_of_a_cleaned_text(self) -> None:
        text = "b" * 300 + "<app-context>no</app-context>  "
        assert of("M", user("x"), assistant([{"type": "text", "text": text}])).previous_assistant == "b" * 240


@pytest.mark.parametrize(
    ("evidence", "enough"),
    [
        (Evidence("x"), True),
        (Evidence("", has_image=True), True),
        (Evidence("", tool_output="x"), True),
        (Evidence("", previous_assistant="x"), False),
        (Evidence("", tool_history=True, tool_name="shell"), False),
        (Evidence(""), False),
    ],
)
def test_what_is_enough(evidence: Evidence, enough: bool) -> None:
    assert evidence.is_enough is enough


CANARY = "CANARY"
IMAGE = {"type": "input_image", "image_url": f"data:image/png;base64,{CANARY}"}
SECRET_CONVERSATIONS = (
    (
        "R",
        [
            {"role": "developer", "content": CANARY},
            user([{"type": "input_text", "text": "see"}, IMAGE]),
            {"type": "reasoning", "encrypted_content": CANARY, "summary": [{"type": "summary_text", "text": CANARY}]},
            {"type": "function_call", "call_id": "c", "name": "shell", "arguments": CANARY},
            {"type": "function_call_output", "call_id": "c", "output": "fine"},
        ],
    ),
    (
        "C",
        [
            {"role": "system", "content": CANARY},
            user([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": CANARY}}]),
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": CANARY,
                "tool_calls": [{"id": "c", "function": {"name": "shell", "arguments": CANARY}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "fine"},
        ],
    ),
    (
        "M",
        [
            user([{"type": "text", "text": "see"}, {"type": "image", "source": {"type": "base64", "data": CANARY}}]),
            assistant(
                [
                    {"type": "thinking", "thinking": CANARY, "signature": CANARY},
                    {"type": "redacted_thinking", "data": CANARY},
                    {"type": "tool_use", "id": "c", "name": "shell", "input": {"command": CANARY}},
                ]
            ),
            user([{"type": "tool_result", "tool_use_id": "c", "content": "fine"}]),
        ],
    ),
    (
        "G",
        [
            {"role": "user", "parts": [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": CANARY}}]},
            {
                "role": "model",
                "parts": [
                    {"text": CANARY, "thought": True, "thoughtSignature": CANARY},
                    {"functionCall": {"name": "shell", "args": {"command": CANARY}}},
                ],
            },
            {"role": "user", "parts": [{"functionResponse": {"name": "shell", "response": {"output": "fine"}}}]},
        ],
    ),
)


@pytest.mark.parametrize(("wire", "conversation"), SECRET_CONVERSATIONS)
def test_secrets_of_a_request_stay_in_it(wire: str, conversation: list[Any]) -> None:
    request = facts(
        wire,
        **{CONVERSATION[wire]: conversation},
        instructions=CANARY,
        system=CANARY,
        metadata={"user_id": CANARY},
        tools=[CANARY],
    )
    evidence = evidence_of(request)
    assert CANARY not in str(evidence.state({}))
    assert (evidence.task, evidence.tool_output, evidence.tool_name) == ("see", "fine", "shell")
    assert evidence.has_image


MEMBERS = ["role", "content", "type", "text", "tool_calls", "output", "call_id", "function", "name"]
MEMBERS += ["parts", "functionCall", "functionResponse", "response", "result", "inlineData", "mimeType"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["user", "text", "tool", "assistant", "message"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["R", "C", "M", "G"]), st.lists(json_values, max_size=5))
def test_any_json_has_evidence_within_bounds(wire: str, conversation: list[Any]) -> None:
    evidence = of(wire, *conversation)
    assert len(evidence.task) <= 500
    assert len(evidence.previous_assistant) <= 240
    assert len(evidence.tool_output) <= 520
    assert orjson.dumps(evidence.state({}))
