from collections import Counter

import pytest

from combos.core.facts import Scope
from combos.core.failure_codes import CODE_ROWS, TYPE_AS_CODE, CodeClass, any_of, code_class, code_row, type_code
from combos.core.failure_facts import fold_code


def test_every_code_has_one_class_and_is_folded() -> None:
    codes = Counter(code for row in CODE_ROWS for code in row.codes)
    assert set(codes.values()) == {1}
    assert all(code == fold_code(code) for code in codes)
    assert {row.kind for row in CODE_ROWS} == set(CodeClass)


@pytest.mark.parametrize(
    ("code", "kind", "scope"),
    [
        ("invalid_api_key", CodeClass.CREDENTIAL, Scope.PROVIDER),
        ("insufficient_balance", CodeClass.BILLING, Scope.PROVIDER),
        ("1308", CodeClass.WINDOW, Scope.TARGET),
        ("1302", CodeClass.REQUEST_RATE, Scope.TARGET),
        ("1321", CodeClass.QUOTA, Scope.TARGET),
        ("permission_error", CodeClass.PERMISSION, Scope.TARGET),
        ("cyber_policy", CodeClass.POLICY, None),
        ("context_length_exceeded", CodeClass.OVERFLOW, None),
    ],
)
def test_rows(code: str, kind: CodeClass, scope: Scope | None) -> None:
    row = code_row(code)
    assert row is not None
    assert (row.kind, row.hop_scope) == (kind, scope)


@pytest.mark.parametrize("code", ["", "brand_new_code", "invalid_request_error", "1309", "tool_catalog_too_large"])
def test_other_codes_have_no_class(code: str) -> None:
    assert code_class(code) is None


def test_types_stand_for_known_codes_only() -> None:
    assert all(code_class(code) is not None for _, code in TYPE_AS_CODE)
    assert type_code("authentication_error") == "invalid_api_key"
    assert type_code("unavailable") == "server_is_overloaded"
    assert type_code("invalid_request_error") == ""
    assert type_code("not_found_error") == ""


def test_any_carrier_counts() -> None:
    assert any_of(frozenset({"x", "bio_policy"}), CodeClass.POLICY)
    assert not any_of(frozenset(), CodeClass.POLICY)
