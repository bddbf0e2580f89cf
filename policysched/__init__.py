"""A Kubernetes scheduler whose filter and score rules are SchedulingPolicy objects.

Python API, without a cluster: `dry_run` decides about one pod, `dry_run_group` about a pod group, `why` explains a pod
of a cluster, `plan` predicts the effect of a change on all pods, `check` validates policies. All accept objects as
`kubectl get -o json` prints them, YAML texts and paths of files, and are imported at first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policysched.app.checking.check import check
    from policysched.app.checking.findings import Finding
    from policysched.app.dry_run.dry_run import dry_run
    from policysched.app.dry_run.group import dry_run_group
    from policysched.app.dry_run.results import GroupReport, Report
    from policysched.app.plan.plan import plan
    from policysched.app.plan.results import Plan
    from policysched.app.why.results import Explanation
    from policysched.app.why.why import why
    from policysched.errors import UsageError
    from policysched.language.messages.diagnostics import Diagnostic

    __version__: str

__all__ = [
    "Diagnostic",
    "Explanation",
    "Finding",
    "GroupReport",
    "Plan",
    "Report",
    "UsageError",
    "__version__",
    "check",
    "dry_run",
    "dry_run_group",
    "plan",
    "why",
]
_MODULES = {
    "Diagnostic": "language.messages.diagnostics",
    "Explanation": "app.why.results",
    "Finding": "app.checking.findings",
    "GroupReport": "app.dry_run.results",
    "Plan": "app.plan.results",
    "Report": "app.dry_run.results",
    "UsageError": "errors",
    "check": "app.checking.check",
    "dry_run": "app.dry_run.dry_run",
    "dry_run_group": "app.dry_run.group",
    "plan": "app.plan.plan",
    "why": "app.why.why",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        from importlib import import_module  # noqa: PLC0415 - see the module's docstring

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - as above

        return version("policysched")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
