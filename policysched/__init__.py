"""A Kubernetes scheduler whose filter and score rules are SchedulingPolicy objects.

Python API, without a cluster: `dry_run` decides about one pod, `why` explains a pod of a cluster, `plan` predicts the
effect of a change on all pods, `check` validates policies. All accept objects as `kubectl get -o json` prints them, and
are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policysched.app.checking.check import check
    from policysched.app.dry_run.dry_run import dry_run
    from policysched.app.plan.plan import plan
    from policysched.app.why.why import why

    __version__: str

__all__ = ["__version__", "check", "dry_run", "plan", "why"]


def __getattr__(name: str) -> Any:
    if name == "check":
        from policysched.app.checking.check import check  # noqa: PLC0415 - see the module's docstring

        return check
    if name == "dry_run":
        from policysched.app.dry_run.dry_run import dry_run  # noqa: PLC0415 - see the module's docstring

        return dry_run
    if name == "plan":
        from policysched.app.plan.plan import plan  # noqa: PLC0415 - see the module's docstring

        return plan
    if name == "why":
        from policysched.app.why.why import why  # noqa: PLC0415 - see the module's docstring

        return why
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - as above

        return version("policysched")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
