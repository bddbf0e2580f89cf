"""Kubeconfigs with fields of any type: accepted, or rejected with a message that names the field."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from policysched.errors import ConnectionProblemError, KubeconfigError
from policysched.kube.connection import find_credentials

EXEC: Final = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "/bin/false",
    "args": ["get-token"],
    "env": [{"name": "A", "value": "b"}],
    "provideClusterInfo": True,
    "interactiveMode": "Never",
}
CONFIG: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "preferences": {"colors": True},
    "clusters": [
        {
            "name": "c",
            "cluster": {
                "server": "https://127.0.0.1:6443",
                "tls-server-name": "api",
                "insecure-skip-tls-verify": True,
                "certificate-authority-data": "eA==",
                "proxy-url": "http://127.0.0.1:1",
            },
        }
    ],
    "users": [{"name": "u", "user": {"token": "t"}}],
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
}
USERS: Final[dict[str, dict[str, Any]]] = {
    "token": {"token": "t", "username": "me", "password": "secret"},
    "file": {"tokenFile": "/dev/null"},
    "certificate": {"client-certificate-data": "eA==", "client-key-data": "eA=="},
    "exec": {"exec": EXEC},
    "provider": {"auth-provider": {"name": "oidc", "config": {"id-token": "a.b.c", "idp-issuer-url": "https://x"}}},
}
ODD: Final[tuple[Any, ...]] = (
    "text",
    "",
    5,
    -1,
    1.5,
    True,
    None,
    [],
    [1],
    ["a"],
    [[]],
    {},
    {"a": 1},
    {1: 2},
    "\0",
    "~nobody-here/x",
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, key))


def with_value(config: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(config)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed


async def refusal(file: Path) -> str:
    """Return the error message for a kubeconfig; empty if it is accepted."""
    try:
        await find_credentials(str(file))
    except ConnectionProblemError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("user", USERS)
async def test_any_field_may_have_any_value(user: str, tmp_path: Path) -> None:
    config = with_value(CONFIG, ("users", 0, "user"), USERS[user])
    file = tmp_path / "config"
    for path in places(config):
        for odd in ODD:
            file.write_text(yaml.safe_dump(with_value(config, path, odd)), "utf-8")
            said = await refusal(file)
            assert "\n" not in said
            assert "object has no attribute" not in said, (path, odd)
            assert not said or len(said) > len("kubeconfig ") + len(str(file))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("users", 0, "user", "exec"), "x", "users[0].user.exec: expected object, got str"),
        (("users", 0, "user", "exec"), {"args": [[]]}, "args[0]: expected bool | int | float | str, got array"),
        (("users", 0, "user", "tokenFile"), 5, "users[0].user.tokenFile: expected text, got int: quote it"),
        (("users",), "u", "users: expected array, got str"),
        (("clusters", 0, "cluster", "insecure-skip-tls-verify"), "yes", "expected bool, got str"),
        (("contexts", 0), "here", "contexts[0]: expected object, got str"),
    ],
)
async def test_a_wrong_type_is_told_with_its_place(
    path: tuple[Any, ...], value: Any, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(with_value(CONFIG, path, value)), "utf-8")
    found = await refusal(file)
    assert found.startswith(f"kubeconfig {file}: ")
    assert said in found


async def test_no_message_tells_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "config"
    secrets = {"password": "hunter2", "client-key-data": "U0VDUkVU", "token": "t0ps3cret"}
    for odd in ("tokenFile", "client-certificate", "client-key", "auth-provider", "exec", "username"):
        for value in ("x", "/nowhere/x", {}, {"name": "gcp"}, {"name": "oidc"}, {"command": "/nowhere"}, None, ""):
            file.write_text(yaml.safe_dump(with_value(CONFIG, ("users", 0, "user"), {**secrets, odd: value})), "utf-8")
            said = await refusal(file)
            assert not [one for one in secrets.values() if one in said], said


@pytest.mark.parametrize("absent", ["token", "exec", "client-key-data", "tokenFile", "auth-provider"])
async def test_a_null_is_absent(absent: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    user = {"username": "me", "password": "secret", absent: None}
    config = with_value(CONFIG, ("users", 0, "user"), user)
    file.write_text(yaml.safe_dump(with_value(config, ("clusters", 0, "cluster"), {"server": "http://127.0.0.1:1"})))
    assert await (await find_credentials(str(file))).authorization() == "Basic bWU6c2VjcmV0"


async def test_of_several_files_the_first_that_names_something_counts(tmp_path: Path) -> None:
    paths = []
    for number, token in enumerate(("first", "second")):
        config = with_value(CONFIG, ("users", 0, "user"), {"token": token})
        config = with_value(config, ("clusters", 0, "cluster"), {"server": f"http://127.0.0.1:{number + 1}"})
        config["contexts"].append({"name": token, "context": {"cluster": "c", "user": "u"}})
        config["current-context"] = token
        paths.append(tmp_path / token)
        paths[-1].write_text(yaml.safe_dump(config), "utf-8")
    credentials = await find_credentials(os.pathsep.join(map(str, paths)))
    assert credentials.configuration.host == "http://127.0.0.1:1"
    assert await credentials.authorization() == "Bearer first"
    credentials = await find_credentials(os.pathsep.join(map(str, paths)), "second")
    assert credentials.configuration.host == "http://127.0.0.1:1"


@pytest.mark.parametrize("user", [{"name": "u"}, {"name": "u", "user": {}}, {"name": "u", "user": None}])
async def test_a_user_of_whom_nothing_is_said_is_anonymous(user: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "config"
    config = with_value(CONFIG, ("users", 0), user)
    file.write_text(yaml.safe_dump(with_value(config, ("clusters", 0, "cluster"), {"server": "http://127.0.0.1:1"})))
    assert await (await find_credentials(str(file))).authorization() is None


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            ("contexts", 0, "context", "user"),
            "reader",
            'names user "reader", which does not exist; the users are: u; '
            "add it with `kubectl config set-credentials reader`",
        ),
        (
            ("users",),
            None,
            'names user "u", which does not exist; the users are: none; add it with `kubectl config set-credentials u`',
        ),
        (
            ("contexts", 0, "context", "cluster"),
            "d",
            'names cluster "d", which does not exist; the clusters are: c; add it with `kubectl config set-cluster d`',
        ),
        (("contexts", 0, "context"), {"user": "u"}, "names no cluster; set one with `kubectl config set-context`"),
        (("contexts", 0, "context"), {"cluster": "c"}, "names no user; set one with `kubectl config set-context`"),
    ],
)
async def test_a_context_without_its_cluster_or_user_is_refused(
    path: tuple[Any, ...], value: Any, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(with_value(CONFIG, path, value)), "utf-8")
    assert await refusal(file) == f'kubeconfig {file}: context "here" {said}'


async def test_a_context_without_user_suffices_for_a_server_without_tls(tmp_path: Path) -> None:
    file = tmp_path / "config"
    config = with_value(CONFIG, ("contexts", 0, "context"), {"cluster": "c"})
    file.write_text(yaml.safe_dump(with_value(config, ("clusters", 0, "cluster"), {"server": "http://127.0.0.1:1"})))
    assert await (await find_credentials(str(file))).authorization() is None


async def test_the_user_of_a_context_may_be_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "users").write_text(yaml.safe_dump({"users": CONFIG["users"]}), "utf-8")
    (tmp_path / "rest").write_text(yaml.safe_dump(CONFIG | {"users": None}), "utf-8")
    paths = os.pathsep.join(str(tmp_path / name) for name in ("rest", "users"))
    assert await (await find_credentials(paths)).authorization() == "Bearer t"


@pytest.mark.parametrize("name", [True, 7])
async def test_names_of_users_may_be_numbers_and_booleans(name: object, tmp_path: Path) -> None:
    file = tmp_path / "config"
    config = with_value(CONFIG, ("contexts", 0, "context", "user"), str(name).lower())
    file.write_text(yaml.safe_dump(with_value(config, ("users", 0, "name"), name)), "utf-8")
    assert await (await find_credentials(str(file))).authorization() == "Bearer t"


@pytest.mark.parametrize(
    "field", [{"as": "bob"}, {"as-uid": "7"}, {"as-groups": ["g"]}, {"as-user-extra": {"a": ["b"]}}]
)
async def test_who_acts_as_another_one_is_refused(field: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "config"
    config = with_value(CONFIG, ("users", 0, "user"), {"token": "t", **field})
    file.write_text(yaml.safe_dump(with_value(config, ("clusters", 0, "cluster"), {"server": "http://127.0.0.1:1"})))
    assert await refusal(file) == f'kubeconfig {file}: user "u" impersonates another user (as), which is not supported'


async def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "config").write_text(yaml.safe_dump(CONFIG), "utf-8")
    credentials = await find_credentials(os.pathsep.join(str(tmp_path / name) for name in ("empty", "config")))
    assert credentials.configuration.host == "https://127.0.0.1:6443"
    with pytest.raises(KubeconfigError, match="has no current-context"):
        await find_credentials(str(tmp_path / "empty"))


async def test_names_and_secrets_may_look_like_numbers(tmp_path: Path) -> None:
    file = tmp_path / "config"
    config = with_value(CONFIG, ("users", 0, "user", "token"), 12345)
    file.write_text(yaml.safe_dump(with_value(config, ("clusters", 0, "cluster"), {"server": "http://127.0.0.1:1"})))
    credentials = await find_credentials(str(file))
    assert await credentials.authorization() == "Bearer 12345"


@pytest.mark.parametrize("paths", ["~nobody-here/config", "\0", ":", "x" * 5000])
async def test_paths_that_lead_nowhere_are_told(paths: str) -> None:
    with pytest.raises(KubeconfigError, match="no kubeconfig at"):
        await find_credentials(paths)


async def test_without_a_home_there_is_no_file_to_look_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(KubeconfigError, match=r"no kubeconfig at ~/\.kube/config"):
        await find_credentials()


@pytest.mark.parametrize("value", ["", None])
async def test_a_plugin_may_be_given_an_empty_variable(value: str | None, tmp_path: Path) -> None:
    plugin, told = tmp_path / "plugin.sh", tmp_path / "told"
    plugin.write_text(f'#!/bin/sh\necho "${{GIVEN-unset}}" > {told}\n')
    plugin.chmod(0o700)
    given = copy.deepcopy(CONFIG)
    given["users"][0]["user"] = {
        "exec": EXEC | {"command": str(plugin), "env": [{"name": "GIVEN", "value": value}, {"name": "A", "value": "b"}]}
    }
    (tmp_path / "config").write_text(yaml.dump(given))
    with pytest.raises(ConnectionProblemError):
        await find_credentials(str(tmp_path / "config"), None)
    assert told.read_text() == "\n"
