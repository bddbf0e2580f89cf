"""A Kubernetes scheduler whose filter and score rules are SchedulingPolicy objects.

`dry_run` says where a pod would go and why, `why` why a pod of a cluster is where it is, `plan` what a change would do
to all pods, `check` what is wrong with policies; all take objects as kubectl prints them and need no cluster. They are
imported at first use, because the command line does not always need the engine; the version is looked up when it is
asked for.
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
