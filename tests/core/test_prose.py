import pytest

from combos.core import prose
from combos.core.failure_facts import fold_prose

SAID = [
    (prose.is_spent_window, "The usage limit has been reached", "You are near your usage limit"),
    (prose.is_spent_window, "Usage limit was reached", "usage limits: reached by nobody"),
    (prose.is_monthly_cap, "Monthly usage limit reached. Resets in 14 days.", "usage limit reached"),
    (prose.is_request_rate, "Rate limit reached for requests", "Rate limit reached on tokens per min"),
    (prose.is_request_rate, "Rate limit reached for requests", "Rate limit reached for requests; usage limit reached"),
    (prose.is_overflow, "Your input exceeds the context window of this model.", "Your input is in the context window"),
    (prose.is_overflow, "prompt is too long: 210456 tokens > 200000 maximum", "prompt is long"),
    (prose.is_overflow, "invalid_request_prompt_too_long: prompt", "request_too_long"),
    (prose.is_cyber, "Request flagged for possible cybersecurity risk.", "The model 'cyber_policy-eval' is unknown"),
    (prose.is_cyber, "This was FLAGGED as cyber activity", "Flagged as spam"),
    (prose.is_cyber, "high-risk cyber requests are refused", "cybersecurity is our concern"),
    (
        prose.is_credit_balance,
        "Your credit balance is too low to access the Anthropic API. Pay.",
        "He said: Your credit",
    ),
    (prose.is_free_tier_prompt_cap, "longer than the free tier allows for a single request", "free tier is limited"),
    (prose.is_model_gone, "Model m1 reached end of life", "This endpoint was deprecated"),
    (prose.is_model_gone, "This model is no longer available", "This conversation is no longer available"),
    (prose.is_model_gone, "model retirement is near", "remodel was retired"),
    (prose.is_hop_class, "Too many requests", "cannot parse body"),
    (prose.is_hop_class, "Requires a subscription", "rate and limit"),
    (prose.is_hop_class, "daily quota exceeded", "quota is fine"),
]


@pytest.mark.parametrize(("said", "yes", "no"), SAID)
def test_phrases(said, yes: str, no: str) -> None:
    assert said(fold_prose(yes))
    assert not said(fold_prose(no))


def test_phrases_are_folded_as_prose_is() -> None:
    phrases = (*prose.OVERFLOW, *prose.HOP_CLASS, *prose.CYBER, *prose.LIFECYCLE, prose.CREDIT_BALANCE)
    assert all(phrase == fold_prose(phrase) for phrase in phrases)
