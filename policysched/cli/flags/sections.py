"""The flags of `policysched run`, each declared once: its form, what it does, its default, or why it has no effect.

The sections are those of `kube-scheduler --help`, and one of our own. A test compares their names with what
kube-scheduler v1.36.2 lists, and docs/run/high-availability.md with what is said here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, ClassVar, Final

from policysched.cli.flags.declaring import Flag, FlagCommand, flag, flags_of, read_section
from policysched.cli.flags.values import (
    ADDRESS,
    ANY_ADDRESS,
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
from policysched.late_dataclass import dataclass

_NO_HTTP2: Final = "HTTP/2 is not served"
_AT_ONCE: Final = "each line is written at once"
_NO_PROFILES: Final = "there is no /debug/pprof"


@dataclass(frozen=True, slots=True, kw_only=True)
class MiscFlags:
    """Which configuration, and which server."""

    TITLE: ClassVar[str] = "Misc flags"
    config: Path | None = flag(FILE, "A KubeSchedulerConfiguration; read again when it changes.")
    master: str | None = flag(TEXT, "The address of the API server; it counts before the kubeconfig's.")
    write_config_to: Path | None = flag(FILE, "Writes the completed configuration to this file and ends.")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFlags:
    """What kube-scheduler has no flags for."""

    TITLE: ClassVar[str] = "Policysched flags"
    scheduler_name: tuple[str, ...] = flag(
        Form("NAME", lambda text: (text,), is_list=True), "Pods of this schedulerName are ours; may be repeated."
    )
    context: str | None = flag(NAME, "The kubeconfig's context; absent, its current one.")
    plugin: tuple[str, ...] = flag(
        Form("[NAME=]MODULE:FACTORY", lambda text: (text,), is_list=True),
        "A plugin that the configuration may enable; MODULE may be a file. May be repeated.",
    )
    prometheus_url: str | None = flag(Form("URL", str), "The Prometheus server that policies' metrics are asked of.")
    prometheus_token_file: Path | None = flag(FILE, "A bearer token for it; it may rotate.")
    prometheus_ca_file: Path | None = flag(FILE, "The authority of its certificate, in PEM form.")
    metrics_file: Path | None = flag(FILE, "Metrics from a file instead: NAME: {NODE: NUMBER}.")
    metrics_interval: str | None = flag(Form("DURATION", str), "How often metrics are asked for.", default="15s")
    record: Path | None = flag(FOLDER, "Records every decision there with what it read, for `policysched replay`.")
    record_limit: int | None = flag(
        Form("BYTES", whole(1024 * 1024, 1 << 62)),
        "How long the files there may be together; the oldest go.",
        default="268435456",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureServingFlags:
    """The port, and its TLS."""

    TITLE: ClassVar[str] = "Secure serving flags"
    bind_address: str | None = flag(
        ADDRESS, "The address of the port; 0.0.0.0 or :: is all of them.", default=ANY_ADDRESS
    )
    cert_dir: Path | None = flag(FOLDER, "Keeps the self-signed certificate, which else lives in memory.")
    disable_http2_serving: bool | None = flag(SWITCH, no_effect=_NO_HTTP2)
    http2_max_streams_per_connection: int | None = flag(COUNT, no_effect=_NO_HTTP2)
    permit_address_sharing: bool | None = flag(SWITCH, no_effect="SO_REUSEADDR is always used")
    permit_port_sharing: bool | None = flag(
        SWITCH, "Several processes may have the port (SO_REUSEPORT).", default="false"
    )
    secure_port: int | None = flag(
        PORT,
        "Serves health checks, metrics and dry-runs over HTTPS; 0 is off. Absent, 10259 where that is free.",
    )
    tls_cert_file: Path | None = flag(FILE, "The certificate with its chain, PEM; it may rotate.")
    tls_cipher_suites: tuple[str, ...] = flag(LIST, "The cipher suites of TLS 1.2, by their IANA names.", default="[]")
    tls_curve_preferences: tuple[int, ...] = flag(
        NUMBERS, "The one key exchange allowed, by Go's number (CurveID); of several OpenSSL chooses.", default="[]"
    )
    tls_min_version: str | None = flag(
        choice("VERSION", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"),
        "The lowest TLS version: VersionTLS12 or VersionTLS13; a lower one is taken as VersionTLS12.",
        default="VersionTLS12",
    )
    tls_private_key_file: Path | None = flag(FILE, "The certificate's private key, PEM.")
    tls_sni_cert_key: tuple[tuple[Path, Path, tuple[str, ...]], ...] = flag(
        CERTIFICATES,
        "A certificate and key for further names of the server; without NAMEs for those in it. May be repeated.",
        default="[]",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationFlags:
    """Who asks."""

    TITLE: ClassVar[str] = "Authentication flags"
    authentication_kubeconfig: Path | None = flag(
        FILE, "The kubeconfig for TokenReviews and client authorities; absent, the scheduler's own."
    )
    authentication_skip_lookup: bool | None = flag(
        SWITCH, "Reads no client authorities from the cluster.", default="false"
    )
    authentication_token_webhook_cache_ttl: str | None = flag(
        DURATION, "How long the answer of a TokenReview is kept.", default="10s"
    )
    authentication_tolerate_lookup_failure: bool | None = flag(
        SWITCH,
        "Start where the cluster's authorities cannot be read; they are read later then.",
        default="true",
    )
    client_ca_file: Path | None = flag(FILE, "The authorities of clients' certificates, PEM.")
    requestheader_allowed_names: tuple[str, ...] = flag(
        LIST, "The common names of front proxies' certificates; absent, any."
    )
    requestheader_client_ca_file: Path | None = flag(
        FILE, "The authorities of front proxies, PEM; absent, those that the cluster publishes, with its headers."
    )
    requestheader_extra_headers_prefix: tuple[str, ...] = flag(
        LIST, "How headers begin in which a front proxy says more of a user.", default="[x-remote-extra-]"
    )
    requestheader_group_headers: tuple[str, ...] = flag(
        LIST, "The headers in which it says a user's groups.", default="[x-remote-group]"
    )
    requestheader_uid_headers: tuple[str, ...] = flag(LIST, "The headers in which it says a user's UID.")
    requestheader_username_headers: tuple[str, ...] = flag(
        LIST, "The headers in which it says for whom it asks.", default="[x-remote-user]"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationFlags:
    """Who may read what."""

    TITLE: ClassVar[str] = "Authorization flags"
    authorization_always_allow_paths: tuple[str, ...] = flag(
        Form("PATH,...", LIST.read, is_list=True),
        "What anybody may read; may be repeated.",
        default="[/healthz,/readyz,/livez]",
    )
    authorization_kubeconfig: Path | None = flag(
        FILE, "The kubeconfig for SubjectAccessReviews; absent, the scheduler's own."
    )
    authorization_webhook_cache_authorized_ttl: str | None = flag(
        DURATION, "How long a permission is kept.", default="10s"
    )
    authorization_webhook_cache_unauthorized_ttl: str | None = flag(
        DURATION, "How long a refusal is kept.", default="10s"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecatedFlags:
    """What a configuration file says instead: with `--config` all but the last are ignored."""

    TITLE: ClassVar[str] = "Deprecated flags"
    contention_profiling: bool | None = flag(SWITCH, no_effect=_NO_PROFILES, default="true")
    kube_api_burst: int | None = flag(
        COUNT, "Requests at once with --kube-api-qps. Ignored with --config.", default="100"
    )
    kube_api_content_type: str | None = flag(
        TEXT, no_effect="what is listed and watched is JSON", default="application/vnd.kubernetes.protobuf"
    )
    kube_api_qps: float | None = flag(
        NUMBER, "Requests a second, below 0 without a limit. Ignored with --config.", default="-1"
    )
    kubeconfig: Path | None = flag(FILE, "The kubeconfig; absent, the one kubectl would use. Ignored with --config.")
    profiling: bool | None = flag(SWITCH, no_effect=_NO_PROFILES, default="true")
    pod_max_in_unschedulable_pods_duration: str | None = flag(
        DURATION, "After how long a pod that nothing woke is tried again.", default="5m0s"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElectionFlags:
    """How several processes agree on one that works."""

    TITLE: ClassVar[str] = "Leader election flags"
    leader_elect: bool | None = flag(
        SWITCH, "Gain leadership before pods are scheduled; others stand by.", default="true"
    )
    leader_elect_lease_duration: str | None = flag(
        DURATION, "How long others wait for a renewal before they take over.", default="15s"
    )
    leader_elect_renew_deadline: str | None = flag(
        DURATION, "How long a leader tries to renew before it ends.", default="10s"
    )
    leader_elect_resource_lock: str | None = flag(
        Form("KIND", str), "What is held: leases, nothing else.", default="leases"
    )
    leader_elect_resource_name: str | None = flag(
        NAME, "The name of the lease; with --config kube-scheduler.", default="policysched"
    )
    leader_elect_resource_namespace: str | None = flag(
        Form("NAMESPACE", str), "The namespace of the lease.", default="kube-system"
    )
    leader_elect_retry_period: str | None = flag(DURATION, "How long is waited between attempts.", default="2s")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureGateFlags:
    """Which features are asked for."""

    TITLE: ClassVar[str] = "Feature gate flags"
    emulated_version: tuple[str, ...] = flag(
        Form("VERSION,...", LIST.read, is_list=True), "The Kubernetes version to act as: 1.36 and no other."
    )
    feature_gates: tuple[str, ...] = flag(
        Form("GATE=BOOL,...", LIST.read, is_list=True),
        "Gates of kube-scheduler. One that asks for what is not here is refused. May be repeated.",
    )
    min_compatibility_version: tuple[str, ...] = flag(
        Form("VERSION,...", LIST.read, is_list=True), no_effect="API servers of 1.33 and later are served alike"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsFlags:
    """Which metrics are shown."""

    TITLE: ClassVar[str] = "Metrics flags"
    allow_metric_labels: tuple[tuple[str, str], ...] = flag(
        MAP, "The values that labels of metrics may have: METRIC,LABEL=VALUE,VALUE. May be repeated.", default="[]"
    )
    allow_metric_labels_manifest: Path | None = flag(
        FILE, 'The same as a file, with lines such as "METRIC,LABEL": "VALUE,VALUE".'
    )
    disabled_metrics: tuple[str, ...] = flag(LIST, "Metrics that are not shown.")
    show_hidden_metrics_for_version: str | None = flag(
        choice("VERSION", "", "1.35"), no_effect="no metric of 1.36 is hidden"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsFlags:
    """What is logged, and how."""

    TITLE: ClassVar[str] = "Logs flags"
    log_flush_frequency: str | None = flag(DURATION, no_effect=_AT_ONCE, default="5s")
    log_json_info_buffer_size: str | None = flag(SIZE, no_effect=_AT_ONCE)
    log_json_split_stream: bool | None = flag(
        SWITCH, "With JSON, errors go to stderr and the rest to stdout.", default="false"
    )
    log_text_info_buffer_size: str | None = flag(SIZE, no_effect=_AT_ONCE)
    log_text_split_stream: bool | None = flag(
        SWITCH, "With text, errors go to stderr and the rest to stdout.", default="false"
    )
    logging_format: str | None = flag(
        choice("FORMAT", "text", "json"), "How lines are written: text or json.", default="text"
    )
    v: int | None = flag(Form("LEVEL", whole(0, INT32)), "How much is logged.", default="0")
    vmodule: tuple[tuple[str, int], ...] = flag(
        LEVELS, "Levels of single modules, by patterns of their names; with text alone."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalFlags:
    """What has nothing to do with scheduling."""

    TITLE: ClassVar[str] = "Global flags"
    version: str | None = flag(
        choice("[true|raw]", "true", "false", "raw", bare="true"), "Prints the version and ends.", default="false"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What was given, section by section."""

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


SECTIONS: Final[Mapping[str, type[Any]]] = {one.name: type(getattr(RunFlags(), one.name)) for one in fields(RunFlags)}
FLAGS: Final[tuple[Flag, ...]] = tuple(one for section in SECTIONS.values() for one in flags_of(section))


class RunCommand(FlagCommand):
    """`policysched run`."""

    bare: Mapping[str, str] = {one.option: one.form.bare for one in FLAGS if one.form.bare}


def read_run_flags(given: Mapping[str, Any]) -> RunFlags:
    """Read what was given.

    Raises:
        UsageError: a value cannot be used.
    """
    return RunFlags(**{name: read_section(section, given) for name, section in SECTIONS.items()})


def shown_flags(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name every flag with its value as it was given, or its default, in the order of names."""
    for one in sorted(FLAGS, key=lambda one: one.name):
        text = given.get(one.name.replace("-", "_"))
        listed = f"[{','.join(text)}]" if isinstance(text, list) else text
        yield one.name, listed if listed is not None else one.default


def without_effect(given: Mapping[str, Any]) -> Iterator[Flag]:
    """List the flags that were given and have no effect."""
    for one in FLAGS:
        if one.no_effect and given.get(one.name.replace("-", "_")) is not None:
            yield one
