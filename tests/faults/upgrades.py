"""An upgrade and a rollback with pods in flight: two replicas of the version before `v1beta1`, then of this version.

Policies of both API versions keep pods from nodes that are empty, so a pod there shows that a policy was out of force.
The older version is the parent of the commit that added `v1beta1`, taken from the repository's history.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import signal
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import yaml

from tests.controlplane.api import MERGE_PATCH, Json, RefusedError
from tests.controlplane.loading import until
from tests.e2e.objects import DEFINITION, only
from tests.e2e.test_api_versions import ALPHA, BETA, DEFINITIONS, NAME, of_version, path, store_all_as
from tests.faults.faults import Fault
from tests.faults.scene import Scene
from tests.faults.schedulers import UnderTest

ROOT: Final = Path(__file__).parents[2]
CRD: Final = "crds/schedulingpolicies.yaml"
ROOM: Final = 1_000_000
"""What a forbidden node has. Units: thousandths of a core."""


@functools.cache
def older_commit() -> str:
    """Return the last commit without `v1beta1`; empty without the repository's history."""
    command = ["git", "-C", str(ROOT), "log", "--format=%H", "-Sname: v1beta1", "--", CRD]
    with contextlib.suppress(OSError):
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        parent = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{found[-1]}^"] if found else []
        return subprocess.run(parent, capture_output=True, text=True, check=False).stdout.strip() if parent else ""
    return ""


def unpack_older(folder: Path) -> Path:
    """Write the files of the older version into a folder, once, and return it."""
    made = folder / "older-version"
    assert older_commit(), "the repository has no history from which to take the older version"
    if not made.exists():
        archive = folder / "older-version.tar"
        command = ["git", "-C", str(ROOT), "archive", f"--output={archive}", older_commit()]
        subprocess.run([*command, "policysched", "tests", "crds"], check=True)
        with tarfile.open(archive) as packed:
            packed.extractall(made, filter="data")
        archive.unlink()
    return made


class UpgradeScene(Scene):
    """A cluster with the older version's definition, policies, and nodes that these forbid."""

    def make_nodes(self) -> None:
        """Make the nodes, and a policy of the old version for a node of its own."""
        super().make_nodes()
        self.older = self.tree = unpack_older(self.plane.folder)
        self.forbidden: list[str] = []
        self._followers: list[UnderTest] = []
        self._replace_definition(yaml.safe_load((self.older / CRD).read_text("utf-8")))
        self.api.create(self._policy(ALPHA))

    def _replace_definition(self, made: Json) -> None:
        with contextlib.suppress(RefusedError):
            self.api.delete("CustomResourceDefinition", NAME)
        until(lambda: not self.api.answers(path(ALPHA)), "no definition")
        until(lambda: not any(one["metadata"]["name"] == NAME for one in self._definitions()), "no definition")
        self.plane.load([made])

    def _definitions(self) -> list[Json]:
        return self.api.objects("CustomResourceDefinition")

    def _policy(self, version: str, rule: str = "away") -> Json:
        require = f'node.name != "{self.prefix}-{version}"'
        made = only(version, "") | {"spec": {"filters": [{"name": rule, "require": require}]}}
        return of_version(version, made)

    def forbid(self, version: str) -> None:
        """Wait until a policy is in force, then make the node that it forbids."""
        self._await_policy(version, version)
        name = f"{self.prefix}-{version}"
        self.make_node(name, ROOM)
        self.forbidden.append(name)

    def edit(self, policy: str, version: str, rule: str) -> None:
        """Rename the rule of a policy, as an object of a version, and wait until that is in force."""
        change = {"spec": self._policy(policy, rule)["spec"]}
        self.api.call("PATCH", path(version, policy), change, MERGE_PATCH)
        self._await_policy(policy, version)

    def _await_policy(self, name: str, version: str) -> None:
        def holds() -> bool:
            found = self.api.call("GET", path(version, name))
            generation = found["metadata"]["generation"]
            line = f'policy "{name}" generation {generation} is in force'
            is_reported = (found.get("status") or {}).get("activeGeneration") == generation
            return is_reported and all(line in one.log for one in self.schedulers)

        self.until(holds, f"policy {name} is in force in each replica")

    def serve_both(self) -> None:
        """Replace the older definition by this version's, and create a policy of the new version."""
        self.api.call("PATCH", f"{DEFINITIONS}/{NAME}", DEFINITION, MERGE_PATCH)
        until(lambda: self.api.answers(path(BETA)), "the new version is served")
        self.api.create(self._policy(BETA))
        self.forbid(BETA)

    def roll(self, tree: Path | None) -> None:
        """Replace each replica by one of another version, as a Deployment does, with new pods at each change."""
        share = max(self.size.pods // 10, 1)
        for old in tuple(self.schedulers):
            new = UnderTest("policysched", self.plane, self.plane.kubeconfig(), elects=True, tree=tree)
            self._followers.append(new)
            new.__enter__()
            self.schedulers.append(new)
            self.until(lambda new=new: "lease" in new.log, "the new replica takes part in the election")  # type: ignore[misc]
            self.make_left(share)
            old.end(signal.SIGTERM)
            self.schedulers.remove(old)
            self.make_left(share)
        self.until(lambda: any(one.leads() for one in self.schedulers), "a new replica leads")

    def room(self) -> dict[str, int]:
        """Give the room on nodes that no policy forbids."""
        return {name: room for name, room in super().room().items() if name not in self.forbidden}

    def wrong(self) -> list[str]:
        """Name pods on nodes that a policy forbids."""
        on = {name: self.pods(f"?fieldSelector=spec.nodeName={name}") for name in self.forbidden}
        return [f"{len(found)} pods are on {name}, which a policy forbids" for name, found in on.items() if found]

    def clear(self) -> None:
        """End the schedulers, delete pods and nodes, and bring this version's definition back."""
        for one in self._followers:
            one.__exit__()
        super().clear()
        self._replace_definition(DEFINITION)
        shutil.rmtree(self.older)


def _up_and_back(scene: Scene) -> str:
    assert isinstance(scene, UpgradeScene)
    scene.forbid(ALPHA)
    scene.go_to_the_middle()
    scene.serve_both()
    scene.roll(None)
    scene.edit(ALPHA, BETA, "new")
    store_all_as(scene.api, BETA)
    scene.roll(scene.older)
    scene.edit(BETA, ALPHA, "old")
    return f"{older_commit()[:8]} to this version and back"


UPGRADES: Final = (
    Fault(
        "upgrade from v1alpha1 and back",
        _up_and_back,
        instances=2,
        elects=True,
        scene=UpgradeScene,
        not_tried=(("kube-scheduler", "not tried: it has no policies"),),
    ),
)
"""The upgrade to this version, for `__main__` and the tests."""
