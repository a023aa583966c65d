"""Counters and histograms: the text of a scrape is that of prometheus_client's own."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from combos.admin.tallies import Counts, Spread

BOUNDS = (0.001, 0.05, 0.25, 1, 2.5)
# When a series began is the one thing that is not told.
CREATED = re.compile(r"^.*_created.*\n", re.MULTILINE)


def text(registry: CollectorRegistry) -> str:
    return CREATED.sub("", generate_latest(registry).decode())


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 2**40))))
def test_a_counter_is_shown_as_by_the_library(added: list[tuple[str, int]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counts = Counts("n", "What.", ("x", "y"), ours)
    counter = Counter("n", "What.", ("x", "y"), registry=theirs)
    for place, count in added:
        counts.add(place, "z", count=count)
        counter.labels(place, "z").inc(count)
    assert text(ours) == text(theirs)


@pytest.mark.parametrize("labels", [(), ("x",)])
@given(durations=st.lists(st.one_of(st.sampled_from([0, 1, 50, 250, 1000, 2500]), st.integers(0, 10_000))))
def test_a_histogram_is_shown_as_by_the_library(labels: tuple[str, ...], durations: list[int]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    spread = Spread("d", "How long.", labels, BOUNDS, ours)
    histogram = Histogram("d", "How long.", labels, registry=theirs, buckets=BOUNDS)
    place = ("p",) * len(labels)
    for ms in durations:
        spread.add(*place, ms=ms)
        (histogram.labels(*place) if labels else histogram).observe(ms / 1000)
    shown, wanted = (re.sub(r"_sum(\S*) \S+", r"_sum\1", text(one)) for one in (ours, theirs))
    assert shown == wanted
    total = ours.get_sample_value("d_sum", dict(zip(labels, place, strict=True)))
    assert (total or 0) == pytest.approx(sum(durations) / 1000)


def test_a_place_that_is_only_kept_at_hand_is_not_shown() -> None:
    registry = CollectorRegistry()
    counts, spread = Counts("n", "What.", ("x",), registry), Spread("d", "How long.", ("x",), BOUNDS, registry)
    nothing = text(registry)
    number, durations = counts.at("p"), spread.at("p")
    assert text(registry) == nothing
    number.total += 2
    durations.add(3)
    assert registry.get_sample_value("n_total", {"x": "p"}) == 2
    assert registry.get_sample_value("d_sum", {"x": "p"}) == 0.003
    assert (counts.at("p"), spread.at("p")) == (number, durations)
