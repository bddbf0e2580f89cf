"""The oracle as Python calls it: a running program that answers cases in kube-scheduler's name.

Knows nothing of our own decisions. One question is on its way at a time: two programs that both wait
for the other to read would stand still.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.controlplane.releases import RELEASES, chosen

from .build import binary
from .casefiles import read_case

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from tests.controlplane.releases import Release

Case: TypeAlias = dict[str, Any]
Record: TypeAlias = dict[str, Any]
Lists: TypeAlias = dict[str, list[dict[str, Any]]]


SINCE = {"DeviceTaintRule": "1.37"}
"""Kinds that API servers of earlier minors do not serve, with the first minor that does."""


class InvalidCaseError(ValueError):
    """kube-scheduler could not evaluate the case: an unreadable object or configuration."""


class Oracle:
    """A context manager around one oracle process.

    A case has `objects`, `pod` or `sequence`, and optionally `id`, `config` and `choices`.

    Attributes:
        release: The Kubernetes release of kube-scheduler's code in the program; by default the chosen one.
    """

    def __init__(self, release: Release | None = None) -> None:
        self.release = release or chosen()

    @property
    def minor(self) -> str:
        """The minor of the release, such as 1.37."""
        return self.release.minor

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [binary(release=self.release)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def decide(self, case: Case) -> Record:
        """Answer a case with one pod.

        Raises: InvalidCaseError.
        """
        record: Record = self._ask(case)["record"]
        return record

    def decide_sequence(self, case: Case) -> list[Record]:
        """Answer a case with a sequence of pods, one record each.

        Raises: InvalidCaseError.
        """
        records: list[Record] = self._ask(case)["records"]
        return records

    def decide_many(self, cases: Iterable[Case]) -> Iterator[Record]:
        """Answer cases with one pod each, in order."""
        return map(self.decide, cases)

    def profiles(self, config: dict[str, Any]) -> dict[str, Lists]:
        """List the plugins of a configuration's profiles: by point, in their order, with their weights.

        Raises: InvalidCaseError where kube-scheduler refuses the configuration.
        """
        found: dict[str, Lists] = self._ask({"config": config, "profiles": True})["profiles"]
        return found

    def hints(self, case: Case) -> dict[str, Any]:
        """Ask what DynamicResources says of the case's pod while it waits.

        Returns:
            `gate`, why it may not be queued, and `hints`, what each of the case's changes means for it.

        Raises: InvalidCaseError.
        """
        found: dict[str, Any] = self._ask(case)["hinting"]
        return found

    def completed(self, config: dict[str, Any]) -> tuple[dict[str, Any] | None, list[dict[str, str]]]:
        """Complete a configuration with kube-scheduler's defaults.

        Returns:
            The configuration as kube-scheduler writes it, None where it refuses it, and its reasons: `stage` (decode,
            validate or build), `field` where it names one by itself, `message`.
        """
        answer = self._ask({"config": config, "completed": True})
        return answer.get("completed"), answer.get("refusals", [])

    def extended(
        self,
        verb: str,
        answer: bytes,
        nodes: Sequence[str] = (),
        *,
        by_name: bool,
        candidates: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Ask what the answer of an extender means.

        Args:
            verb: What it was asked to do: filter, prioritize, preempt or bind.
            answer: Its answer.
            nodes: The nodes that it was asked about.
            by_name: Whether it knows the nodes.
            candidates: The candidates of preemption, each with the UIDs of its victims.

        Returns:
            `left`, `failed`, `unresolvable`, `scores` and `victims`, any of which may be null; `error`, empty where
            there is none; `sent`, the question.
        """
        asked = {"verb": verb, "byName": by_name, "nodes": list(nodes), "answer": answer.decode()}
        asked["candidates"] = {node: list(victims) for node, victims in candidates.items()}
        found: dict[str, Any] = self._ask({"extender": asked})["extended"]
        return found

    def actions(self, old: dict[str, Any], new: dict[str, Any]) -> set[str]:
        """Return the parts of an update that kube-scheduler derives events from, under the names of `Action`.

        Args:
            old: A pod or a node.
            new: Another version of it.
        """
        return set(self._ask({"update": {"old": old, "new": new}}).get("actions", []))

    def _ask(self, case: Case) -> dict[str, Any]:
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the oracle was started without pipes")
        self._process.stdin.write(json.dumps(self._served(case)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the oracle ended with exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "invalid" in answer:
            raise InvalidCaseError(answer["invalid"])
        return answer

    def _served(self, case: Case) -> Case:
        """Leave out the objects of a case whose kinds the release's API server does not serve."""
        minors = list(RELEASES)
        later = {kind for kind, since in SINCE.items() if minors.index(since) > minors.index(self.minor)}
        if not later:
            return case
        parts = {"objects": [one for one in case.get("objects", ()) if one["kind"] not in later]}
        if "between" in case:
            parts["between"] = [[one for one in several if _kind(one) not in later] for several in case["between"]]
        return {**case, **parts} if "objects" in case else case


def _kind(change: dict[str, Any]) -> str:
    return str((change.get("set") or change["remove"])["kind"])


def main() -> None:
    """Print the oracle's record of the case in the folder that the command line names."""
    with Oracle() as oracle:
        record = oracle.decide(read_case(Path(sys.argv[1])))
    print(json.dumps(record, indent=2))  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
