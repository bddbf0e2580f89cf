"""Pod groups of tests: their objects from the short form, and the comparison of a decision with an expectation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from policysched.app.files.group_members import all_members
from policysched.app.policy_tests.differences import (
    Difference,
    KnownNames,
    Record,
    RecordComparison,
    Refuse,
    holds,
    text_of,
)
from policysched.app.policy_tests.file_format import Expectation, MemberExpectation, ShortGroup
from policysched.app.policy_tests.objects import Key, Object, pods_of
from policysched.app.policy_tests.reading import PolicyTestSource
from policysched.model.kinds import POD_GROUPS

NO_VALUE: Final = "no value"
"""Value of a label that a node does not have."""


def group_object(short: ShortGroup) -> Object:
    """Return the PodGroup of a group in short form."""
    policy = {"basic": {}} if short.min_count is None else {"gang": {"minCount": short.min_count}}
    spec: dict[str, Any] = {"schedulingPolicy": policy}
    if short.priority is not None:
        spec["priority"] = short.priority
    if short.topology_key is not None:
        spec["schedulingConstraints"] = {"topology": [{"key": short.topology_key}]}
    metadata = {"name": short.name, "namespace": short.namespace, "labels": short.labels}
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": metadata,
        "spec": spec | short.spec,
    }


def group_pods(source: PolicyTestSource, short: ShortGroup, path: str) -> list[dict[str, Any]]:
    """Return the new pods of a group in short form.

    Raises:
        UsageError: a pod has errors, or two pods have one name.
    """
    made: dict[str, dict[str, Any]] = {}
    for index, written in enumerate(short.pods):
        place = f"{path}.pods[{index}]"
        own = {"namespace": short.namespace, "name": written.name or short.name}
        priority = short.priority if written.priority is None else written.priority
        pod = msgspec.structs.replace(written, **own, priority=priority)
        for one in pods_of(source, pod, pod.count, place):
            name = one["metadata"]["name"]
            if name in made:
                raise source.refusal(place, f'pod "{name}" is there twice')
            one["spec"]["schedulingGroup"] = {"podGroupName": short.name}
            made[name] = one
    return [*made.values()]


def decided_members(objects: Mapping[Key, Object], record: Record) -> dict[Key, Object]:
    """Return the members of a decided group by key, each with its node or nominated node.

    Args:
        objects: The objects of the cluster, with the members.
        record: The record of the decision.
    """
    made: dict[Key, Object] = {}
    for told in record["members"]:
        namespace, _, name = told["pod"].partition("/")
        pod = objects["Pod", namespace, name]
        spec, status = dict(pod["spec"]), dict(pod.get("status") or {})
        if "node" in told and "message" not in told:
            spec["nodeName"], status = told["node"], {"phase": "Running"}
        elif "nominated" in told:
            status["nominatedNodeName"] = told["nominated"]
        made["Pod", namespace, name] = {**pod, "spec": spec, "status": status}
    return made


class GroupComparison(RecordComparison):
    """Compares the decision record of a pod group with an expectation.

    Args:
        record: The record.
        expected: The expectation.
        names: The known names.
        refuse: Returns the error for an unknown name.
        path: The path of the expectation, for differences and errors.
        objects: The objects of the cluster after the decision.
    """

    def __init__(
        self,
        record: Record,
        expected: Expectation,
        names: KnownNames,
        refuse: Refuse,
        path: str,
        objects: Mapping[Key, Object],
    ) -> None:
        super().__init__(record, expected, names, refuse, path)
        self._objects = objects
        self._members = {one["pod"]: one for one in record["members"]}

    def all(self) -> Iterator[Difference]:
        """Yield the differences."""
        expected, record = self._expected, self._record
        got = sum("node" in one and "message" not in one for one in record["members"])
        if expected.result is not None:
            yield from self._same("result", "result", expected.result, record["result"], self._reasons())
        if expected.placed is not None:
            yield from self._same("placed", "pods that get nodes", str(expected.placed), str(got), self._reasons())
        if expected.reason is not None and not holds(expected.reason, record.get("message", "")):
            message = record.get("message") or "none"
            yield Difference(self._at("reason"), "reason", text_of(expected.reason), message)
        yield from self._places()
        for name, wanted in expected.members.items():
            for pod in self._match([name], sorted(self._members), f"members.{name}", "pod of the group"):
                yield from self._member(pod, wanted, f"members.{name}")
        victims = self._match(expected.victims, self._names.pods, "victims", "pod")
        told = sorted(record.get("victims", ()))
        yield from self._same(
            "victims", "preemption victims", ", ".join(victims) or "none", ", ".join(told) or "none", []
        )

    def _places(self) -> Iterator[Difference]:
        """Yield differences in the values of labels on the nodes of all placed members."""
        expected = self._expected
        for label, count in expected.values.items():
            pods = self._pods_by_value(label)
            yield from self._same(f"values.{label}", f"values of {label}", str(count), str(len(pods)), _listed(pods))
        for label, most in expected.per_value.items():
            pods = self._pods_by_value(label)
            if max(pods.values(), default=0) > most:
                text = f"at most {most}"
                got = str(max(pods.values()))
                yield Difference(self._at(f"perValue.{label}"), f"pods per {label}", text, got, tuple(_listed(pods)))

    def _pods_by_value(self, label: str) -> Counter[str]:
        """Return the number of placed members by value of a label of the members' nodes."""
        pods = all_members(self._objects.values(), self._record["podGroup"])
        nodes = [
            self._objects.get(("Node", "", pod["spec"]["nodeName"])) for pod in pods if pod["spec"].get("nodeName")
        ]
        labels = ((node or {}).get("metadata", {}).get("labels") or {} for node in nodes)
        return Counter(str(one.get(label, NO_VALUE)) for one in labels)

    def _member(self, pod: str, wanted: MemberExpectation, path: str) -> Iterator[Difference]:
        told = self._members[pod]
        message = told.get("message") or ("not evaluated" if "evaluated" in told else "none")
        if wanted.node is not None:
            got = told["node"] if "node" in told and "message" not in told else "none"
            matching = self._match([wanted.node], self._names.nodes, f"{path}.node", "node")
            expected = got if got in matching else wanted.node
            yield from self._same(f"{path}.node", f"node of {pod}", expected, got, [message])
        if wanted.fits is not None:
            fits = "yes" if "node" in told else "no"
            yield from self._same(
                f"{path}.fits", f"whether {pod} fits", "yes" if wanted.fits else "no", fits, [message]
            )
        if wanted.reason is not None and not holds(wanted.reason, told.get("message", "")):
            yield Difference(self._at(f"{path}.reason"), f"reason of {pod}", text_of(wanted.reason), message)

    def _reasons(self) -> list[str]:
        """Return the message about the pod group, and the message about its first member without a node."""
        message = self._record.get("message")
        failed = (one for one in self._members.values() if "node" not in one and "evaluated" not in one)
        first = [f"{one['pod']}: {one['message']}" for one in failed][:1]
        return [*([message] if message else []), *first]


def _listed(pods: Counter[str]) -> list[str]:
    return [f"{value}: {count}" for value, count in sorted(pods.items())]
