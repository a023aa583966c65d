import pytest

from combos.core.xai_policy import BLOCKERS, SENTENCES, policy_refusal

SAID = "I can't help with that request."


def refusal(document: object, *, host: str = "api.x.ai", status: int = 403, text: str = "") -> str | None:
    return policy_refusal(host, status, text, document)


@pytest.mark.parametrize(
    "document",
    [
        {"error": SAID},
        {"error": {"message": SAID}},
        {"error": {"error": SAID}},
        {"message": SAID},
        {"error": f"Provider error 403: {SAID}"},
        {"code": "x", "error": "  I  CAN\u2019T help with THAT request?! "},
    ],
)
def test_places(document: object) -> None:
    found = refusal(document)
    assert found is not None
    assert "help with" in found.lower()


def test_bare_text_and_every_sentence() -> None:
    for sentence in SENTENCES:
        assert policy_refusal("api.x.ai", 403, f"Provider error 403: {sentence}!", None) == f"{sentence}!"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("api.x.ai", True),
        ("API.X.AI", True),
        ("us-east-1.api.x.ai", True),
        ("cli-chat-proxy.grok.com", True),
        ("evilapi.x.ai", False),
        ("api.x.ai.example", False),
        ("api.openai.com", False),
    ],
)
def test_hosts(host: str, expected: bool) -> None:
    assert (refusal({"error": SAID}, host=host) is not None) is expected


@pytest.mark.parametrize("status", [200, 400, 401, 404, 429, 500])
def test_other_statuses(status: int) -> None:
    assert refusal({"error": SAID}, status=status) is None


@pytest.mark.parametrize(
    "document",
    [{"error": "I can't help."}, {"error": SAID + " Sorry."}, {"error": ""}, {"error": None}, {}, [SAID], "", None],
)
def test_other_messages(document: object) -> None:
    assert refusal(document) is None


@pytest.mark.parametrize("words", [*BLOCKERS, "Upgrade your plan; a subscription helps"])
def test_account_matters_stay_errors(words: str) -> None:
    text = '{"error":"' + SAID + '","hint":"' + words.title() + '"}'
    assert refusal({"error": SAID, "hint": words}, text=text) is None
