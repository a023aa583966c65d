import json

import pytest

from combos.core.request_local import LOCAL_ROWS, LONGEST_BODY, local_row

USER = {"type": "invalid_request_error", "message": "Unsupported parameter: user"}
EFFORT = {
    "type": "invalid_request_error",
    "code": "unsupported_value",
    "param": "reasoning.effort",
    "message": "Unsupported value: 'none' is not supported with the 'demo' model.",
}
IMAGE = {
    "type": "invalid_request_error",
    "code": None,
    "param": "input",
    "message": "Model 'demo' does not support image inputs. Use another.",
}
FORMAT = {
    "type": "invalid_request_error",
    "code": "invalid_parameter_error",
    "param": None,
    "message": "This response_format type is unavailable now",
}
TOOLS = {
    "type": "invalid_request_error",
    "code": None,
    "param": "reasoning_effort",
    "message": "Function tools with reasoning_effort are not supported for gpt-6-astra in /v1/chat/completions."
    " To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
}


def without(error: dict[str, object], member: str) -> dict[str, object]:
    return {key: value for key, value in error.items() if key != member}


def parse(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def row(error: object, *, framed: bool = False) -> str | None:
    return local_row({"error": error}, characters=500, framed=framed, parse=parse)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (USER, "user"),
        ({**USER, "param": "user"}, "user"),
        ({**USER, "code": "unsupported-parameter"}, "user"),
        ({**USER, "param": None}, None),
        ({**USER, "param": "input"}, None),
        ({**USER, "code": "unsupported_value"}, None),
        ({**USER, "code": 7}, None),
        ({**USER, "message": "Unsupported parameter: user.name"}, None),
        ({**USER, "message": "unsupported parameter: user"}, None),
        ({**USER, "type": "custom"}, None),
        (without(USER, "type"), None),
        (EFFORT, "effort"),
        ({**EFFORT, "param": "reasoning_effort"}, "effort"),
        ({**EFFORT, "param": "temperature"}, None),
        ({**EFFORT, "code": None}, None),
        (without(EFFORT, "param"), None),
        ({**EFFORT, "message": "Unsupported value: none"}, None),
        (IMAGE, "image"),
        ({**IMAGE, "code": "invalid_request_error"}, "image"),
        ({**IMAGE, "code": "unsupported_value"}, None),
        ({**IMAGE, "param": "messages"}, None),
        ({**IMAGE, "message": "This model does not support image inputs."}, None),
        ({**IMAGE, "message": "Model 'demo' does not support image inputs"}, None),
        ({**IMAGE, "message": "See: Model 'demo' does not support image inputs."}, None),
        (FORMAT, "response-format"),
        (without(FORMAT, "param"), "response-format"),
        ({**FORMAT, "param": "response_format", "code": "unsupported_value"}, "response-format"),
        ({**FORMAT, "param": "messages"}, None),
        ({**FORMAT, "code": "other"}, None),
        ({**FORMAT, "message": "Invalid schema for response_format 'reply': type is required."}, None),
        (TOOLS, "tools-with-effort"),
        ({**TOOLS, "message": TOOLS["message"].replace("gpt-6-astra", "gpt-6-astra-2026-08-01")}, "tools-with-effort"),
        ({**TOOLS, "message": TOOLS["message"].replace("gpt-6-astra", "gpt-6-astra-minor")}, None),
        ({**TOOLS, "message": TOOLS["message"] + " More."}, None),
        ({**TOOLS, "code": "unsupported_value"}, None),
        (without(TOOLS, "code"), None),
        ("Unsupported parameter: user", None),
        (None, None),
    ],
)
def test_rows(error: object, expected: str | None) -> None:
    assert row(error) == expected


def wrapped(error: object, times: int, **members: object) -> dict[str, object]:
    for _ in range(times):
        error = {"message": "Provider error 400: " + json.dumps({"error": error}), **members}
    return error


def test_relays_may_wrap_twice() -> None:
    assert row(wrapped(USER, 2)) == "user"
    assert row(wrapped(USER, 3)) is None
    assert row(wrapped(EFFORT, 1, code="invalid_request_error")) == "effort"


@pytest.mark.parametrize("members", [{"param": None}, {"param": "x"}, {"code": "other"}, {"code": 3}])
def test_a_wrapper_that_says_something_itself_is_not_opened(members: dict[str, object]) -> None:
    assert row(wrapped(USER, 1, **members)) is None


def test_only_the_exact_prefix_is_opened() -> None:
    inner = json.dumps({"error": USER})
    assert row({"message": "Provider error 422: " + inner, "type": "invalid_request_error"}) is None
    assert row({"message": inner, "type": "invalid_request_error"}) is None
    assert row({"message": "Provider error 400: " + inner[:-1]}) is None


def test_a_data_line_counts_for_one_row_only() -> None:
    assert row(FORMAT, framed=True) == "response-format"
    assert row(USER, framed=True) is None


def test_long_bodies_are_no_evidence() -> None:
    assert local_row({"error": USER}, characters=LONGEST_BODY, framed=False, parse=parse) == "user"
    assert local_row({"error": USER}, characters=LONGEST_BODY + 1, framed=False, parse=parse) is None


@pytest.mark.parametrize("document", [None, [], "x", {"detail": "x"}, [{"error": USER}]])
def test_other_documents(document: object) -> None:
    assert local_row(document, characters=10, framed=False, parse=parse) is None


def test_names_are_unique() -> None:
    assert len({row.name for row in LOCAL_ROWS}) == len(LOCAL_ROWS)
