"""What several targets promise together: ladders, limits, modalities, flags."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combos.core.capabilities import Omission, Promise, common_modalities, promise, published_ladder
from combos.core.catalog_member import Capabilities, Member
from combos.core.config_combo import ImageInput, ReasoningEffortMode
from combos.core.ladder import RUNGS
from combos.core.registry import Target

STRICT, ADAPTIVE = ReasoningEffortMode.STRICT, ReasoningEffortMode.ADAPTIVE
LADDERS = st.none() | st.lists(st.sampled_from(RUNGS), unique=True).map(
    lambda words: tuple(rung for rung in RUNGS if rung in words)
)


def member(
    key: str = "up/m", context: int = 1000, modalities: tuple[str, ...] = ("text", "image"), **known: Any
) -> Member:
    provider, model = key.split("/", 1)
    return Member(Target(key, provider, model, None, None), context, modalities, Capabilities(**known))


def promised(*members: Member, **options: Any) -> Promise:
    made = promise(members, **options)
    assert isinstance(made, Promise)
    return made


@pytest.mark.parametrize(
    ("ladders", "strict", "adaptive"),
    [
        ([("low", "high"), None], ("low", "high"), ("low", "high")),
        ([None, ("low", "high")], ("low", "high"), ("low", "high")),
        ([("low", "high"), ()], (), ("low", "high")),
        ([(), ("low", "high")], (), ("low", "high")),
        ([("low",), ("high",)], (), ()),
        ([None, None], (), ()),
        ([(), ()], (), ()),
        ([(), None], (), ()),
        ([("none", "low"), ("none", "minimal", "low")], ("none", "low"), ("none", "low")),
    ],
)
def test_ladder_table(ladders: list[Any], strict: tuple[str, ...], adaptive: tuple[str, ...]) -> None:
    assert published_ladder(ladders, STRICT) == strict
    assert published_ladder(ladders, ADAPTIVE) == adaptive


def test_fc_45_one_target_without_effort_control() -> None:
    ladders = [("low", "medium", "high"), ()]
    assert published_ladder(ladders, STRICT) == ()
    assert published_ladder(ladders, ADAPTIVE) == ("low", "medium", "high")
    for mode in (STRICT, ADAPTIVE):
        assert published_ladder([("low", "high"), ("high", "xhigh"), None], mode) == ("high",)


@given(ladders=st.lists(LADDERS, min_size=1, max_size=4), mode=st.sampled_from([STRICT, ADAPTIVE]))
def test_a_published_effort_is_offered_by_every_target_that_is_known(
    ladders: list[tuple[str, ...] | None], mode: ReasoningEffortMode
) -> None:
    published = published_ladder(ladders, mode)
    assert list(published) == sorted(published, key=RUNGS.index)
    counted = [set(ladder) for ladder in ladders if ladder is not None and (ladder or mode is STRICT)]
    assert set(published) == (set.intersection(*counted) if counted else set())


@given(ladders=st.lists(LADDERS, min_size=1, max_size=4))
def test_adaptive_never_publishes_less(ladders: list[tuple[str, ...] | None]) -> None:
    assert set(published_ladder(ladders, STRICT)) <= set(published_ladder(ladders, ADAPTIVE))


@pytest.mark.parametrize(
    ("want", "native", "ladder", "default"),
    [
        ("max", None, ("low", "high"), "high"),
        ("low", None, ("high", "max"), "high"),
        ("high", "low", ("low", "high"), "high"),
        ("high", "low", (), None),
        ("high", None, ("none", "minimal"), None),
        (None, "low", ("low", "high"), "low"),
        (None, "medium", ("low", "high"), None),
        (None, None, ("low", "high"), None),
    ],
)
def test_default_effort(want: str | None, native: str | None, ladder: tuple[str, ...], default: str | None) -> None:
    made = promised(member(ladder=ladder), default_effort=want, native_default=native)
    assert made.default_effort == default


def test_limits_are_the_least_of_all_members() -> None:
    made = promised(
        member("a/m", 200_000, max_input=150_000, max_output=64_000),
        member("b/m", 180_000, max_output=8_000),
    )
    assert (made.context, made.max_input, made.max_output) == (180_000, 150_000, 8_000)
    assert made.auto_compact == 150_000


def test_the_answer_length_is_published_only_if_all_know_it() -> None:
    assert promised(member("a/m", max_output=9), member("b/m")).max_output is None


@pytest.mark.parametrize(
    ("known", "limit"),
    [
        ({}, 900),
        ({"max_input": 850}, 850),
        ({"auto_compact": 700}, 700),
        ({"max_input": 5000, "auto_compact": 4000}, 900),
    ],
)
def test_compaction_begins_at_nine_tenths_or_earlier(known: dict[str, int], limit: int) -> None:
    assert promised(member(context=1000, **known)).auto_compact == limit
    assert promised(member("z/m", 10_000), member(context=1000, **known)).auto_compact == limit


def test_nine_tenths_are_rounded_down() -> None:
    assert promised(member(context=101)).auto_compact == 90


@pytest.mark.parametrize(
    ("sources", "image_input", "common"),
    [
        ([("image", "text"), ("text", "image", "audio")], ImageInput.AUTO, ("image", "text")),
        ([("text", "image"), ("text",)], ImageInput.AUTO, ("text",)),
        ([("text", "image")], ImageInput.DISABLED, ("text",)),
        ([("image",)], ImageInput.DISABLED, ()),
        ([("text",), ("image",)], ImageInput.AUTO, ()),
    ],
)
def test_modalities(sources: list[tuple[str, ...]], image_input: ImageInput, common: tuple[str, ...]) -> None:
    assert common_modalities(sources, image_input) == common


@pytest.mark.parametrize("field", ["parallel_tools", "fast", "summaries", "verbosity"])
@pytest.mark.parametrize(
    ("flags", "agreed"),
    [([True, True], True), ([True, False], False), ([None, False], False), ([True, None], None), ([None, None], None)],
)
def test_flags(field: str, flags: list[bool | None], agreed: bool | None) -> None:
    made = promised(*(member(f"p{n}/m", **{field: flag}) for n, flag in enumerate(flags)))
    assert getattr(made, field) is agreed


@pytest.mark.parametrize(
    ("members", "options", "reason"),
    [
        ([], {}, Omission.NO_TARGETS),
        ([member(), member()], {}, Omission.DUPLICATE_TARGETS),
        ([member(), member("b/m", 0)], {}, Omission.NO_CONTEXT),
        ([member(modalities=("text",)), member("b/m", modalities=("image",))], {}, Omission.NO_MODALITY),
        ([member(modalities=("image",))], {"image_input": ImageInput.DISABLED}, Omission.NO_MODALITY),
    ],
)
def test_what_cannot_be_listed(members: list[Member], options: dict[str, Any], reason: Omission) -> None:
    assert promise(members, **options) is reason
