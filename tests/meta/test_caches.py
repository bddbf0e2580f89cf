"""Every cache of a function's answers has a bound."""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import policysched
from policysched.language.evaluation import string_kernels
from policysched.language.functions import strings
from policysched.model import quantity
from policysched.model.objects import meta


def test_caches_of_functions_with_arguments_are_bounded() -> None:
    for module in pkgutil.walk_packages(policysched.__path__, "policysched."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.unfreeze()
    caches = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    ours = [one for one in caches if one.__module__.startswith("policysched.")]
    assert len(ours) > 5
    unbounded = [
        one.__qualname__
        for one in ours
        if one.cache_parameters()["maxsize"] is None and inspect.signature(one).parameters
    ]
    assert not unbounded


@pytest.mark.parametrize(
    ("ask", "cache", "text"),
    [
        (quantity.parse, quantity._remembered, "1"),
        (meta.seconds_of, meta._seconds_of, "2026-01-01T00:00:00Z"),
        (strings.key, strings._remembered_key, "1.2"),
        (lambda pattern: string_kernels.matches("a", pattern), string_kernels._remembered_parts, "a*"),
    ],
)
def test_what_is_remembered_of_texts_of_others_is_short(ask: Any, cache: Any, text: str) -> None:
    cache.cache_clear()
    ask(text)
    assert cache.cache_info().currsize == 1
    ask(text + "1" * 2000)
    assert cache.cache_info().currsize == 1
