"""`explain`: runs `why` on the inputs of the command line; errors have file and line."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from policysched.app.checking.findings import Finding
from policysched.app.dry_run.inputs import ClusterInputs
from policysched.app.dry_run.metrics import Measure
from policysched.app.why.results import Explanation
from policysched.app.why.why import why
from policysched.framework.registry import PluginRegistry
from policysched.model.decode import ObjectError


def explain(  # noqa: PLR0913 - what a decision depends on
    inputs: ClusterInputs,
    found: Iterable[Finding],
    pod: str,
    node: str = "",
    *,
    scheduler_name: Collection[str] = (),
    seed: int | None = None,
    now: datetime | None = None,
    metrics: Measure | None = None,
    plugins: PluginRegistry | None = None,
) -> Explanation:
    """Explain why a pod is on its node or pending, for inputs and policy findings of the command line.

    Raises:
        UsageError: the pod or node does not exist, or an object is malformed; the text has its position.
    """
    part = inputs.taking_part(found)
    try:
        explanation = why(
            part.objects, pod, node,
            policies=part.policies, config=inputs.config, scheduler_name=scheduler_name, seed=seed, now=now,
            metrics=metrics, plugins=plugins, kube_version=inputs.kube_version,
        )  # fmt: skip
    except ObjectError as error:
        raise inputs.located(error) from error
    failed = tuple(f"policy {key} does not apply: {reason}" for key, reason in sorted(part.failed.items()))
    return replace(explanation, notes=(*inputs.all_notes, *explanation.notes, *part.notes, *failed))
