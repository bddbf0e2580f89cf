"""`policysched run`: the scheduler as a process, outside a cluster or in it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.options import (
    AlwaysAllowPaths,
    BindAddress,
    CertDir,
    ClientCaFile,
    Context,
    Kubeconfig,
    LeaderElect,
    LeaseDuration,
    MetricsFile,
    Plugin,
    PrometheusCa,
    PrometheusToken,
    PrometheusUrl,
    RenewDeadline,
    ResourceLock,
    ResourceName,
    ResourceNamespace,
    RetryPeriod,
    SecurePort,
    TlsCertFile,
    TlsKeyFile,
    read_switch,
)
from policysched.cli.output import log_to_stderr
from policysched.errors import UsageError


def run(  # noqa: PLR0913, PLR0917 - one parameter a flag
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option("--scheduler-name", metavar="NAME", help="Pods of this schedulerName are ours; may be repeated."),
    ] = None,
    prometheus_url: PrometheusUrl = None,
    prometheus_token_file: PrometheusToken = None,
    prometheus_ca_file: PrometheusCa = None,
    metrics_file: MetricsFile = None,
    metrics_interval: Annotated[
        str, typer.Option("--metrics-interval", metavar="DURATION", help="How often metrics are asked for.")
    ] = "15s",
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration; read again when it changes."),
    ] = None,
    plugin: Plugin = None,
    secure_port: SecurePort = None,
    bind_address: BindAddress = "0.0.0.0",  # noqa: S104 - as kube-scheduler
    cert_dir: CertDir = None,
    tls_cert_file: TlsCertFile = None,
    tls_private_key_file: TlsKeyFile = None,
    client_ca_file: ClientCaFile = None,
    authorization_always_allow_paths: AlwaysAllowPaths = None,
    leader_elect: LeaderElect = None,
    leader_elect_lease_duration: LeaseDuration = None,
    leader_elect_renew_deadline: RenewDeadline = None,
    leader_elect_retry_period: RetryPeriod = None,
    leader_elect_resource_lock: ResourceLock = None,
    leader_elect_resource_name: ResourceName = None,
    leader_elect_resource_namespace: ResourceNamespace = None,
    verbosity: Annotated[int, typer.Option("--v", metavar="LEVEL", min=0, max=10, help="How much is logged.")] = 0,
) -> int:
    """Run the scheduler until SIGTERM or SIGINT, with a kubeconfig or a pod's own credentials."""
    from policysched.app.configuration.election import read_flags  # noqa: PLC0415
    from policysched.app.configuration.profiles import DEFAULT_NAME  # noqa: PLC0415
    from policysched.app.plugins.discovery import configurable_plugins  # noqa: PLC0415
    from policysched.app.running.node_metrics import MetricOptions, read_interval  # noqa: PLC0415 - the engine is not needed for --help
    from policysched.app.running.run import RunOptions, run_scheduler  # noqa: PLC0415
    from policysched.app.serving.options import ALWAYS_ALLOWED, PORT, ServingOptions, read_paths  # noqa: PLC0415
    from policysched.cli.event_loop import serve  # noqa: PLC0415

    log_to_stderr(verbosity)
    election = read_flags(
        {
            "leader_elect": read_switch("--leader-elect", leader_elect),
            "lease_duration": leader_elect_lease_duration,
            "renew_deadline": leader_elect_renew_deadline,
            "retry_period": leader_elect_retry_period,
            "resource_lock": leader_elect_resource_lock,
            "resource_name": leader_elect_resource_name,
            "resource_namespace": leader_elect_resource_namespace,
        }
    )
    known = configurable_plugins(plugin, config)
    for problem in known.problems:
        logging.getLogger(__name__).warning("%s", problem)
    if config is not None and scheduler_name:
        raise UsageError("--scheduler-name: with --config its profiles have the names")
    names = tuple(dict.fromkeys(scheduler_name or [DEFAULT_NAME]))
    if not all(name.strip() for name in names):
        raise UsageError("--scheduler-name: a name is needed")
    interval = read_interval(metrics_interval)
    metrics = MetricOptions(prometheus_url, prometheus_token_file, prometheus_ca_file, metrics_file, interval)
    serving = ServingOptions(
        port=PORT if secure_port is None else secure_port,
        bind_address=bind_address,
        certificate_folder=cert_dir,
        certificate=tls_cert_file,
        key=tls_private_key_file,
        client_ca=client_ca_file,
        always_allowed=read_paths(authorization_always_allow_paths or ALWAYS_ALLOWED),
        is_optional=secure_port is None,
    )
    serving.check()
    options = RunOptions(
        kubeconfig=kubeconfig,
        context=context,
        scheduler_names=names,
        config=config,
        plugins=known.registry,
        metrics=metrics,
        serving=serving,
        leader_election=election,
    )
    serve(lambda stop: run_scheduler(options, stop))
    return 0
