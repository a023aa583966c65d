"""A misspelt option is said; what other addons may declare later is not ours to judge."""

import pytest

from combos.mitm.options import OPTIONS
from combos.mitm.unknown_options import unknown_options


def test_names_of_ours_that_nobody_declared_are_said_with_what_was_probably_meant() -> None:
    assert list(unknown_options(["combos_stat", "combos_nope", "other_option", "combosish"])) == [
        "there is no option combos_nope",
        'there is no option combos_stat; did you mean "combos_state"?',
    ]


@pytest.mark.parametrize("name", [row.name for row in OPTIONS])
def test_a_slip_in_any_name_is_recognised_and_the_name_itself_is_none(name: str) -> None:
    assert list(unknown_options([name])) == []
    (said,) = unknown_options([name[:-1]])
    assert said == f'there is no option {name[:-1]}; did you mean "{name}"?'
