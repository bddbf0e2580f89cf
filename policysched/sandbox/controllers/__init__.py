"""The small parts of kube-controller-manager and of kubelets that make a cluster look alive.

In come the storage's events; a controller queues the names of what changed and looks at each a moment later, as real
ones do. Out come writes to the storage: pods that run, ReplicaSets and pods of Deployments, taints, deletions.
"""

from __future__ import annotations

from policysched.sandbox.controllers.garbage import GarbageCollector, NamespaceController
from policysched.sandbox.controllers.nodes import Kubelets, NodeLifecycleController
from policysched.sandbox.controllers.workloads import DeploymentController, ReplicaSetController

CONTROLLERS = (
    Kubelets,
    NodeLifecycleController,
    NamespaceController,
    GarbageCollector,
    ReplicaSetController,
    DeploymentController,
)
