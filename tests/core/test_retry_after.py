import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from combos.core.retry_after import CEILING_MS, LONGEST_VALUE, decimal_ms, retry_after_ms

NOW = 1_790_251_200_000
"""Thu, 24 Sep 2026 12:00:00 GMT."""


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("30", 30_000),
        (" 30 ", 30_000),
        ("\t30", 30_000),
        ("1.5", 1_500),
        ("0.5", 500),
        ("0.0004", 1),
        ("1.0001", 1_001),
        ("1.0000", 1_000),
        ("0", 1),
        ("0.0", 1),
        ("007", 7_000),
        ("86400", CEILING_MS),
        ("90000", CEILING_MS),
        ("9" * LONGEST_VALUE, CEILING_MS),
        ("Thu, 24 Sep 2026 12:00:30 GMT", 30_000),
        ("thu, 24 SEP 2026 12:00:30 gmt", 30_000),
        ("Mon, 24 Sep 2026 12:00:30 GMT", 30_000),
        ("Thursday, 24-Sep-26 12:01:00 GMT", 60_000),
        ("Sunday, 24-Sep-26 12:01:00 GMT", 60_000),
        ("Thu Sep 24 12:02:00 2026", 120_000),
        ("Thu Oct  1 12:00:00 2026", CEILING_MS),
        ("Tue Sep  1 12:00:00 2026", 1),
        ("Tue Sep 01 12:00:00 2026", 1),
        ("Thu, 24 Sep 2026 11:00:00 GMT", 1),
        ("Thursday, 24-Sep-26 11:00:00 GMT", 1),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 1),
        ("Mon, 28 Sep 2026 12:00:00 GMT", CEILING_MS),
        ("Tuesday, 24-Sep-76 12:00:00 GMT", CEILING_MS),
        ("Friday, 24-Sep-77 12:00:00 GMT", 1),
        ("Thursday, 29-Feb-24 12:00:00 GMT", 1),
    ],
)
def test_usable(value: str, ms: int) -> None:
    assert retry_after_ms(value, NOW) == ms


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        "abc",
        "30abc",
        "-5",
        "+30",
        "1e3",
        "30, 60",
        "soon",
        "inf",
        "nan",
        "0x10",
        "1.",
        ".5",
        "1_000",
        "1 000",
        "\u0663\u0660",
        "30\n",
        "9" * (LONGEST_VALUE + 1),
        "2026-09-24T12:05:00Z",
        "Thu, 24 Sep 2026 12:05:00 +0000",
        "Thu, 24 Sep 2026 12:05:00 UTC",
        "Thu, 24 Sep 2026 12:05:00",
        "Thu, 31 Feb 2026 12:00:30 GMT",
        "Wed, 30 Feb 2027 12:00:00 GMT",
        "Thu, 00 Sep 2026 12:00:00 GMT",
        "Thu, 24 Sep 0000 12:00:00 GMT",
        "Thu, 24 Sep 2026 12:00:60 GMT",
        "Thu, 24 Sep 2026 12:60:00 GMT",
        "Thu, 24 Sep 2026 24:00:00 GMT",
        "Thu, 4 Sep 2026 12:00:00 GMT",
        "Thu,24 Sep 2026 12:00:00 GMT",
        "Thu, 24  Sep 2026 12:00:00 GMT",
        "Xyz, 24 Sep 2026 12:00:00 GMT",
        "Thursday, 24 Sep 2026 12:00:00 GMT",
        "Thu, 24-Sep-26 12:00:00 GMT",
        "Thursday, 24-Sep-2026 12:00:00 GMT",
        "Thu Sep 4 12:00:00 2026",
        "Thu Sep 24 12:00:00 2026 GMT",
        "Thu, 24 Foo 2026 12:00:00 GMT",
    ],
)
def test_unusable(value: str | None) -> None:
    assert retry_after_ms(value, NOW) is None


def test_a_two_digit_year_stays_within_fifty_years() -> None:
    late = 4_070_908_800_000  # 1 January 2099
    assert retry_after_ms("Friday, 02-Jan-99 00:00:00 GMT", late) == CEILING_MS
    assert retry_after_ms("Monday, 01-Jan-10 00:00:00 GMT", late) == CEILING_MS
    assert retry_after_ms("Monday, 01-Jan-60 00:00:00 GMT", late) == 1


DATE_PIECES = st.sampled_from(
    ["Thu", "Thursday", ", ", " ", "24", "31", "99", "-", "Sep", "Feb", "2026", "26", "12:00:30", "99:99:99", "GMT"]
)
VALUES = st.text(max_size=140) | st.lists(DATE_PIECES, max_size=12).map("".join) | st.from_regex(r"\A[0-9.]{1,20}\Z")


@given(VALUES, st.integers(0, 4_102_444_800_000))
@example("Fri, 31 Dec 9999 23:59:59 GMT", 0)
@example("Mon, 01 Jan 0001 00:00:00 GMT", 0)
def test_any_value_is_unusable_or_within_bounds(value: str, epoch_ms: int) -> None:
    ms = retry_after_ms(value, epoch_ms)
    assert ms is None or 1 <= ms <= CEILING_MS


@given(st.integers(0, 10**12), st.integers(0, 10**6 - 1))
def test_decimals_round_up_exactly(whole: int, millionths: int) -> None:
    exact = whole * 1_000_000 + millionths
    assert decimal_ms(f"{whole}.{millionths:06}") == -(-exact // 1000)
