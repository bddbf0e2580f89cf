"""Reading of kubeconfigs with checks of sizes and types, which the client library's loader does not make.

Types are those of client-go. As in its YAML reader, a number or a boolean is accepted as a name or a secret, and null
is absent. If several files define the same name, the first file is used, as in kubectl.

Source: k8s.io/client-go/tools/clientcmd/api/v1/types.go, v1.36.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from policysched.errors import KubeconfigError
from policysched.kube.client_library import ConfigNode, KubeConfigMerger
from policysched.model.decode import ObjectError, decode
from policysched.reading import bounded_yaml

Scalar = str | int | float | bool


_node: Any = ConfigNode
"""The client library's `ConfigNode`, which has no type annotations."""
LISTS: Final = ("clusters", "contexts", "users")
_FLAGS: Final = frozenset(("insecure-skip-tls-verify", "provideClusterInfo"))


class _Shape(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """Base of the structs into which parts of a kubeconfig are decoded."""


class _Cluster(_Shape, frozen=True):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""


class _Variable(_Shape, frozen=True, omit_defaults=False):  # the loader requires both fields
    name: str = ""
    value: Scalar = ""


class _Exec(_Shape, frozen=True, rename="camel"):
    command: str = ""
    args: list[Scalar] = []
    env: list[_Variable] = []
    api_version: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""
    install_hint: str = ""


class _AuthProvider(_Shape, frozen=True):
    name: str = ""
    config: dict[str, Scalar] = {}


class _User(_Shape, frozen=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: Scalar = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: Scalar = ""
    password: Scalar = ""
    impersonated: Scalar = msgspec.field(name="as", default="")
    as_uid: Scalar = ""
    as_groups: list[Scalar] = []
    as_user_extra: dict[str, list[Scalar]] = {}
    auth_provider: _AuthProvider = _AuthProvider()
    exec: _Exec = _Exec()


class _Context(_Shape, frozen=True):
    cluster: Scalar = ""
    user: Scalar = ""
    namespace: Scalar = ""


class _NamedCluster(_Shape, frozen=True):
    name: Scalar = ""
    cluster: _Cluster = _Cluster()


class _NamedUser(_Shape, frozen=True):
    name: Scalar = ""
    user: _User = _User()


class _NamedContext(_Shape, frozen=True):
    name: Scalar = ""
    context: _Context = _Context()


class _Kubeconfig(_Shape, frozen=True):
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []
    current_context: Scalar = ""


class Kubeconfigs(KubeConfigMerger):
    """Merges checked kubeconfigs for the client library's loader; errors show paths, never contents."""

    def load_config(self, path: str) -> None:
        """Read a file and add the entries whose names earlier files do not define."""
        content = _texts(msgspec.to_builtins(_read(path)))
        if self.config_merged is None:
            self.config_merged = _node(path, {name: [] for name in LISTS}, path)
        merged = self.config_merged.value
        for name in LISTS:
            known = {one.value["name"] for one in merged[name]}
            for one in content.get(name, ()):
                one.setdefault(name.removesuffix("s"), {})
                if one.setdefault("name", "") not in known:
                    known.add(one["name"])
                    merged[name].append(_node(f"{path}/{name}[name={one['name']}]", one, path))
        if current := content.get("current-context"):
            merged.setdefault("current-context", current)
        self.config_files[path] = content


def _texts(value: Any) -> Any:
    """Copy a decoded kubeconfig with numbers and booleans as text, except fields whose type is boolean."""
    if isinstance(value, dict):
        return {name: one if name in _FLAGS else _texts(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_texts(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(files: Sequence[str], context: str | None) -> None:
    """Check that the files are valid kubeconfigs and define the wanted context with its cluster and its user.

    Args:
        files: Existing files.
        context: The context to use instead of the current one.

    Raises:
        KubeconfigError: a file is invalid, or the context, its cluster or its user does not exist.
    """
    paths = os.pathsep.join(files)
    contents = [_read(file) for file in files]
    contexts = {_name(one.name): one.context for content in reversed(contents) for one in reversed(content.contexts)}
    current = next((_name(one.current_context) for one in contents if one.current_context), "")
    wanted = context or current
    if not wanted:
        raise KubeconfigError(
            f"kubeconfig {paths} has no current-context; choose one with --context ({_listed(contexts)})"
        )
    if wanted not in contexts:
        raise KubeconfigError(f'kubeconfig {paths} has no context "{wanted}"; it has {_listed(contexts)}')
    clusters = {_name(one.name): one.cluster for content in reversed(contents) for one in reversed(content.clusters)}
    users = {_name(one.name) for content in contents for one in content.users}
    try:
        _check_context(contexts[wanted], clusters, users)
    except KubeconfigError as error:
        raise KubeconfigError(f'kubeconfig {paths}: context "{wanted}" {error}') from None


def _check_context(context: _Context, clusters: Mapping[str, _Cluster], users: Collection[str]) -> None:
    cluster, user = _name(context.cluster), _name(context.user)
    if not cluster:
        raise KubeconfigError("names no cluster; set one with `kubectl config set-context`")
    if cluster not in clusters:
        raise KubeconfigError(
            f'names cluster "{cluster}", which does not exist; the clusters are: {_listed(clusters)}; '
            f"add it with `kubectl config set-cluster {cluster}`"
        )
    if user and user not in users:
        raise KubeconfigError(
            f'names user "{user}", which does not exist; the users are: {_listed(users)}; '
            f"add it with `kubectl config set-credentials {user}`"
        )
    if not user and clusters[cluster].server.startswith("https"):
        raise KubeconfigError("names no user; set one with `kubectl config set-context`")


def _name(value: Scalar) -> str:
    name: str = _texts(value)
    return name


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _read(file: str) -> _Kubeconfig:
    content = _content(file)
    if content is None:
        return _Kubeconfig()
    if not isinstance(content, dict):
        raise KubeconfigError(f"kubeconfig {file} is not a kubeconfig: expected a mapping")
    try:
        return decode(_Kubeconfig, "kubeconfig", content)
    except ObjectError as error:
        raise KubeconfigError(f"kubeconfig {file}: {error.field}: {error.reason}") from error


def _content(file: str) -> Any:
    try:
        return bounded_yaml.load(Path(file).read_text("utf-8"))
    except OSError as error:
        raise KubeconfigError(f"kubeconfig {file} cannot be read: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise KubeconfigError(f"kubeconfig {file} is not YAML: {place}{error.problem}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise KubeconfigError(f"kubeconfig {file} is not YAML: {' '.join(str(error).split())}") from error
