import pytest

from combos.core.account_refusal import is_refusal, of_document, of_error_event, of_failed_event, of_text
from combos.core.failure_facts import AccountRefusal

S = "The 'demo-5.5' model is not supported when using Codex with a ChatGPT account."
EXACT, COMPETING = AccountRefusal.EXACT, AccountRefusal.COMPETING


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (S, True),
        (f"  {S.upper()}\n", True),
        (S.replace(" model ", "\n\t model  "), True),
        (S.replace("demo-5.5", "m" * 256), True),
        (S.replace("demo-5.5", "m" * 257), False),
        (S.replace("demo-5.5", ""), False),
        (S.replace("demo-5.5", "a'b"), False),
        (S.replace("demo-5.5", 'a"b'), False),
        (S[:-1], False),
        (f"Error: {S}", False),
        (f"{S} Contact support.", False),
        (f'"{S}"', False),
        (None, False),
        ([S], False),
    ],
)
def test_the_sentence_is_the_whole_text(text: object, expected: bool) -> None:
    assert is_refusal(text) is expected


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"detail": S}, EXACT),
        ({"detail": S, "trace": "x" * 40_000}, EXACT),
        ({"error": {"message": S}}, EXACT),
        ({"error": {"message": S, "code": None, "type": "x"}}, EXACT),
        ({"error": {"message": S, "code": "Invalid-Request-Error"}}, EXACT),
        ({"error": {"message": S, "code": "another"}}, None),
        ({"error": {"message": S, "code": 7}}, None),
        ({"response": {"detail": S}}, EXACT),
        ({"response": {"error": {"message": S}}}, EXACT),
        ({"detail": S, "error": None}, COMPETING),
        ({"detail": S, "error": {"code": "unsupported_model", "message": "bad"}}, COMPETING),
        ({"detail": None, "error": {"message": S}}, COMPETING),
        ({"detail": S, "response": {"error": None}}, COMPETING),
        ({"response": {"detail": None, "error": {"message": S}}}, COMPETING),
        ({"error": None, "response": {"error": {"message": S}}}, COMPETING),
        ({"error": {"message": "other"}, "response": {"error": {"message": S}}}, COMPETING),
        ({"detail": "other", "response": {"detail": S}}, COMPETING),
        ({"error": {"message": S}, "response": {"error": {"message": "other"}}}, EXACT),
        ({"detail": [S]}, None),
        ({"detail": {"message": S}}, None),
        ({"error": {"error": {"message": S}}}, None),
        ({"error": S}, None),
        ({"detail": "x", "error": {"message": "y"}}, None),
        ([{"detail": S}], None),
        (S, None),
        ({}, None),
    ],
)
def test_documents(document: object, expected: AccountRefusal | None) -> None:
    assert of_document(document) is expected


def test_bare_text() -> None:
    assert of_text(S) is EXACT
    assert of_text("{" + S) is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"response": {"error": {"message": S}}}, EXACT),
        ({"response": {"error": {"message": S}}, "sequence_number": 3, "request": {"detail": 1}}, EXACT),
        ({"response": {"error": {"message": S}}, "detail": "x"}, COMPETING),
        ({"response": {"error": {"message": S}}, "error": None}, COMPETING),
        ({"response": {"error": {"message": "bad"}}, "detail": S}, COMPETING),
        ({"response": {}, "detail": S}, None),
        ({"response": {}, "error": {"message": S}}, None),
        ({"response": {"detail": S}}, None),
        ({"response": {"error": {"message": '{"detail":"' + S + '"}'}}}, None),
    ],
)
def test_failed_events(event: dict[str, object], expected: AccountRefusal | None) -> None:
    assert of_failed_event(event) is expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"error": {"message": S}}, EXACT),
        ({"message": S}, EXACT),
        ({"message": S, "code": "invalid_request_error"}, EXACT),
        ({"message": S, "code": "other"}, None),
        ({"error": {"message": S}, "detail": S}, COMPETING),
        ({"error": {"message": "x"}, "message": S}, None),
        ({"message": "x", "response": {"error": {"message": S}}}, None),
    ],
)
def test_error_events(event: dict[str, object], expected: AccountRefusal | None) -> None:
    assert of_error_event(event) is expected
