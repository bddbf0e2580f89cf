"""Creation of the extenders in a configuration, and handling of resources that only extenders manage.

Source: pkg/scheduler/scheduler.go (buildExtenders), v1.36.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from policysched.app.configuration.model import (
    Configuration,
    ExtenderConfig,
    PluginConfig,
    ProfileConfig,
)
from policysched.extenders.settings import DEFAULT_TIMEOUT, ExtenderSettings, TlsSettings
from policysched.plugins.node_resources.fit import FitArguments
from policysched.reading.durations import nanoseconds

if TYPE_CHECKING:
    from policysched.extenders.http_extender import HttpExtender, ObjectTexts


def make_extenders(
    configuration: Configuration, texts: ObjectTexts, may_bind: Callable[[], bool] = lambda: True
) -> tuple[HttpExtender, ...]:
    """Return the extenders of a configuration in calling order; ignorable extenders are last.

    Args:
        configuration: The whole configuration.
        texts: Source of objects as the API server wrote them.
        may_bind: Whether bind requests may be sent.

    Raises:
        UsageError: a URL or certificate is invalid.
    """
    if not configuration.extenders:
        return ()
    from policysched.extenders.http_extender import HttpExtender  # noqa: PLC0415 - a start without them needs none

    made = (HttpExtender(_settings(one), texts, os.environ, may_bind=may_bind) for one in configuration.extenders)
    return tuple(sorted(made, key=lambda one: one.ignorable))


def without_extenders_resources(configuration: Configuration) -> Sequence[ProfileConfig]:
    """Return profiles whose NodeResourcesFit ignores resources that only extenders manage; the other arguments stay.

    Source: kube-scheduler/config/v1 (ExtenderManagedResource.IgnoredByScheduler).
    """
    managed = (one for extender in configuration.extenders for one in extender.managed_resources)
    ignored = tuple(one.name for one in managed if one.ignored_by_scheduler)
    if not ignored:
        return configuration.profiles
    return [
        replace(one, plugin_config=tuple(_ignoring(part, ignored) for part in one.plugin_config))
        for one in configuration.profiles
    ]


def _ignoring(given: PluginConfig, ignored: tuple[str, ...]) -> PluginConfig:
    if not isinstance(given.args, FitArguments):
        return given
    return replace(given, args=replace(given.args, ignored_resources=ignored))


def _settings(given: ExtenderConfig) -> ExtenderSettings:
    timeout = (nanoseconds(given.http_timeout) or 0) / 1e9
    return ExtenderSettings(
        url_prefix=given.url_prefix,
        filter_verb=given.filter_verb,
        prioritize_verb=given.prioritize_verb,
        preempt_verb=given.preempt_verb,
        bind_verb=given.bind_verb,
        weight=given.weight,
        enable_https=given.enable_https,
        tls=given.tls_config or TlsSettings(),
        timeout=timeout if timeout > 0 else DEFAULT_TIMEOUT,
        node_cache_capable=given.node_cache_capable,
        managed_resources=frozenset(one.name for one in given.managed_resources),
        ignorable=given.ignorable,
    )
