"""What a `tests.yaml` beside a policy says: which pod, and where it may go and why. docs/cookbook.md has its fields.

A folder is a policy (`policy.yaml`), a cluster (`cluster.yaml`) and tests of the one on the other (`tests.yaml`). Every
field that is not known is an error, because a misspelt expectation would be one that cannot fail.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from policysched.app.dry_run.workload_pods import pod_of
from policysched.app.files.objects import load

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FOLDERS = sorted(one.parent.name for one in EXAMPLES.glob("*/policy.yaml"))
PLUGINS = {"06-multipoint-communicating", "07-node-filter", "08-beside-kube-scheduler"}
"""The examples that are plugins alone."""
POLICY, CLUSTER, TESTS = "policy.yaml", "cluster.yaml", "tests.yaml"
Object = dict[str, Any]


class Pod(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename="camel"):
    """What matters of a pod; the rest is filled in."""

    file: str | None = None
    name: str | None = None
    namespace: str = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    priority: int | None = None
    requests: dict[str, str | int | float] = {}
    image: str = "registry.example/app:1"
    scheduler_name: str = "policysched"
    node_selector: dict[str, str] = {}


class Expected(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What becomes of a pod."""

    best: list[str]
    rejected: dict[str, list[str]] = {}
    scores: dict[str, dict[str, float | None]] = {}
    reason: str | None = None
    protected: list[str] = []
    nominated: dict[str, list[str]] = {}


class Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One test, as it is written."""

    given: str
    expect: Expected
    pod: Pod = Pod()
    now: str | None = None
    metrics: dict[str, dict[str, float]] | None = None


class Case(msgspec.Struct, frozen=True):
    """One test, with its pod made whole."""

    given: str
    pod: Object
    now: str | None
    metrics: dict[str, dict[str, float]] | None
    expect: Expected

    @property
    def best(self) -> list[str]:
        """The nodes that the pod may go to."""
        return self.expect.best

    @property
    def holds_anywhere(self) -> bool:
        """Whether a server of its own time, metrics and priority classes decides the same."""
        return self.now is None and self.metrics is None and "priority" not in self.pod["spec"]


class _Texts(yaml.SafeLoader):
    """Reads times as the texts that they are."""


_Texts.yaml_implicit_resolvers = {
    first: [one for one in known if one[0] != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(folder: str, name: str) -> list[Object]:
    """Read the objects of a file of a folder."""
    return [one.object for one in load([str(EXAMPLES / folder / name)])]


def cases(folder: str) -> list[Case]:
    """Read the tests of a folder."""
    return read_cases(EXAMPLES / folder / TESTS)


def read_cases(path: Path) -> list[Case]:
    """Read a file of tests.

    Raises:
        ValueError: it is not of its shape; the text names the file and the entry.
    """
    # The loader constructs plain values only.
    written = yaml.load(path.read_text("utf-8"), Loader=_Texts)  # noqa: S506
    if not isinstance(written, list):
        raise ValueError(f"{path.parent.name}/{path.name}: expected a list of entries")  # noqa: TRY004 - a file's fault
    return [_case(path, number, entry) for number, entry in enumerate(written, 1)]


def _case(path: Path, number: int, written: object) -> Case:
    try:
        entry = msgspec.convert(written, Entry)
    except msgspec.ValidationError as error:
        raise ValueError(f"{path.parent.name}/{path.name}, entry {number}: {error}") from error
    pod = _from_file(path.parent / entry.pod.file, entry.pod) if entry.pod.file else _whole(entry.pod)
    return Case(entry.given, pod, entry.now, entry.metrics, entry.expect)


def _from_file(path: Path, part: Pod) -> Object:
    """Take a pod, or a workload's template, out of a file."""
    named = [one for one in load([str(path)]) if part.name in (None, one.object["metadata"]["name"])]
    pod = pod_of(named, str(path)).object
    return {**pod, "metadata": {"namespace": "default", **pod["metadata"]}}


def _whole(part: Pod) -> Object:
    """Make a pod of what matters of it."""
    requests = {name: str(amount) for name, amount in part.requests.items()}
    container: Object = {"name": "main", "image": part.image}
    if requests:
        # What is no resource of Kubernetes' own cannot be overcommitted.
        container["resources"] = {
            "requests": requests,
            "limits": {name: amount for name, amount in requests.items() if "/" in name},
        }
    metadata = {"name": part.name or "new", "namespace": part.namespace}
    spec: Object = {"schedulerName": part.scheduler_name, "containers": [container], "nodeSelector": part.node_selector}
    spec["priority"] = part.priority
    optional = {"labels": part.labels, "annotations": part.annotations}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {key: value for key, value in optional.items() if value},
        "spec": {key: value for key, value in spec.items() if value not in (None, {})},
    }
