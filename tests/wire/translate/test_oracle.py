"""The oracles: they reproduce every digest and lint of the corpus, so that a green comparison means something."""

import json

import pytest

from oracle_answers import digest_answer, digest_error, digest_stream
from oracle_lint import lint_stream
from oracle_requests import digest_request
from translations import CASES, Json, label, read


def digest(case: Json) -> object:
    raw = read(case)
    if case["kind"] == "stream":
        return digest_stream(case["dialect"], raw)
    readers = {"request": digest_request, "response": digest_answer, "error": digest_error}
    return readers[case["kind"]](case["dialect"], json.loads(raw))


@pytest.mark.parametrize("case", CASES, ids=label)
def test_digest(case: Json) -> None:
    assert digest(case) == case["digest"]


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "stream"], ids=label)
def test_lint(case: Json) -> None:
    assert sorted(lint_stream(case["dialect"], read(case))) == sorted(case["lint"])
