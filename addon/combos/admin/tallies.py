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


class Counts(Collector):
    """A counter; `labels` are the names of its labels."""

    def __init__(self, name: str, text: str, labels: Labels, registry: CollectorRegistry) -> None:
        self._about = (name, text, labels)
        self._counts: dict[Labels, int] = {}
        registry.register(self)

    def add(self, *place: str, count: int = 1) -> None:
        """Count at these values of the labels."""
        self._counts[place] = self._counts.get(place, 0) + count

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The metric now."""
        name, text, labels = self._about
        family = CounterMetricFamily(name, text, labels=labels)
        for place, count in self._counts.items():
            family.add_metric(place, count)
        yield family


class Spread(Collector):
    """A histogram of durations; `bounds` are the upper ends of its buckets, in seconds."""

    def __init__(
        self, name: str, text: str, labels: Labels, bounds: Sequence[float], registry: CollectorRegistry
    ) -> None:
        self._about = (name, text, labels)
        self._bounds = [bound * 1000 for bound in bounds]
        self._names = [*(repr(float(bound)) for bound in bounds), "+Inf"]
        # By place: how many fell into each bucket, and the sum of all in milliseconds. Without labels there is one.
        self._found: dict[Labels, tuple[list[int], list[int]]] = {} if labels else {(): self._nothing()}
        registry.register(self)

    def add(self, *place: str, ms: int) -> None:
        """Count a duration at these values of the labels."""
        found = self._found.get(place)
        if found is None:
            found = self._found[place] = self._nothing()
        buckets, total = found
        buckets[bisect_left(self._bounds, ms)] += 1
        total[0] += ms

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The metric now."""
        name, text, labels = self._about
        family = HistogramMetricFamily(name, text, labels=labels)
        for place, (buckets, total) in self._found.items():
            rows = zip(self._names, accumulate(buckets), strict=True)
            family.add_metric(place, list(rows), total[0] / 1000)
        yield family

    def _nothing(self) -> tuple[list[int], list[int]]:
        return [0] * len(self._names), [0]
