"""Reading of the cluster, policies and configuration that the flags of a command name."""

from __future__ import annotations

from policysched.app.dry_run.inputs import LIVE, ClusterInputs, ClusterSources, Inputs, gather, gather_cluster
from policysched.cli.event_loop import wait_for
from policysched.cli.flags.decisions import DryRunFlags, PlanFlags, WhyFlags
from policysched.cli.flags.policies import TranslateFlags
from policysched.cli.flags.shared import ClusterAccess
from policysched.cli.output import print_left_out
from policysched.model.release_choice import AUTO

ClusterFlags = DryRunFlags | WhyFlags | PlanFlags | TranslateFlags
"""The flags of a command that evaluates a cluster with policies and a configuration."""


def cluster_sources(flags: ClusterFlags, access: ClusterAccess, kube_version: str = AUTO) -> ClusterSources:
    """Return the files and the live cluster that flags name."""
    return ClusterSources(
        flags.cluster or [LIVE], flags.policy or [], flags.config, access.kubeconfig, access.context, kube_version
    )


def read_cluster(sources: ClusterSources) -> ClusterInputs:
    """Read a cluster; print the objects that are left out.

    Raises:
        PolicyschedError: an input cannot be used.
    """
    inputs = wait_for(gather_cluster(sources))
    print_left_out(inputs.left_out)
    return inputs


def read_pod_and_cluster(sources: ClusterSources, pod: str) -> Inputs:
    """Read the file of a pod and a cluster; print the objects that are left out.

    Raises:
        PolicyschedError: an input cannot be used.
    """
    inputs = wait_for(gather(sources, pod))
    print_left_out(inputs.cluster.left_out)
    return inputs
