"""Our decisions beside kube-scheduler's: asks both about a case and lists where they differ.

Knows nothing of how cases are made. In a sequence we decide first and draw among the best nodes;
kube-scheduler is told each choice, so that both see the same cluster before the next pod.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import policysched
from policysched.model.release_choice import AUTO

from .casefiles import read_case
from .compare import differences
from .live import Live
from .minors import release_of
from .oracle import InvalidCaseError, Oracle

if TYPE_CHECKING:
    from .oracle import Case, Record

SEED = 1
"""Draws among our best nodes."""


def ours(case: Case, minor: str = AUTO) -> Record:
    """Give our record of a case with one pod, from a cluster read anew.

    The judge does not run admission plugins, so the pod has a UID, as one that an API server has admitted.

    Args:
        case: The case.
        minor: The Kubernetes minor whose kube-scheduler the decision follows.
    """
    metadata = case["pod"]["metadata"]
    pod = {**case["pod"], "metadata": {"uid": f"{metadata.get('namespace', '')}/{metadata['name']}", **metadata}}
    record = policysched.dry_run(case["objects"], pod, config=case.get("config"), seed=0, kube_version=minor)
    decided: Record = record.to_dict()
    return decided


def with_namespaces(case: Case) -> Case:
    """Add the namespaces of the pods, which exist in a dry-run even if no object describes them."""
    there = {thing["metadata"]["name"] for thing in case["objects"] if thing["kind"] == "Namespace"}
    pods = [case["pod"], *(thing for thing in case["objects"] if thing["kind"] == "Pod")]
    named = {pod["metadata"].get("namespace", "default") for pod in pods} - there
    added = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(named)]
    return {**case, "objects": [*case["objects"], *added]}


def disagreement(oracle: Oracle, case: Case) -> list[str]:
    """Ask both about one pod or a sequence; a case that kube-scheduler cannot evaluate is no disagreement.

    Of a sequence only the first pod that differs is told about, as the others follow from it.
    """
    try:
        if "sequence" not in case:
            return differences(ours(case, oracle.minor), oracle.decide(case))
        _, found = first_difference(*both(oracle, case))
    except InvalidCaseError:
        return []
    except Exception as error:  # our own faults are what this looks for
        return [f"raised: ours {error!r}"]
    return found


def both(oracle: Oracle, case: Case) -> tuple[list[Record], list[Record]]:
    """Decide a sequence on both sides, with our choices on theirs.

    Raises:
        InvalidCaseError: kube-scheduler cannot evaluate the case.
    """
    decided = Live(case, SEED, release=release_of(oracle)).run(case)
    choices = [record.get("selected", "") for record in decided]
    return decided, oracle.decide_sequence({**case, "choices": choices})


def first_difference(decided: list[Record], theirs: list[Record]) -> tuple[int, list[str]]:
    """Find the first pod about which two runs of a sequence differ; -1 where there is none."""
    for number, (mine, other) in enumerate(zip(decided, theirs, strict=True)):
        if found := differences(mine, other):
            return number, found
    return -1, []


def places(lines: list[str]) -> set[tuple[str, str]]:
    """Reduce differences to the part of the record and its last key, so that nodes do not matter."""
    paths = [line.split(":")[0].split(".") for line in lines]
    return {(path[0], path[-1]) for path in paths}


def step(case: Case, number: int, theirs: list[Record], choices: list[str]) -> Case:
    """Make a case with one pod of a sequence's pod: what came before it has happened.

    What differs there too is a matter of the rules; what does not, of what is kept between decisions.
    """
    world = {_identity(thing): thing for thing in case["objects"]}
    homes: dict[Any, str] = {}
    between = [*case.get("between", ()), *[[]] * len(case["sequence"])]
    for earlier in range(number + 1):
        for change in between[earlier]:
            _happen(world, homes, change)
        pod = case["sequence"][earlier]
        if earlier < number and "best" in theirs[earlier]:
            homes[_identity(pod)] = choices[earlier] or theirs[earlier]["best"][0]
            _happen(world, homes, {"set": pod})
    wanted = case["sequence"][number]
    return {"id": f"{case['id']}-{number}", "objects": [*world.values()], "pod": wanted, "config": case["config"]}


def _happen(world: dict[Any, Any], homes: dict[Any, str], change: dict[str, Any]) -> None:
    thing = change.get("set") or change["remove"]
    key = _identity(thing)
    if "remove" in change:
        homes.pop(key, None)
        world.pop(key, None)
        return
    spec = thing.get("spec", {})
    if thing["kind"] == "Pod" and "nodeName" not in spec:
        if key not in homes:
            return
        thing = {**thing, "spec": {**spec, "nodeName": homes[key]}}
    world[key] = thing


def _identity(thing: Any) -> tuple[str, str, str]:
    return thing["kind"], thing["metadata"].get("namespace", ""), thing["metadata"]["name"]


def main() -> None:
    """Print where both differ about the case in the folder that the command line names."""
    with Oracle() as oracle:
        found = disagreement(oracle, read_case(Path(sys.argv[1])))
    print("\n".join(found) or "no difference")  # noqa: T201 - a command's output


if __name__ == "__main__":
    main()
