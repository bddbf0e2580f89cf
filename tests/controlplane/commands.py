"""The command lines of the control plane's programs.

Pure data about flags; nothing is started here. All listen on loopback alone, and etcd need not survive a power cut.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

Command = list[str | Path]
CONTROLLERS: Final = (
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "serviceaccount-controller",
    "statefulset-controller",
)

BINDINGS_ALONE: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods/binding"]}]},
        {"level": "None"},
    ],
}
"""What the API server writes down: who was bound."""
POD_GROUPS: Final = "GenericWorkload"
"""The feature gate of pod groups."""
_ADVERTISED: Final = "192.0.2.1"
"""An address that nobody has: loopback is refused, and a machine without a network has no other."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of one control plane."""

    etcd: int
    peer: int
    apiserver: int
    manager: int


def audit_policy(folder: Path) -> Path:
    """Give the file that says what the API server writes down."""
    return folder / "audit.yaml"


def audit_log(folder: Path) -> Path:
    """Give the file where it does."""
    return folder / "audit.log"


def etcd(program: Path, folder: Path, ports: Ports) -> Command:
    """Give etcd's command."""
    clients, peers = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.peer}"
    return [
        program,
        "--name=only",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=only={peers}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(program: Path, folder: Path, ports: Ports) -> Command:
    """Give kube-apiserver's command."""
    return [
        program,
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        f"--advertise-address={_ADVERTISED}",
        "--external-hostname=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={ports.apiserver}",
        f"--cert-dir={folder}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'sa.key'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1000",
        "--shutdown-watch-termination-grace-period=1s",
        "--profiling=false",
        f"--audit-policy-file={audit_policy(folder)}",
        f"--audit-log-path={audit_log(folder)}",
    ]


def enabled(gates: Sequence[str]) -> list[str]:
    """Give the flag that enables feature gates; none without gates."""
    return [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []


def served(gates: Sequence[str]) -> list[str]:
    """Give kube-apiserver's flag for the versions that a feature gate needs and that are not served by default."""
    return ["--runtime-config=scheduling.k8s.io/v1beta1=true"] if POD_GROUPS in gates else []


def controller_manager(
    program: Path, folder: Path, ports: Ports, controllers: Sequence[str], gates: Sequence[str] = ()
) -> Command:
    """Give kube-controller-manager's command.

    A day's grace for nodes: a machine that was asleep must not turn them unreachable.
    """
    return [
        program,
        f"--kubeconfig={folder / 'kubeconfig'}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.manager}",
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        "--node-monitor-grace-period=24h",
        "--node-monitor-period=1s",
        f"--root-ca-file={folder / 'ca.crt'}",
        f"--service-account-private-key-file={folder / 'sa.key'}",
        f"--controllers={','.join(controllers)}",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-gc-syncs=5",
        *enabled(gates),
    ]


def kubelets(folder: Path, url: str) -> Command:
    """Give the command of our kubelets."""
    module = "tests.controlplane.kubelet"
    return [sys.executable, "-m", module, f"--server={url}", f"--certificate-authority={folder / 'ca.crt'}"]
