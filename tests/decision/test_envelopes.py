"""Machine context is taken out of texts, exactly and in linear time."""

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combos.decision import envelopes
from combos.decision.envelopes import TAGS, clean

GOAL = "<codex_internal_context>Goal: ship it <environment_context>n</environment_context> now</codex_internal_context>"


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("<environment_context>…</environment_context>\nPlease review this diff", "Please review this diff"),
        ("Part one <environment_context>x</environment_context> part two", "Part one \n part two"),
        ('<app-context version="2">x</app-context>after', "after"),
        ("before <environment_context>never closed", "before"),
        ("a </environment_context> b", "a  b"),
        (
            "<system-reminder>o <environment_context>i</environment_context> s</system-reminder>visible",
            "visible",
        ),
        ("<environment_context>a<app-context>b</environment_context>c</app-context>d", "cd"),
        (GOAL, "Goal: ship it  now"),
        (GOAL + "\nreal ask", "real ask"),
        ("<system-reminder><codex_internal_context>g</codex_internal_context></system-reminder>", ""),
        ("<Environment_Context>x</Environment_Context>y", "<Environment_Context>x</Environment_Context>y"),
        ("<foo>bar</foo>", "<foo>bar</foo>"),
        ("<permissions instructions>x</permissions instructions>y", "y"),
        ("<app-contexts>x</app-contexts>", "<app-contexts>x</app-contexts>"),
        ("<app-context a<b>x", "<app-context a<b>x"),
        ("<app-context/>x", "<app-context/>x"),
        ("x</app-context \n>y", "xy"),
        ("  \n ", ""),
        ("", ""),
    ],
)
def test_what_remains(text: str, task: str) -> None:
    assert clean(text).task == task


@pytest.mark.parametrize("tag", TAGS)
def test_every_tag_is_an_envelope(tag: str) -> None:
    assert clean(f"<{tag}>secret</{tag}>shown<{tag} a='1'>secret</{tag} b>").visible == "shown"


def test_the_first_completed_goal_counts() -> None:
    open_, close = "<codex_internal_context>", "</codex_internal_context>"
    assert clean(f"{open_}one{close}{open_}two{close}").task == "one"
    assert clean(f"{open_}outer {open_}inner{close} more{close}").task == "inner"
    assert clean(f"{open_}never closed").task == ""
    assert clean(f"<app-context>{open_}g</app-context>").task == "", "ended by what is around it, not by itself"


def test_a_goal_never_stands_for_text_that_is_there() -> None:
    cleaned = clean(GOAL + " x")
    assert (cleaned.visible, cleaned.goal, cleaned.task) == ("x", "Goal: ship it  now", "x")


PLAIN = ["a", "<b>", " ", "\n", "<", ">"]
TOKENS = st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + PLAIN)


@settings(max_examples=200)
@given(st.lists(TOKENS, max_size=40).map("".join))
def test_like_a_scan_that_counts_every_level(text: str) -> None:
    assert clean(text).visible == _plainly(text)


def _plainly(text: str) -> str:
    """The rule of the page, written out: a stack of tags, no counters, no frames."""
    visible, stack, position = [], [], 0
    for token in envelopes._TOKEN.finditer(text):
        visible += [text[position : token.start()]] if not stack else []
        position = token.end()
        if token[1] and token[2] in stack:
            while stack.pop() != token[2]:
                pass
        elif not token[1]:
            visible += [] if stack else ["\n"]
            stack.append(token[2])
    visible += [text[position:]] if not stack else []
    return "".join(visible).strip()


@settings(max_examples=100)
@given(st.text(max_size=60).filter(lambda text: "<" not in text))
def test_text_without_tags_is_only_trimmed(text: str) -> None:
    assert clean(text).visible == text.strip()


def steps(text: str) -> int:
    """How many lines of the module run for a text."""
    count = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != envelopes.__file__:
            return None
        count += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        clean(text)
    finally:
        sys.settrace(previous)
    return count


@pytest.mark.parametrize(
    "unit",
    [
        "<system-reminder>x</system-reminder>",
        "<app-context>x<model_switch>",
        "</environment_context>y</model_switch>",
        "<codex_internal_context>g<app-context></codex_internal_context>",
    ],
)
def test_a_megabyte_with_ten_thousand_tags_takes_linear_work(unit: str) -> None:
    filler = "z" * 180
    small, large = (unit + filler) * 500, (unit + filler) * 5_000
    assert len(large) > 1_000_000
    assert steps(large) < 10.5 * steps(small)


def test_a_megabyte_of_beginnings_of_tags_is_no_trap() -> None:
    assert clean("<app-context " * 80_000).visible == ("<app-context " * 80_000).strip()
    assert clean("<app-context " + " " * 1_000_000).visible == "<app-context"
