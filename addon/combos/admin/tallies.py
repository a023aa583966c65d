"""Counters and histograms that every request adds to, for one event loop.

The counters of prometheus_client take a lock for each number, a histogram two: together as long as half a turn. Here
nobody else counts, so that plain numbers do. What is made of them at a scrape is prometheus_client's.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

type Labels = tuple[str, ...]


class Count:
    """The number of one place: whoever counts there often keeps hold of it."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0


class Durations:
    """The durations of one place: how many fell into each bucket, and the sum of all in milliseconds."""

    __slots__ = ("_bounds", "buckets", "total_ms")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total_ms = 0

    def add(self, ms: int) -> None:
        """Count a duration."""
        self.buckets[bisect_left(self._bounds, ms)] += 1
        self.total_ms += ms


class Counts(Collector):
    """A counter; `labels` are the names of its labels. A place where nothing was counted is not shown."""

    def __init__(self, name: str, text: str, labels: Labels, registry: CollectorRegistry) -> None:
        self._about = (name, text, labels)
        self._counts: dict[Labels, Count] = {}
        registry.register(self)

    def at(self, *place: str) -> Count:
        """The number at these values of the labels."""
        found = self._counts.get(place)
        if found is None:
            found = self._counts[place] = Count()
        return found

    def add(self, *place: str, count: int = 1) -> None:
        """Count at these values of the labels."""
        self.at(*place).total += count

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The metric now."""
        name, text, labels = self._about
        family = CounterMetricFamily(name, text, labels=labels)
        for place, found in self._counts.items():
            if found.total:
                family.add_metric(place, found.total)
        yield family


class Spread(Collector):
    """A histogram of durations; `bounds` are the upper ends of its buckets, in seconds. A place without a duration is
    not shown, but for the one of a histogram without labels."""

    def __init__(
        self, name: str, text: str, labels: Labels, bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._about = (name, text, labels)
        self._bounds = [bound * 1000 for bound in bounds]
        self._names = [*(repr(float(bound)) for bound in bounds), "+Inf"]
        self._found: dict[Labels, Durations] = {}
        if not labels:
            self.at()
        registry.register(self)

    def at(self, *place: str) -> Durations:
        """The durations at these values of the labels."""
        found = self._found.get(place)
        if found is None:
            found = self._found[place] = Durations(self._bounds)
        return found

    def add(self, *place: str, ms: int) -> None:
        """Count a duration at these values of the labels."""
        self.at(*place).add(ms)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The metric now."""
        name, text, labels = self._about
        family = HistogramMetricFamily(name, text, labels=labels)
        for place, found in self._found.items():
            if any(found.buckets) or not labels:
                rows = zip(self._names, accumulate(found.buckets), strict=True)
                family.add_metric(place, list(rows), found.total_ms / 1000)
        yield family
