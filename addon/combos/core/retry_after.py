"""The `Retry-After` grammar: seconds with an optional fraction, or one of the three HTTP date forms.

Strict on purpose: signs, exponents, lists, ISO dates, other zones and impossible dates are unusable, and an unusable
value is as good as none. Takes the wall clock as an argument.
"""

import re
from datetime import date

CEILING_MS = 86_400_000
"""24 hours: the longest delay an upstream may ask for."""

LONGEST_VALUE = 128
"""Characters of a header value that are worth reading."""

_DAY_MS = 86_400_000
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?P<month>" + "|".join(_MONTHS) + ")"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_SHORT_DAY = "(?:mon|tue|wed|thu|fri|sat|sun)"
_LONG_DAY = "(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_NUMBER = re.compile(r"(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]+))?")
_DATES = (
    re.compile(rf"{_SHORT_DAY}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} gmt"),
    re.compile(rf"{_LONG_DAY}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} gmt"),
    re.compile(rf"{_SHORT_DAY} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)


def retry_after_ms(value: str | None, epoch_ms: int) -> int | None:
    """Milliseconds from 1 to `CEILING_MS`, or None when the value is absent or unusable.

    Zero and past dates are an immediate directive and give 1. `epoch_ms` is the wall clock.
    """
    if value is None or len(value) > LONGEST_VALUE:
        return None
    text = value.strip(" \t").lower()
    delay = decimal_ms(text)
    if delay is None:
        moment = _date_ms(text, epoch_ms)
        if moment is None:
            return None
        delay = moment - epoch_ms
    return min(max(delay, 1), CEILING_MS)


def decimal_ms(text: str) -> int | None:
    """Seconds as an unsigned decimal number, in milliseconds and rounded up; None for any other text."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    fraction = match["fraction"] or ""
    rounding = 1 if fraction[3:].strip("0") else 0
    return int(match["whole"]) * 1000 + int(fraction[:3].ljust(3, "0")) + rounding


def _date_ms(text: str, epoch_ms: int) -> int | None:
    match = next((found for form in _DATES if (found := form.fullmatch(text))), None)
    if match is None:
        return None
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"])
    if hour > 23 or minute > 59 or second > 59:
        return None
    year = int(match["year"]) if len(match["year"]) == 4 else _full_year(int(match["year"]), epoch_ms)
    try:
        day = date(year, _MONTHS.index(match["month"]) + 1, int(match["day"]))
    except ValueError:
        return None  # 30 February, day 0 or year 0
    return (day.toordinal() - _EPOCH_DAY) * _DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000


def _full_year(two_digits: int, epoch_ms: int) -> int:
    """The year of the current century, moved by 100 when that is more than 50 years away."""
    this_year = date.fromordinal(_EPOCH_DAY + epoch_ms // _DAY_MS).year
    year = this_year - this_year % 100 + two_digits
    if year - this_year > 50:
        return year - 100
    return year + 100 if this_year - year > 50 else year
