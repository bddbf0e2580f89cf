"""What a `tests.yaml` beside a policy says: which pod, and where it may go and why.

Its fields are in docs/write/testing.md.

A folder is a policy (`policy.yaml`), a cluster (`cluster.yaml`) and tests of the one on the other (`tests.yaml`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policysched.app.policy_tests.file_format import Expectation, Numbers, ShortPod
from policysched.app.policy_tests.objects import pod_object
from policysched.app.policy_tests.reading import read_tests
from policysched.reading.loading import load

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FOLDERS = sorted(str(one.parent.relative_to(EXAMPLES)) for one in EXAMPLES.glob("*/*/policy.yaml"))
PLUGINS = {"tour/06-multipoint-communicating", "tour/07-node-filter", "tour/08-beside-kube-scheduler"}
"""The examples that are plugins alone."""
POLICY, CLUSTER, TESTS = "policy.yaml", "cluster.yaml", "tests.yaml"
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One test, with its pod made whole."""

    given: str
    pod: Object
    now: str | None
    metrics: dict[str, Numbers] | None
    expect: Expectation

    @property
    def best(self) -> list[str]:
        """The nodes that the pod may go to."""
        return self.expect.best or []

    @property
    def holds_anywhere(self) -> bool:
        """Whether a server of its own time, metrics and priority classes decides the same."""
        return self.now is None and self.metrics is None and "priority" not in self.pod["spec"]


def documents(folder: str, name: str) -> list[Object]:
    """Read the objects of a file of a folder."""
    return [dict(one.object) for one in load([str(EXAMPLES / folder / name)])]


def cases(folder: str) -> list[Case]:
    """Read the tests of a folder that are about one pod on the cluster of the folder."""
    source = read_tests(EXAMPLES / folder / TESTS)
    return [
        Case(test.given, pod_object(source, test.pod or ShortPod(), "", "new"), test.now, test.metrics, test.expect)
        for test in source.written.tests
        if test.expect is not None and test.cluster is None
    ]
