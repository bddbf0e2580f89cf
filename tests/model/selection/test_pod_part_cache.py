"""Answers about parts of pods: shared by siblings, and bounded by what they take."""

from __future__ import annotations

import pytest

from policysched.model.objects import Pod
from policysched.model.selection import pod_part_cache
from policysched.model.selection.pod_part_cache import BYTES_PER_BYTE, KEPT_BYTES, PodPartCache
from tests.build import pod


class Asked:
    """Answers with the labels of a pod, and remembers who asked."""

    def __init__(self) -> None:
        self.pods: list[str] = []
        self.remembered = PodPartCache(self._answer, lambda one: one.metadata.labels or None, None)

    def _answer(self, one: Pod) -> object:
        self.pods.append(one.metadata.name)
        return dict(one.metadata.labels)

    def __call__(self, name: str, **labels: str) -> object:
        return self.remembered(pod(name, labels=labels))


def test_pods_with_an_equal_part_share_the_answer() -> None:
    asked = Asked()
    assert asked("a", x="1", y="2") is asked("b", y="2", x="1")
    assert asked("c", x="2") == {"x": "2"}
    assert asked.pods == ["a", "c"]


def test_a_pod_without_the_part_is_answered_at_once() -> None:
    asked = Asked()
    assert asked("a") is None
    assert (asked.pods, asked.remembered.nbytes) == ([], 0)


def test_all_answers_together_take_no_more_than_allowed() -> None:
    asked, long = Asked(), "x" * (KEPT_BYTES // BYTES_PER_BYTE // 10)
    for number in range(30):
        asked(str(number), x=f"{number}{long}")
        assert 0 < asked.remembered.nbytes <= KEPT_BYTES
    asked("29", x=f"29{long}")
    asked("again", x=f"0{long}")
    assert asked.pods == [*map(str, range(30)), "again"]


def test_an_answer_that_takes_more_than_allowed_is_kept_until_the_next_pod() -> None:
    asked, long = Asked(), "x" * (KEPT_BYTES // BYTES_PER_BYTE)
    asked("small", x="1")
    before = asked.remembered.nbytes
    assert asked("a", x=long) == {"x": long}
    assert asked("a", x=long) is asked("a", x=long)
    asked("small", x="1")
    assert asked("b", x=long) == {"x": long}
    asked("without")
    assert asked.remembered._last is None
    assert asked("c", x=long) == {"x": long}
    assert asked.pods == ["small", "a", "b", "c"]
    assert asked.remembered.nbytes == before


def test_the_part_asked_about_last_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()
    first = asked("a", x="1")
    monkeypatch.setattr(pod_part_cache, "_ENCODER", None)
    assert asked("b", x="1") is first
    monkeypatch.undo()
    assert asked("c", x="2") == {"x": "2"}
    assert asked("d", x="1") is first
    asked.remembered.forget()
    assert asked("e", x="1") == first
    assert asked.pods == ["a", "c", "e"]
