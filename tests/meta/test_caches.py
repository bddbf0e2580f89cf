"""Every cache of a function's answers has a bound."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import pkgutil

import policysched


def test_caches_of_functions_with_arguments_are_bounded() -> None:
    for module in pkgutil.walk_packages(policysched.__path__, "policysched."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    caches = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    ours = [one for one in caches if one.__module__.startswith("policysched.")]
    assert len(ours) > 5
    unbounded = [
        one.__qualname__
        for one in ours
        if one.cache_parameters()["maxsize"] is None and inspect.signature(one).parameters
    ]
    assert not unbounded
