"""The flags of `policysched run`: form, help, default, and the reason why a flag has no effect.

The sections are those of `kube-scheduler --help` plus "Policysched flags". Tests compare the flag names with
kube-scheduler v1.37.2, and the reasons with docs/reference/configuration.md.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from policysched.cli.flags.base import Flags
from policysched.cli.flags.declaring import Flag, FlagCommand, flag, flags_of, parameter, read_section
from policysched.cli.flags.values import (
    ADDRESS,
    CERTIFICATES,
    COUNT,
    DURATION,
    FILE,
    FOLDER,
    INT32,
    LEVELS,
    LIST,
    MAP,
    NAME,
    NUMBER,
    NUMBERS,
    PORT,
    SIZE,
    SWITCH,
    TEXT,
    Form,
    choice,
    whole,
)
from policysched.model.release_choice import AUTO, KUBE_VERSIONS

_NO_HTTP2: Final = "HTTP/2 is not served"
_AT_ONCE: Final = "log lines are not buffered"
_NO_PROFILES: Final = "there is no /debug/pprof"


@dataclass(frozen=True, slots=True, kw_only=True)
class MiscFlags:
    """Flags of `policysched run`: configuration file and API server."""

    TITLE: ClassVar[str] = "Misc flags"
    config: Path | None = flag(FILE, "KubeSchedulerConfiguration file; reloaded when it changes.")
    master: str | None = flag(TEXT, "Address of the API server; overrides the kubeconfig.")
    write_config_to: Path | None = flag(FILE, "Write the configuration with all defaults to this file and exit.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFlags:
    """Flags of `policysched run` that kube-scheduler does not have."""

    TITLE: ClassVar[str] = "Policysched flags"
    scheduler_name: tuple[str, ...] = flag(
        Form("NAME", lambda text: (text,), is_list=True), "Schedule pods with this spec.schedulerName; repeatable."
    )
    kube_version: str | None = flag(
        choice("VERSION", *KUBE_VERSIONS),
        "Kubernetes minor whose kube-scheduler decides; auto follows the API server at the start.",
        default=AUTO,
    )
    context: str | None = flag(NAME, "Kubeconfig context; default: the current context.")
    plugin: tuple[str, ...] = flag(
        Form("[NAME=]MODULE:FACTORY", lambda text: (text,), is_list=True),
        "Python plugin that the configuration can enable; MODULE is a module or a .py file. Repeatable.",
    )
    prometheus_url: str | None = flag(
        Form("URL", str), "URL of the Prometheus server that provides node metrics to policies."
    )
    prometheus_token_file: Path | None = flag(FILE, "Bearer token for Prometheus; the file is read for every query.")
    prometheus_ca_file: Path | None = flag(FILE, "CA certificate of Prometheus, PEM.")
    metrics_file: Path | None = flag(
        FILE, "YAML file with node metrics, in place of Prometheus: `NAME: {NODE: NUMBER}`."
    )
    metrics_interval: str | None = flag(Form("DURATION", str), "Interval between metric queries.", default="15s")
    record: Path | None = flag(FOLDER, "Record every decision in this folder for `policysched replay`.")
    record_limit: int | None = flag(
        Form("BYTES", whole(1024 * 1024, 1 << 62)),
        "Maximum total size of the records, in bytes; the oldest are deleted first.",
        default="268435456",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureServingFlags:
    """Flags of `policysched run`: address, port and TLS of the HTTPS server for metrics and health checks."""

    TITLE: ClassVar[str] = "Secure serving flags"
    bind_address: str | None = flag(
        ADDRESS,
        "IP address to listen on; 0.0.0.0 or :: listens on all. Default: 127.0.0.1 if the API server is on loopback, "
        "else 0.0.0.0.",
    )
    cert_dir: Path | None = flag(FOLDER, "Folder for the self-signed certificate; default: kept in memory.")
    disable_http2_serving: bool | None = flag(SWITCH, no_effect=_NO_HTTP2)
    http2_max_streams_per_connection: int | None = flag(COUNT, no_effect=_NO_HTTP2)
    permit_address_sharing: bool | None = flag(SWITCH, no_effect="SO_REUSEADDR is always used")
    permit_port_sharing: bool | None = flag(
        SWITCH, "Use SO_REUSEPORT, so that several processes can share the port.", default="false"
    )
    secure_port: int | None = flag(
        PORT,
        "HTTPS port for health checks, metrics and dry-runs; 0 disables it. Default: 10259; if 10259 is in use, the "
        "scheduler runs without the port.",
    )
    tls_cert_file: Path | None = flag(FILE, "Server certificate with its chain, PEM; reloaded when it changes.")
    tls_cipher_suites: tuple[str, ...] = flag(LIST, "Allowed TLS 1.2 cipher suites, by IANA name.", default="[]")
    tls_curve_preferences: tuple[int, ...] = flag(
        NUMBERS, "Allowed key exchange, by Go's CurveID; with several, OpenSSL chooses.", default="[]"
    )
    tls_min_version: str | None = flag(
        choice("VERSION", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"),
        "Minimum TLS version: VersionTLS12 or VersionTLS13; lower values mean VersionTLS12.",
        default="VersionTLS12",
    )
    tls_private_key_file: Path | None = flag(FILE, "Private key of the server certificate, PEM.")
    tls_sni_cert_key: tuple[tuple[Path, Path, tuple[str, ...]], ...] = flag(
        CERTIFICATES,
        "Certificate and key for further server names; default: the names in the certificate. Repeatable.",
        default="[]",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationFlags:
    """Flags of `policysched run`: authentication of the clients of its HTTPS server."""

    TITLE: ClassVar[str] = "Authentication flags"
    authentication_kubeconfig: Path | None = flag(
        FILE, "Kubeconfig for TokenReviews and client CAs; default: the scheduler's."
    )
    authentication_skip_lookup: bool | None = flag(SWITCH, "Do not read client CAs from the cluster.", default="false")
    authentication_token_webhook_cache_ttl: str | None = flag(
        DURATION, "How long to cache TokenReview responses.", default="10s"
    )
    authentication_tolerate_lookup_failure: bool | None = flag(
        SWITCH,
        "Start even if the client CAs cannot be read from the cluster, and retry later.",
        default="true",
    )
    client_ca_file: Path | None = flag(FILE, "CA certificates for client certificates, PEM.")
    requestheader_allowed_names: tuple[str, ...] = flag(
        LIST, "Allowed common names of front proxy certificates; default: any."
    )
    requestheader_client_ca_file: Path | None = flag(
        FILE, "CA certificates of front proxies, PEM; default: those that the cluster publishes, with its header names."
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = flag(
        LIST, "Prefixes of request headers with extra user information.", default="[x-remote-extra-]"
    )
    requestheader_group_headers: tuple[str, ...] = flag(
        LIST, "Request headers with the groups of the user.", default="[x-remote-group]"
    )
    requestheader_uid_headers: tuple[str, ...] = flag(LIST, "Request headers with the UID of the user.")
    requestheader_username_headers: tuple[str, ...] = flag(
        LIST, "Request headers with the user name.", default="[x-remote-user]"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationFlags:
    """Flags of `policysched run`: authorization of the clients of its HTTPS server."""

    TITLE: ClassVar[str] = "Authorization flags"
    authorization_always_allow_paths: tuple[str, ...] = flag(
        Form("PATH,...", LIST.read, is_list=True),
        "Paths that need no authorization; repeatable.",
        default="[/healthz,/readyz,/livez]",
    )
    authorization_kubeconfig: Path | None = flag(FILE, "Kubeconfig for SubjectAccessReviews; default: the scheduler's.")
    authorization_webhook_cache_authorized_ttl: str | None = flag(
        DURATION, "How long to cache allowed requests.", default="10s"
    )
    authorization_webhook_cache_unauthorized_ttl: str | None = flag(
        DURATION, "How long to cache denied requests.", default="10s"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecatedFlags:
    """Deprecated flags of `policysched run`; --config overrides all but --pod-max-in-unschedulable-pods-duration."""

    TITLE: ClassVar[str] = "Deprecated flags"
    contention_profiling: bool | None = flag(SWITCH, no_effect=_NO_PROFILES, default="true")
    kube_api_burst: int | None = flag(
        COUNT, "Burst of requests that --kube-api-qps allows. Ignored with --config.", default="100"
    )
    kube_api_content_type: str | None = flag(
        TEXT, no_effect="lists and watches use JSON", default="application/vnd.kubernetes.protobuf"
    )
    kube_api_qps: float | None = flag(
        NUMBER,
        "Maximum requests per second to the API server; negative: no limit. Ignored with --config.",
        default="-1",
    )
    kubeconfig: Path | None = flag(FILE, "Kubeconfig file; default: the one that kubectl uses. Ignored with --config.")
    profiling: bool | None = flag(SWITCH, no_effect=_NO_PROFILES, default="true")
    pod_max_in_unschedulable_pods_duration: str | None = flag(
        DURATION, "How long a pod stays unschedulable before the scheduler retries it without an event.", default="5m0s"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionFlags:
    """Flags of `policysched run`: leader election between replicas."""

    TITLE: ClassVar[str] = "Leader election flags"
    leader_elect: bool | None = flag(SWITCH, "Schedule pods only while this process is the leader.", default="true")
    leader_elect_lease_duration: str | None = flag(
        DURATION, "How long standbys wait for a renewal before they take over.", default="15s"
    )
    leader_elect_renew_deadline: str | None = flag(
        DURATION, "How long the leader tries to renew the lease before it exits.", default="10s"
    )
    leader_elect_resource_lock: str | None = flag(
        Form("KIND", str), "Kind of lock; only leases is supported.", default="leases"
    )
    leader_elect_resource_name: str | None = flag(
        NAME, "Name of the Lease; default with --config: kube-scheduler.", default="policysched"
    )
    leader_elect_resource_namespace: str | None = flag(
        Form("NAMESPACE", str), "Namespace of the Lease.", default="kube-system"
    )
    leader_elect_retry_period: str | None = flag(
        DURATION, "Interval between attempts to acquire or renew the lease.", default="2s"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureGateFlags:
    """Flags of `policysched run`: feature gates, and the Kubernetes versions that their defaults follow."""

    TITLE: ClassVar[str] = "Feature gate flags"
    emulated_version: tuple[str, ...] = flag(
        Form("VERSION,...", LIST.read, is_list=True),
        "Kubernetes version to emulate; only the followed minor is supported. "
        "A newer kube-scheduler that emulates this minor differs from it.",
    )
    feature_gates: tuple[str, ...] = flag(
        Form("GATE=BOOL,...", LIST.read, is_list=True),
        "Feature gates of kube-scheduler; unsupported values are rejected. Repeatable.",
    )
    min_compatibility_version: tuple[str, ...] = flag(
        Form("VERSION,...", LIST.read, is_list=True), no_effect="the version of the API server changes no behaviour"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsFlags:
    """Flags of `policysched run`: hidden metrics and allowed label values on /metrics."""

    TITLE: ClassVar[str] = "Metrics flags"
    allow_metric_labels: tuple[tuple[str, str], ...] = flag(
        MAP, "Allowed values of metric labels: METRIC,LABEL=VALUE,VALUE. Repeatable.", default="[]"
    )
    allow_metric_labels_manifest: Path | None = flag(
        FILE, 'File with allowed label values, one per line: "METRIC,LABEL": "VALUE,VALUE".'
    )
    disabled_metrics: tuple[str, ...] = flag(LIST, "Metrics to hide.")
    show_hidden_metrics_for_version: str | None = flag(
        choice("VERSION", "", "1.35", "1.36", "1.37"), no_effect="hidden metrics are not exported"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsFlags:
    """Flags of `policysched run`: format and verbosity of the log."""

    TITLE: ClassVar[str] = "Logs flags"
    log_flush_frequency: str | None = flag(DURATION, no_effect=_AT_ONCE, default="5s")
    log_json_info_buffer_size: str | None = flag(SIZE, no_effect=_AT_ONCE)
    log_json_split_stream: bool | None = flag(
        SWITCH, "With JSON, write errors to stderr and other lines to stdout.", default="false"
    )
    log_text_info_buffer_size: str | None = flag(SIZE, no_effect=_AT_ONCE)
    log_text_split_stream: bool | None = flag(
        SWITCH, "With text, write errors to stderr and other lines to stdout.", default="false"
    )
    logging_format: str | None = flag(choice("FORMAT", "text", "json"), "Log format: text or json.", default="text")
    v: int | None = flag(Form("LEVEL", whole(0, INT32)), "Log verbosity; 0 logs least.", default="0")
    vmodule: tuple[tuple[str, int], ...] = flag(LEVELS, "Verbosity of modules by name pattern; text format only.")


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalFlags:
    """Flags of `policysched run` that kube-scheduler shows under "Global flags"."""

    TITLE: ClassVar[str] = "Global flags"
    version: str | None = flag(
        choice("[true|raw]", "true", "false", "raw", bare="true"), "Print the version and exit.", default="false"
    )


SECTIONS: Final[Mapping[str, type[Any]]] = {
    "misc": MiscFlags,
    "own": OwnFlags,
    "serving": SecureServingFlags,
    "authentication": AuthenticationFlags,
    "authorization": AuthorizationFlags,
    "deprecated": DeprecatedFlags,
    "election": LeaderElectionFlags,
    "features": FeatureGateFlags,
    "metrics": MetricsFlags,
    "logs": LogsFlags,
    "everywhere": GlobalFlags,
}
"""Dataclasses with the flags of `policysched run`, by the names of their fields in `RunFlags`."""
FLAGS: Final[tuple[Flag, ...]] = tuple(one for section in SECTIONS.values() for one in flags_of(section))


class RunCommand(FlagCommand):
    """Typer command of `policysched run`."""

    bare: Mapping[str, str] = {one.option: one.form.bare for one in FLAGS if one.form.bare}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags(Flags):
    """Run the scheduler.

    It connects with the kubeconfig, or with the service account of its pod. SIGTERM and SIGINT stop it.

    Exit codes: 0 stopped by a signal; 1 the Lease was lost; 2 a file or a flag is invalid, or the start failed.
    """

    COMMAND: ClassVar[type] = RunCommand
    misc: MiscFlags = field(default_factory=MiscFlags)
    own: OwnFlags = field(default_factory=OwnFlags)
    serving: SecureServingFlags = field(default_factory=SecureServingFlags)
    authentication: AuthenticationFlags = field(default_factory=AuthenticationFlags)
    authorization: AuthorizationFlags = field(default_factory=AuthorizationFlags)
    deprecated: DeprecatedFlags = field(default_factory=DeprecatedFlags)
    election: LeaderElectionFlags = field(default_factory=LeaderElectionFlags)
    features: FeatureGateFlags = field(default_factory=FeatureGateFlags)
    metrics: MetricsFlags = field(default_factory=MetricsFlags)
    logs: LogsFlags = field(default_factory=LogsFlags)
    everywhere: GlobalFlags = field(default_factory=GlobalFlags)
    given: Mapping[str, Any] = field(default_factory=dict)
    """The texts that the user gave for flags, by field name."""

    @classmethod
    def parameters(cls) -> Iterator[inspect.Parameter]:
        """Yield the flags as parameters of the function that Typer calls for the command."""
        return map(parameter, FLAGS)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> RunFlags:
        """Return the flags with the values that the user gave; `given` maps field names to texts.

        Raises:
            UsageError: a value is invalid.
        """
        return cls(**{name: read_section(section, given) for name, section in SECTIONS.items()}, given=given)


def shown_flags(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each flag name with its given value or its default, sorted by name."""
    for one in sorted(FLAGS, key=lambda one: one.name):
        text = given.get(one.name.replace("-", "_"))
        listed = f"[{','.join(text)}]" if isinstance(text, list) else text
        yield one.name, listed if listed is not None else one.default


def without_effect(given: Mapping[str, Any]) -> Iterator[Flag]:
    """Yield the flags that the user gave although they have no effect in policysched."""
    for one in FLAGS:
        if one.no_effect and given.get(one.name.replace("-", "_")) is not None:
            yield one
