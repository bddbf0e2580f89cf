"""The faults: each begins with pods that fill the nodes, schedulers that stand still, and ends when it is over.

Each is a function of the scene; what must be so afterwards is the same for all, see `judging`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import yaml

from tests.controlplane.api import Api, RefusedError
from tests.controlplane.build import binary
from tests.controlplane.releases import RELEASES, chosen
from tests.faults.scene import APART, MILLIS, Scene

OTHER: Final = "other-scheduler"
LATE: Final = 3.0
"""How late events come. Units: seconds."""


LARGE: Final = 200
"""How many large pods use up the memory."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and how the schedulers are started for it."""

    name: str
    strike: Callable[[Scene], str]
    """Makes it, and gives what the report says beside the figures."""
    instances: int = 1
    elects: bool = False
    proxied: bool = False
    muted: bool = False
    shares: bool = False
    """Whether nodes are shared with a scheduler that does not know of the other's choices."""
    others: float = 0.0
    """How many of the pods are another scheduler's."""
    scene: type[Scene] = Scene
    """The cluster, and what its pods need."""
    not_tried: tuple[tuple[str, str], ...] = ()
    """The schedulers with which it cannot be made, and why."""

    def why_not(self, scheduler: str) -> str:
        """Say why it is not tried with a scheduler; empty where it is."""
        return dict(self.not_tried).get(scheduler, "")


def stopped(number: signal.Signals) -> Callable[[Scene], str]:
    """Make the fault of an API server that is away for a while."""

    def strike(scene: Scene) -> str:
        scene.go_to_the_middle()
        scene.plane.stop_apiserver(number)
        time.sleep(scene.size.seconds)
        scene.plane.start_apiserver(controllers=False)
        return ""

    return strike


def _away_for_longer_than_the_lease(scene: Scene) -> str:
    """Keep the server away until the leader has given up, which takes 4 s, and was started again."""
    scene.go_to_the_middle()
    [leader] = scene.schedulers
    leader.is_kept = False
    scene.plane.stop_apiserver()
    scene.until(lambda: not leader.running, "the leader gives up", 30)
    scene.plane.start_apiserver(controllers=False)
    leader.is_kept = True
    return "ended by itself, as it must"


def _compacted(scene: Scene) -> str:
    scene.go_to_the_middle()
    scene.plane.expire(controllers=False)
    return ""


def _conflicts(scene: Scene) -> str:
    """Bind every third pod elsewhere, of which the scheduler hears only after it has tried to bind them all."""
    assert scene.proxy is not None
    where = f"{scene.prefix}-theirs"
    scene.make_node(where, scene.size.pods * MILLIS, APART)
    scene.proxy.use(late=LATE)
    won = sum(bind(scene.api, name, where) for name in scene.unbound()[::3])
    scene.resume()
    scene.comes_true(lambda: not scene.unbound(), LATE)
    scene.proxy.use()
    return f"{won} pods were bound by another client"


def bind(api: Api, name: str, node: str) -> bool:
    """Bind a pod, and tell whether nobody had done so before."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    try:
        api.call("POST", f"/api/v1/namespaces/default/pods/{name}/binding", body)
    except RefusedError as error:
        assert error.status == 409, error
        return False
    return True


def requests_fail(scene: Scene) -> str:
    """Let some requests fail while pods come and go."""
    assert scene.proxy is not None
    scene.proxy.use(seed=7)
    scene.resume()
    scene.churn()
    scene.comes_true(lambda: not scene.unbound(), scene.size.seconds * 4)
    scene.proxy.use()
    return f"{scene.proxy.struck} requests failed"


def _watches_cut(scene: Scene) -> str:
    assert scene.proxy is not None
    scene.proxy.use(lasting=1.0)
    scene.resume()
    scene.churn()
    scene.proxy.use()
    return f"{scene.proxy.struck} watches were cut"


def _events_late(scene: Scene) -> str:
    assert scene.proxy is not None
    scene.proxy.use(late=LATE)
    scene.resume()
    scene.churn()
    scene.proxy.use()
    return ""


def deleted(scene: Scene) -> str:
    """Delete every third pod and a node while pods are bound."""
    gone = scene.unbound()[::-3]
    scene.go_to_the_middle()
    half = len(gone) // 2
    scene.delete_pods(gone[:half])
    scene.api.delete("Node", f"{scene.prefix}-n00")
    scene.delete_pods(gone[half:])
    return ""


def _leader_killed(scene: Scene) -> str:
    """Kill the one that leads; the other one is there already, and nothing is started again."""
    scene.go_to_the_middle()
    holder = scene.api.get("Lease", "faults", "kube-system")["spec"]["holderIdentity"]
    leader = next(one for one in scene.schedulers if one.leads())
    leader.end(signal.SIGKILL)
    scene.schedulers.remove(leader)
    scene.until(lambda: _holder(scene) not in {"", holder}, "another one leads")
    return ""


def _holder(scene: Scene) -> str:
    return str(scene.api.get("Lease", "faults", "kube-system")["spec"].get("holderIdentity", ""))


def _clock_jumps(scene: Scene) -> str:
    """Set the wall clock an hour ahead, two hours back, and right again, while pods are bound and the lease is held."""
    scene.go_to_the_middle()
    [one] = scene.schedulers
    for seconds in (3600.0, -3600.0, 0.0):
        one.set_clock(seconds)
        scene.make_left(scene.size.pods // 6)
        time.sleep(scene.size.seconds / 3)
    return ""


def _together(scene: Scene) -> str:
    scene.resume()
    scene.comes_true(lambda: not scene.unbound(), scene.size.seconds * 4)
    return ""


def _another_scheduler(scene: Scene) -> str:
    """Let a stock kube-scheduler bind half of the pods on the same nodes."""
    file = scene.plane.folder / f"{OTHER}.yaml"
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": OTHER}],
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(scene.plane.kubeconfig()), "qps": 5000, "burst": 5000},
    }
    file.write_text(yaml.safe_dump(config), "utf-8")
    other = scene.plane.start(OTHER, [binary("kube-scheduler"), f"--config={file}", "--secure-port=0"])
    try:
        scene.until(lambda: scene.bound() > 0, "the other one has begun")
        scene.resume()
        scene.until(lambda: scene.bound() == scene.size.pods, "all pods are bound")
    finally:
        other.stop()
    return ""


def _log_full(scene: Scene) -> str:
    scene.resume()
    scene.comes_true(lambda: not scene.unbound(), scene.size.seconds * 4)
    return "" if all(one.can_tell for one in scene.schedulers) else "state not asked: it is told in the log"


def _servers_upgraded(scene: Scene) -> str:
    """Start the schedulers on an API server of the older minor, then send requests to both minors, then to the newer.

    The rules of a scheduler are those of the minor at its start, until it ends.
    """
    assert scene.proxy is not None
    older = next(iter(RELEASES.values()))
    server, url = scene.plane.start_second_apiserver(older)
    try:
        scene.proxy.use(targets=[url])
        for one in scene.schedulers:
            one.restart()
        scene.until(lambda: scene.bound() > 0, "the first pod is bound")
        scene.proxy.use(targets=[url, scene.plane.url], lasting=1.0)
        scene.churn()
    finally:
        scene.proxy.use()
        server.stop()
    followed = f"decisions follow Kubernetes {older.version}"
    assert all(followed in one.log for one in scene.schedulers if one.name == "policysched"), followed
    return f"{older.version} and {chosen().version} side by side, then {chosen().version}"


def _out_of_memory(scene: Scene) -> str:
    """Let it have no more than it has, while large pods come that fit nowhere; then as much as it likes."""
    for one in scene.schedulers:
        one.limit_memory(1.0)
    scene.resume()
    tolerations = [{"key": f"{number:03}-{'x' * 55}", "operator": "Exists"} for number in range(300)]
    large = scene.make_pods(LARGE, nodeSelector={"there": "is-none"}, tolerations=tolerations)
    scene.comes_true(lambda: scene.bound() == scene.size.pods, scene.size.seconds)
    ends = sum(one.restarts for one in scene.schedulers)
    for one in scene.schedulers:
        one.limit_memory(None)
    scene.delete_pods(large)
    return "" if ends else "did not end"


FAULTS: Final = (
    Fault("API server stopped (SIGTERM)", stopped(signal.SIGTERM)),
    Fault("API server killed (SIGKILL)", stopped(signal.SIGKILL)),
    Fault("API server away longer than the renew deadline", _away_for_longer_than_the_lease, elects=True),
    Fault("etcd compacted, watches too old", _compacted),
    Fault("bind conflicts", _conflicts, proxied=True),
    Fault("5 % of requests fail", requests_fail, proxied=True),
    Fault("watches cut every second", _watches_cut, proxied=True),
    Fault("watch events 3 s late", _events_late, proxied=True),
    Fault("pods and a node deleted", deleted),
    Fault("leader killed, standby takes over", _leader_killed, instances=2, elects=True),
    Fault(
        "clock jumps",
        _clock_jumps,
        elects=True,
        not_tried=(("kube-scheduler", "not tried: a Go program asks the kernel for the time"),),
    ),
    Fault("two instances without election", _together, instances=2, shares=True),
    Fault("another scheduler on the same nodes", _another_scheduler, shares=True, others=0.5),
    Fault("disk full for logs", _log_full, muted=True),
    Fault("memory limit reached", _out_of_memory),
    Fault(
        "API servers upgraded to the next minor",
        _servers_upgraded,
        proxied=True,
        not_tried=(("kube-scheduler", "not tried: it does not support API servers of an older minor"),),
    ),
)
