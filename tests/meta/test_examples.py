"""Examples that are made up are not judged by how long they take: other work on the machine would fail them."""

from hypothesis import HealthCheck, settings


def test_no_example_has_a_time_limit() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
