"""The arithmetic of the comparison of schedulers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cluster.figures import at, between, latencies, quantile, rate, ratio, throughput
from bench.cluster.machine import Patience
from bench.cluster.observation import Observation, Sample, Tail


def audit(pod: str, second: float, *, what: str = "pods", sub: str = "", code: int = 201) -> bytes:
    reference = f'{{"resource":"{what}","namespace":"default","name":"{pod}","subresource":"{sub}"}}'
    stamp = f"1970-01-01T00:00:{second:09.6f}Z"
    received = f'"requestReceivedTimestamp":"{stamp}"'
    text = f'{{"objectRef":{reference},"responseStatus":{{"code":{code}}},"stageTimestamp":"{stamp}",{received}}}'
    return text.encode()


def seen(count: int, *, every: float = 0.1, events_behind: float = 1.0) -> Observation:
    """Pods bound one after another from second 10 on, made a quarter of a second before, each told of later."""
    found = Observation(frozenset(("default", f"p{number}") for number in range(count)))
    for number in range(count):
        bound = 10 + every * number
        found.take([audit(f"p{number}", bound - 0.25), audit(f"p{number}", bound, sub="binding")])
        found.take([audit(f"p{number}.17ab", bound + events_behind, what="events")])
    found.samples += [
        Sample(float(second), 0.5 * second, 2.0 * second, 3.0 * second, 0.1 * second) for second in range(40)
    ]
    return found


def test_rates_count_from_the_first_binding() -> None:
    found = throughput(seen(101), 7.0, at_rate=False)
    assert found["pods_per_second"] == pytest.approx(10)
    assert found["middle_per_second"] == pytest.approx(10)
    assert found["told_per_second"] == pytest.approx(100 / 11)
    assert found["told_behind"] == pytest.approx(1)
    assert found["first_binding"] == pytest.approx(3)


def test_rates_of_a_workload_that_works_before_its_first_binding_count_from_the_start() -> None:
    found = throughput(seen(101), 7.0, at_rate=False, from_start=True)
    assert found["pods_per_second"] == pytest.approx(101 / 13)
    assert found["told_per_second"] == pytest.approx(100 / 14)
    assert found["cpu_ms"] == pytest.approx(0.5 * 14 / 101 * 1000)
    assert found["first_binding"] == pytest.approx(3)
    assert found["start_cpu"] == pytest.approx(5)


def test_processor_time_is_that_until_the_last_event_and_the_start_is_apart() -> None:
    found = throughput(seen(101), 7.0, at_rate=False)
    assert found["start_cpu"] == pytest.approx(5)
    assert found["cpu_ms"] == pytest.approx(0.5 * 11 / 101 * 1000)
    assert found["servers_cpu_ms"] == pytest.approx(2 * 11 / 101 * 1000)
    assert found["foreign_cores"] == pytest.approx(3 - 2.6)


def test_latency_is_from_creation_to_binding() -> None:
    found = throughput(seen(50), 7.0, at_rate=True)
    assert [found[name] for name in ("p50", "p90", "p99", "worst")] == pytest.approx([250] * 4)
    assert "pods_per_second" not in found


def test_nothing_bound_comes_to_no_figures() -> None:
    assert throughput(Observation(frozenset()), 0.0, at_rate=False) == {}


def test_events_before_the_binding_and_of_others_do_not_count() -> None:
    found = Observation(frozenset([("default", "p0")]))
    found.take([audit("p0.1", 5, what="events"), audit("p0", 6, sub="binding"), audit("other.1", 7, what="events")])
    assert found.told == {}
    found.take([audit("p0.2", 8, what="events"), audit("p0.3", 9, what="events")])
    assert found.told == {("default", "p0"): 8}


def test_refused_bindings_do_not_count() -> None:
    found = Observation(frozenset([("default", "p0")]))
    found.take([audit("p0", 6, sub="binding", code=409)])
    assert found.bound == {}


def test_what_came_after_the_end_is_forgotten() -> None:
    found = seen(10, every=1.0)
    found.until(14.5)
    assert (len(found.bound), len(found.told)) == (5, 4)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_quantile_is_the_least_value_that_so_many_do_not_exceed(values: list[float], share: float) -> None:
    ordered = sorted(values)
    found = quantile(ordered, share)
    assert sum(one <= found for one in ordered) >= share * len(ordered)
    assert sum(one < found for one in ordered) < share * len(ordered)


def test_latencies_are_milliseconds() -> None:
    assert latencies([0.002, 0.001, 0.004]) == {"p50": 2, "p90": 4, "p99": 4, "worst": 4}
    assert latencies([]) == {}


def test_use_between_samples_is_in_proportion() -> None:
    samples = [Sample(0, 0, 0, 0, 0), Sample(2, 1, 2, 3, 4)]
    assert at(samples, 1) == Sample(1, 0.5, 1, 1.5, 2)
    assert at(samples, 9) == samples[-1]
    assert at(samples, -1) == samples[0]
    assert between(samples, 0.5, 1.5)["all"] == pytest.approx(1.5)


def test_nothing_is_divided_by_nothing() -> None:
    assert ratio(1.0, 2.0) == 0.5
    assert ratio(None, 2.0) is ratio(1.0, None) is ratio(1.0, 0.0) is None
    assert rate([1.0]) is rate([1.0, 1.0]) is None


def test_a_tail_gives_whole_lines_once(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tail = Tail(tmp_path / "log")
    assert tail.read() == []
    (tmp_path / "log").write_bytes(b"one\ntw")
    assert tail.read() == [b"one"]
    with (tmp_path / "log").open("ab") as file:
        file.write(b"o\nthree\n")
    assert tail.read() == [b"two", b"three"]
    assert tail.read() == []


class Clock:
    """Time that passes only while somebody sleeps, and a machine that is busy until a point in time."""

    def __init__(self, busy_until: float) -> None:
        self.now, self.used, self.busy_until = 0.0, 0.0, busy_until

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.used += seconds if self.now <= self.busy_until else 0


@pytest.mark.parametrize(("busy", "quiet", "left"), [(0, True, 10), (4, True, 6), (99, False, 0)])
def test_patience_ends_with_quiet_or_by_itself(busy: float, quiet: bool, left: float) -> None:
    clock = Clock(busy)
    patience = Patience(10.0, lambda: clock.now)
    assert patience.wait(lambda: clock.used, clock.sleep) is quiet
    assert patience.left == left
