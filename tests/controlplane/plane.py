"""A real Kubernetes on loopback for tests: etcd, kube-apiserver, kube-controller-manager and kubelets of our own.

It knows nothing of schedulers: the one under test is a client like any other. Each program is the real one, so what a
test sees here is what a cluster does; only the kubelets pretend, because pods must run somewhere.
"""

from __future__ import annotations

import contextlib
import http
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from tests.controlplane.api import Api, Json
from tests.controlplane.build import binary
from tests.controlplane.commands import (
    BINDINGS_ALONE,
    CONTROLLERS,
    Ports,
    apiserver,
    audit_log,
    audit_policy,
    controller_manager,
    enabled,
    etcd,
    kubelets,
    served,
)
from tests.controlplane.etcd import Etcd
from tests.controlplane.identities import Identities
from tests.controlplane.loading import await_use, load, until
from tests.controlplane.programs import Program, Warden, free_port
from tests.controlplane.releases import Release
from tests.controlplane.wiping import wipe

KUBECTL_SECONDS: Final = 60.0


class ControlPlane:
    """A context manager around one control plane.

    Args:
        controllers: the controllers that kube-controller-manager runs; `*` are those it runs by itself.
        users: further users with a token, and their groups; they may do nothing until a role says so.
        kubelets: whether nodes have kubelets.
        apiserver_flags: further flags of kube-apiserver.
        gates: feature gates of the API server and of the controllers; GenericWorkload has pod groups served.
    """

    def __init__(
        self,
        *,
        controllers: Sequence[str] = CONTROLLERS,
        users: Mapping[str, Sequence[str]] | None = None,
        kubelets: bool = True,
        apiserver_flags: Sequence[str] = (),
        gates: Sequence[str] = (),
    ) -> None:
        self._controllers = controllers
        self._users = users or {}
        self._with_kubelets = kubelets
        self._flags = [*apiserver_flags, *served(gates), *enabled(gates)]
        self._gates = gates
        self._entered = False
        self.keep_logs = False
        """Whether the logs remain at the end; set by an exception, or by a test that failed."""

    def __enter__(self) -> Self:
        programs = {name: binary(name) for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")}
        self.folder = Path(tempfile.mkdtemp(prefix="policysched-controlplane-"))
        self.warden = Warden(self.folder)
        try:
            self._prepare(programs)
            self._start()
        except BaseException:
            self.keep_logs = True
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.keep_logs = self.keep_logs or kind is not None
        self._end()

    @property
    def logs(self) -> Path:
        """The folder with each program's log."""
        return self.folder / "logs"

    def _prepare(self, programs: Mapping[str, Path]) -> None:
        self.logs.mkdir()
        audit_policy(self.folder).write_text(yaml.safe_dump(BINDINGS_ALONE), "utf-8")
        self._ports = ports = Ports(*(free_port() for _ in range(4)))
        self.url = f"https://127.0.0.1:{ports.apiserver}"
        self.identities = Identities(self.folder, self.url, self._users)
        self.api = Api(ports.apiserver, self.identities.tls(), self.identities.token())
        self._manager = Api(ports.manager, self.identities.tls(), "")
        self.etcd = Etcd(ports.etcd)
        self._admin = self.identities.with_token(self.folder / "kubeconfig")
        self._kubectl = programs["kubectl"]
        commands = {
            "etcd": etcd(programs["etcd"], self.folder, ports),
            "kube-apiserver": [*apiserver(programs["kube-apiserver"], self.folder, ports), *self._flags],
            "kubelets": kubelets(self.folder, self.url),
            "kube-controller-manager": controller_manager(
                programs["kube-controller-manager"], self.folder, ports, self._controllers, self._gates
            ),
        }
        self._programs = {
            name: Program(name, command, self.logs / f"{name}.log", self.warden) for name, command in commands.items()
        }
        self._programs["kubelets"].environment["KUBELET_TOKEN"] = self.identities.token()

    def _start(self) -> None:
        """Start everything at once but the controllers: they give up where the API server is not there in time."""
        for name in ("etcd", "kube-apiserver"):
            self._programs[name].start()
        if self._with_kubelets:
            self._programs["kubelets"].start()
        self._programs["etcd"].wait(self.etcd.healthy)
        self._programs["kube-apiserver"].wait(lambda: self.api.answers("/readyz"))
        self._start_manager()
        manager = self._programs["kube-controller-manager"]
        manager.wait(lambda: self.api.answers("/api/v1/namespaces/default/serviceaccounts/default"))

    def _start_manager(self) -> None:
        manager = self._programs["kube-controller-manager"]
        manager.start()
        manager.wait(lambda: self._manager.answers("/healthz"))

    def _end(self) -> None:
        for program in reversed(getattr(self, "_programs", {}).values()):
            program.stop()
        if hasattr(self, "api"):
            self.api.close()
            self._manager.close()
        for path in self.folder.iterdir():
            if path != self.logs:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not self.keep_logs:
            shutil.rmtree(self.folder)
        self.warden.dismiss()

    def start(self, name: str, command: Sequence[str | Path]) -> Program:
        """Start a further program, whose log is among the others; it is stopped before them."""
        program = Program(name, command, self.logs / f"{name}.log", self.warden)
        program.start()
        self._programs[name] = program
        return program

    def start_second_apiserver(self, release: Release) -> tuple[Program, str]:
        """Start an API server of another release on the same etcd; return it with its URL once it is ready."""
        ports = replace(self._ports, apiserver=free_port())
        command = apiserver(binary("kube-apiserver", release), self.folder, ports)
        program = self.start(f"kube-apiserver-{release.version}", [*command, *self._flags])
        api = Api(ports.apiserver, self.identities.tls(), self.identities.token())
        program.wait(lambda: api.answers("/readyz"))
        api.close()
        return program, f"https://127.0.0.1:{ports.apiserver}"

    def stop_apiserver(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop the API server and wait until it is gone: connections are refused from then on.

        Args:
            number: SIGTERM ends watches in order, SIGKILL in the middle of whatever is under way.
        """
        self._programs["kube-apiserver"].stop(number)
        self.api.close()

    def bindings(self) -> Counter[str]:
        """Count the bindings that the API server has made, by the pod's `NAMESPACE/NAME`."""
        found: Counter[str] = Counter()
        for line in audit_log(self.folder).read_text("utf-8").splitlines():
            with contextlib.suppress(ValueError):  # what was being written when the server was killed
                told = json.loads(line)
                pod = told["objectRef"]
                found[f"{pod['namespace']}/{pod['name']}"] += told["responseStatus"]["code"] == http.HTTPStatus.CREATED
        return found

    def start_apiserver(self, *, controllers: bool = True) -> None:
        """Start the API server again, on the same port and data, and wait until it is ready.

        Args:
            controllers: whether these are started anew: by themselves they come back after up to half a minute.
        """
        self._programs["kube-apiserver"].start()
        self._programs["kube-apiserver"].wait(lambda: self.api.answers("/readyz"))
        if controllers:
            self.restart_controllers()

    def restart_controllers(self) -> None:
        """Start the controllers anew; they know then what the API server tells, and nothing else."""
        self._programs["kube-controller-manager"].stop()
        self._start_manager()

    def save(self, folder: Path) -> None:
        """Stop everything and keep what etcd has, in a folder that is made anew; `restore` starts from there."""
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            # All that was answered is in etcd; an order to end would have the API server wait for its watches.
            self._programs[name].stop(signal.SIGTERM if name == "etcd" else signal.SIGKILL)
        self.api.close()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder / "etcd", folder)

    def restore(self, folder: Path) -> None:
        """Start etcd and the API server on a copy of what was kept, without controllers and with an empty audit log."""
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            self._programs[name].stop(signal.SIGKILL)
        self.api.close()
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)
        shutil.copytree(folder, self.folder / "etcd")
        audit_log(self.folder).unlink(missing_ok=True)
        self._programs["etcd"].start()
        self._programs["etcd"].wait(self.etcd.healthy)
        self.start_apiserver(controllers=False)

    @property
    def servers(self) -> tuple[int, int]:
        """The process ids of the API server and of etcd."""
        return self._programs["kube-apiserver"].pid, self._programs["etcd"].pid

    @property
    def audit_log(self) -> Path:
        """Where the API server writes down what it was asked."""
        return audit_log(self.folder)

    def compact(self) -> int:
        """Make etcd forget its history and give the revision that remains.

        The API server still knows what is in its watch cache; `expire` is for watches.
        """
        return self.etcd.compact()

    def expire(self, *, controllers: bool = True) -> int:
        """End every watch, and make all that came before too old to watch from: such a watch gets 410.

        The history is compacted while the API server is down, and it starts with an empty watch cache.
        """
        self.stop_apiserver()
        revision = self.compact()
        self.start_apiserver(controllers=controllers)
        return revision

    def kubeconfig(self, path: Path | None = None) -> Path:
        """Write a kubeconfig with the administrator's token, or give the one that is there."""
        return self._admin if path is None else self.identities.with_token(path)

    def token_kubeconfig(self, path: Path, user: str) -> Path:
        """Write a kubeconfig with the token of one of the `users`."""
        return self.identities.with_token(path, user)

    def certificate_kubeconfig(self, path: Path, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig with a client certificate of any user, who may be new."""
        return self.identities.with_certificate(path, user, groups)

    def allow(self, user: str, *rules: Json, name: str = "") -> str:
        """Let a user do what RBAC rules say, in all namespaces, and give the name of the role and its binding."""
        name = name or f"test-{user}"
        group = "rbac.authorization.k8s.io"
        head = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
        subject = {"kind": "User", "apiGroup": group, "name": user}
        role = {"kind": "ClusterRole", "apiGroup": group, "name": name}
        self.api.create(head | {"kind": "ClusterRole", "rules": list(rules)})
        self.api.create(head | {"kind": "ClusterRoleBinding", "subjects": [subject], "roleRef": role})
        until(lambda: self._may(user, rules[-1]), f"the role of {user}")
        return name

    def _may(self, user: str, rule: Json) -> bool:
        asked = {"group": rule["apiGroups"][-1], "resource": rule["resources"][-1], "verb": rule["verbs"][-1]}
        asked["resource"], _, asked["subresource"] = asked["resource"].partition("/")
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        spec = {"user": user, "resourceAttributes": asked}
        found = self.api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review | {"spec": spec})
        return bool(found["status"]["allowed"])

    def load(self, objects: Iterable[Json]) -> None:
        """Create objects and wait until they can be used, see `loading`."""
        load(self.api, objects)

    def await_use(self, objects: Iterable[Json]) -> None:
        """Wait until objects that exist can be used, see `loading`."""
        for obj in objects:
            await_use(self.api, obj)

    def objects(self, kind: str, namespace: str | None = None, *, labels: str = "") -> list[Json]:
        """List the objects of a kind, of all namespaces where none is told."""
        return self.api.objects(kind, namespace, labels=labels)

    def wipe(self) -> None:
        """Remove what tests have made, see `wiping`."""
        wipe(self.api)

    def kubectl(self, *arguments: str, stdin: str | Iterable[Json] = "", code: int = 0) -> str:
        """Run the real kubectl and give what it prints, errors included; its exit code must be as told.

        Args:
            arguments: the command.
            stdin: text, or objects to be written as YAML documents.
            code: the exit code.
        """
        text = stdin if isinstance(stdin, str) else "\n---\n".join(map(yaml.safe_dump, stdin))
        start: list[Any] = [self._kubectl, f"--kubeconfig={self._admin}", f"--cache-dir={self.folder / 'cache'}"]
        done = subprocess.run(
            [*start, *arguments],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=KUBECTL_SECONDS,
            check=False,
            env=os.environ | {"NO_PROXY": "*"},
        )
        assert done.returncode == code, done.stdout
        return done.stdout
