"""Our CEL against Kubernetes' own, on random selectors and random devices with a fresh seed.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets how many selectors it compares, each on four devices. Of a text
with syntax errors the first one counts: what a parser says of the rest depends on how it recovers.
"""

from __future__ import annotations

import os
import re
from random import Random

import pytest

from policysched.model.release import RELEASES as OURS
from tests.controlplane.releases import RELEASES, chosen, compared

from .device_selectors import Answer, KubernetesSelectors, ours
from .seed import seed
from .selector_texts import Expressions, device

pytestmark = pytest.mark.oracle

SEED = seed()
CASES = int(os.environ.get("POLICYSCHED_CASES") or 2000)
PARTS = 2
DEVICES = 4
NEW = 0.2
"""The share of selectors that are compiled as new ones, which are not stored yet."""
SYNTAX = "Syntax error"
FAILED = "compilation failed: ERROR: "
DOUBLING = re.compile(r"opt(Flat)?Map\(")
"""cel-go looks at the target of these twice: it says twice what is wrong there, and counts more types on the way."""
CRASHED = "internal error: runtime error: "
"""What Kubernetes says where Go panics: the text is about its own code."""
_NUMBER = re.compile(r"_var\d+")
REPORTED = 5


def told(answer: Answer, text: str = "") -> Answer:
    """Return what counts of an answer about a text."""
    first = str(answer[0])
    if len(answer) == 1 and SYNTAX in first:
        return [first[first.index(SYNTAX) :].split("\n", maxsplit=1)[0]]
    if len(answer) == 1 and DOUBLING.search(text):
        reasons = dict.fromkeys(first.removeprefix(FAILED).split("\nERROR: "))
        return [_NUMBER.sub("_var", "\nERROR: ".join(reasons))]
    # Kubernetes names a quantity that `add` or `sub` returns as a pointer: the type of its own program.
    return [one.replace("'*cel.Quantity'", "'cel.Quantity'") if isinstance(one, str) else one for one in answer]


def beside(mine: Answer, theirs: Answer) -> Answer:
    """Return our answer with that of Kubernetes where Kubernetes crashes: a crash says nothing about the selector."""
    if len(mine) != len(theirs):
        return mine
    pairs = zip(mine, theirs, strict=True)
    return [other if str(other).startswith(CRASHED) else one for one, other in pairs]


@pytest.mark.parametrize("minor", compared())
@pytest.mark.parametrize("part", range(PARTS))
def test_selectors_say_what_kubernetes_says(part: int, minor: str) -> None:
    cel_0_29 = OURS[minor].selectors_follow_cel_0_29
    random = Random(f"{SEED}-{part}-{minor}")
    grown = Expressions(random)
    differing: list[str] = []
    refused = evaluated = failed = 0
    with KubernetesSelectors(RELEASES[minor]) as kubernetes:
        for _ in range(CASES // PARTS // len(compared())):
            text, devices = grown.selector(), [device(random) for _ in range(DEVICES)]
            is_new = random.random() < NEW
            theirs = kubernetes.ask(text, devices, is_new=is_new)
            if theirs is None:
                continue
            mine = beside(ours(text, devices, cel_0_29=cel_0_29, is_new=is_new), theirs)
            refused += len(theirs) == 1
            evaluated += sum(isinstance(one, bool) for one in theirs)
            failed += len(theirs) > 1 and any(isinstance(one, str) for one in theirs)
            if told(mine, text) != told(theirs, text):
                differing.append(f"{text!r}\n  Kubernetes: {theirs}\n  ours: {mine}")
    assert not differing, f"POLICYSCHED_SEED={SEED}: {len(differing)} differ\n" + "\n".join(differing[:REPORTED])
    assert min(refused, evaluated, failed) > CASES // PARTS // len(compared()) // 20


def test_comparison_notices_another_verdict() -> None:
    with KubernetesSelectors(chosen()) as kubernetes:
        theirs = kubernetes.ask('device.driver == "a"', [{"driver": "a"}, {"driver": "b"}])
    assert theirs == [True, False]
    assert told([True, True]) != told(theirs)
    assert told(["compilation failed: ERROR: <input>:1:1: Syntax error: a"]) != told(["b"])
    crash = f"{CRASHED}hash of unhashable type cel.Semver"
    assert beside(["no such key: a", True, False], [crash, crash, True]) == [crash, crash, False]
    assert beside(["no such key: a"], ["no such key: b"]) == ["no such key: a"]
