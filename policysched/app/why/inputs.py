"""`explain`: `why` for what the command line names, a pod of the cluster that was read; errors name file and line."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from policysched.app.checking.findings import Finding
from policysched.app.dry_run.dry_run import Measure
from policysched.app.dry_run.inputs import ClusterInputs
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
    """Say why a pod is where it is; beside `inputs` and what checking found, the arguments are those of `why`.

    Raises:
        UsageError: there is no such pod or node, or an object is malformed; the text says where it stands.
    """
    part = inputs.taking_part(found)
    try:
        told = why(
            part.objects, pod, node,
            policies=part.policies, config=inputs.config, scheduler_name=scheduler_name, seed=seed, now=now,
            metrics=metrics, plugins=plugins,
        )  # fmt: skip
    except ObjectError as error:
        raise inputs.located(error) from error
    failed = tuple(f"policy {key} does not apply: {reason}" for key, reason in sorted(part.failed.items()))
    return replace(told, notes=(*inputs.all_notes, *told.notes, *part.notes, *failed))
