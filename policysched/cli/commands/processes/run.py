"""`policysched run`: runs the scheduler as a process, outside or inside a cluster."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from policysched.app.configuration.election import ElectionFlags, read_flags
from policysched.app.configuration.profiles import DEFAULT_NAME
from policysched.app.plugins.discovery import configurable_plugins
from policysched.app.running.metric_options import NO_METRICS, MetricOptions, read_interval
from policysched.app.running.run import run_scheduler, write_configuration
from policysched.app.running.run_options import RECORD_LIMIT, RunOptions
from policysched.app.serving.metrics.metric_limits import read_metric_limits
from policysched.app.serving.options import ALWAYS_ALLOWED, PORT, TTL, ReviewOptions, ServingOptions
from policysched.app.serving.tls_limits import TLS_12, TlsLimits
from policysched.app.serving.users import DEFAULT_PROXY, FrontProxy
from policysched.cli.event_loop import serve
from policysched.cli.flags.declaring import given_flags
from policysched.cli.flags.feature_gates import apply_gates
from policysched.cli.flags.sections import (
    AuthenticationFlags,
    LeaderElectionFlags,
    RunFlags,
    shown_flags,
    without_effect,
)
from policysched.cli.log_setup import log_as
from policysched.cli.version import print_version
from policysched.errors import UsageError
from policysched.model.release_choice import AUTO, first_accepted
from policysched.reading.durations import nanoseconds

log = logging.getLogger(__name__)


def run(flags: RunFlags) -> int:
    """Run the scheduler until a signal, or write its configuration; return the exit code."""
    if flags.everywhere.version not in {None, "false"}:
        print_version()
        return 0
    features, kube_version = flags.features, flags.own.kube_version or AUTO
    gates = partial(apply_gates, features.feature_gates, features.emulated_version, features.min_compatibility_version)
    first_accepted(kube_version, gates)
    verbosity = log_as(flags.logs, shown_flags(flags.given))
    for one in without_effect(flags.given):
        log.warning("%s has no effect: %s", one.option, one.no_effect)
    options = replace(_options(flags), set_verbosity=verbosity.use, kube_version=kube_version, apply_gates=gates)
    if flags.misc.write_config_to is not None:
        write_configuration(options, flags.misc.write_config_to)
        return 0
    serve(lambda stop: run_scheduler(options, stop))
    return 0


def _options(flags: RunFlags) -> RunOptions:
    """Return the options of the scheduler process from flags.

    Raises:
        UsageError: flags are invalid or contradict each other.
    """
    known = configurable_plugins(flags.own.plugin, flags.misc.config)
    for problem in known.problems:
        log.warning("%s", problem)
    deprecated = given_flags(flags.deprecated)
    late = deprecated.pop("pod_max_in_unschedulable_pods_duration", None)
    return RunOptions(
        kubeconfig=deprecated.pop("kubeconfig", None),
        context=flags.own.context,
        master=flags.misc.master,
        scheduler_names=_scheduler_names(flags),
        config=flags.misc.config,
        plugins=known.registry,
        metrics=_metrics(flags),
        serving=_serving(flags),
        leader_election=_election(flags.election),
        configuration_flags=deprecated,
        max_unschedulable=None if late is None else _seconds(late, 0),
        record=flags.own.record,
        record_limit=RECORD_LIMIT if flags.own.record_limit is None else flags.own.record_limit,
    )


def _scheduler_names(flags: RunFlags) -> tuple[str, ...]:
    if flags.misc.config is not None and flags.own.scheduler_name:
        raise UsageError("--scheduler-name cannot be used with --config; set schedulerName in the profiles")
    names = tuple(dict.fromkeys(flags.own.scheduler_name or [DEFAULT_NAME]))
    if not all(name.strip() for name in names):
        raise UsageError("--scheduler-name: name is empty")
    return names


def _election(flags: LeaderElectionFlags) -> ElectionFlags:
    given = given_flags(flags)
    return read_flags(
        {name if name == "leader_elect" else name.removeprefix("leader_elect_"): value for name, value in given.items()}
    )


def _metrics(flags: RunFlags) -> MetricOptions:
    own = flags.own
    interval = NO_METRICS.interval if own.metrics_interval is None else read_interval(own.metrics_interval)
    return MetricOptions(
        own.prometheus_url, own.prometheus_token_file, own.prometheus_ca_file, own.metrics_file, interval
    )


def _serving(flags: RunFlags) -> ServingOptions:
    given, who, rights = flags.serving, flags.authentication, flags.authorization
    made = ServingOptions(
        port=PORT if given.secure_port is None else given.secure_port,
        bind_address=given.bind_address or "",
        certificate_folder=given.cert_dir,
        certificate=given.tls_cert_file,
        key=given.tls_private_key_file,
        named=given.tls_sni_cert_key,
        client_ca=who.client_ca_file,
        proxy_ca=who.requestheader_client_ca_file,
        proxy=_proxy(who),
        always_allowed=rights.authorization_always_allow_paths or ALWAYS_ALLOWED,
        shares_port=bool(given.permit_port_sharing),
        tls=TlsLimits(given.tls_min_version or TLS_12, given.tls_cipher_suites, given.tls_curve_preferences),
        reviews=ReviewOptions(
            authentication_kubeconfig=who.authentication_kubeconfig,
            authorization_kubeconfig=rights.authorization_kubeconfig,
            token_ttl=_seconds(who.authentication_token_webhook_cache_ttl, TTL),
            allowed_ttl=_seconds(rights.authorization_webhook_cache_authorized_ttl, TTL),
            refused_ttl=_seconds(rights.authorization_webhook_cache_unauthorized_ttl, TTL),
            follows_authorities=not who.authentication_skip_lookup,
            tolerates_failure=who.authentication_tolerate_lookup_failure is not False,
        ),
        metrics=read_metric_limits(
            flags.metrics.disabled_metrics,
            flags.metrics.allow_metric_labels,
            flags.metrics.allow_metric_labels_manifest,
        ),
        is_optional=given.secure_port is None,
    )
    made.check()
    return made


def _proxy(given: AuthenticationFlags) -> FrontProxy:
    default = DEFAULT_PROXY
    return FrontProxy(
        allowed_names=given.requestheader_allowed_names,
        username_headers=given.requestheader_username_headers or default.username_headers,
        uid_headers=given.requestheader_uid_headers,
        group_headers=given.requestheader_group_headers or default.group_headers,
        extra_prefixes=given.requestheader_extra_headers_prefix or default.extra_prefixes,
    )


def _seconds(duration: str | None, default: float) -> float:
    return default if duration is None else (nanoseconds(duration) or 0) / 1e9
