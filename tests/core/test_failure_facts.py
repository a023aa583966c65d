from combos.core.failure_facts import SUMMARY_CHARACTERS, FailureFacts, fold_code, fold_prose


def test_codes_are_compared_trimmed_in_lower_case_with_underscores() -> None:
    assert fold_code("  Model-Retired ") == "model_retired"


def test_prose_has_single_spaces_and_straight_apostrophes() -> None:
    assert fold_prose("  It Doesn\u2019t\n\tWork ") == "it doesn't work"


def test_prose_follows_the_message() -> None:
    assert FailureFacts(429, message="Usage  LIMIT\nreached").prose == "usage limit reached"


def test_summary_is_one_printable_line_of_bounded_length() -> None:
    facts = FailureFacts(500, message="a\nb\x1b[31m\x00c " + "x" * 5000)
    assert facts.summary.startswith("a b[31mc x")
    assert len(facts.summary) == SUMMARY_CHARACTERS


def test_repr_keeps_upstream_text_to_itself() -> None:
    facts = FailureFacts(401, code="invalid_api_key", message="key sk-secret is wrong", text="sk-secret")
    assert "sk-secret" not in repr(facts)
    assert "invalid_api_key" in repr(facts)
