"""Which resources the sandbox serves: names, scope, subresources, and the registry that CRDs add to.

A resource is a row in a table here and knows nothing of the objects' rules. Objects of several API versions
of one resource share a storage key, so that events.k8s.io and core events are one store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.fields import struct, struct_name

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

# version kind plural scope(n|c) short-names subresources categories; "-" is none
_CORE = """
v1 Namespace namespaces c ns status,finalize -
v1 Node nodes c no status -
v1 Pod pods n po status,binding,eviction all
v1 Service services n svc status all
v1 Event events n ev - -
v1 ConfigMap configmaps n cm - -
v1 Secret secrets n - - -
v1 ServiceAccount serviceaccounts n sa - -
v1 ReplicationController replicationcontrollers n rc status,scale all
v1 PersistentVolume persistentvolumes c pv status -
v1 PersistentVolumeClaim persistentvolumeclaims n pvc status -
v1 Endpoints endpoints n ep - -
v1 ResourceQuota resourcequotas n quota status -
v1 LimitRange limitranges n limits - -
v1 Binding bindings n - - -
"""
_GROUPS = """
apps/v1 Deployment deployments n deploy status,scale all
apps/v1 ReplicaSet replicasets n rs status,scale all
apps/v1 StatefulSet statefulsets n sts status,scale all
apps/v1 DaemonSet daemonsets n ds status all
policy/v1 PodDisruptionBudget poddisruptionbudgets n pdb status -
scheduling.k8s.io/v1 PriorityClass priorityclasses c pc - -
storage.k8s.io/v1 StorageClass storageclasses c sc - -
storage.k8s.io/v1 CSINode csinodes c - - -
storage.k8s.io/v1 CSIDriver csidrivers c - - -
storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities n - - -
storage.k8s.io/v1 VolumeAttachment volumeattachments c - status -
storage.k8s.io/v1 VolumeAttributesClass volumeattributesclasses c vac - -
coordination.k8s.io/v1 Lease leases n - - -
events.k8s.io/v1 Event events n ev - -
resource.k8s.io/v1 ResourceClaim resourceclaims n - status -
resource.k8s.io/v1 ResourceClaimTemplate resourceclaimtemplates n - - -
resource.k8s.io/v1 ResourceSlice resourceslices c - - -
resource.k8s.io/v1 DeviceClass deviceclasses c - - -
rbac.authorization.k8s.io/v1 Role roles n - - -
rbac.authorization.k8s.io/v1 RoleBinding rolebindings n - - -
rbac.authorization.k8s.io/v1 ClusterRole clusterroles c - - -
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings c - - -
authorization.k8s.io/v1 SelfSubjectAccessReview selfsubjectaccessreviews c - - -
authorization.k8s.io/v1 SubjectAccessReview subjectaccessreviews c - - -
authorization.k8s.io/v1 SelfSubjectRulesReview selfsubjectrulesreviews c - - -
authentication.k8s.io/v1 TokenReview tokenreviews c - - -
authentication.k8s.io/v1 SelfSubjectReview selfsubjectreviews c - - -
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions c crd,crds status api-extensions
"""
_SINGULAR = {"endpoints": "endpoints"}
OBJECT_META: Json = struct("meta.ObjectMeta") or {}
_ROOT: Json = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": OBJECT_META}


@dataclass(frozen=True, slots=True)
class ApiResource:
    """One resource in one API version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    categories: tuple[str, ...] = ()
    list_kind: str = ""
    storage: str = ""
    verbs: tuple[str, ...] = ALL_VERBS
    custom: Json | None = field(default=None, compare=False)
    """The version of the definition that a custom resource is of."""

    @property
    def api_version(self) -> str:
        """The group and version as objects carry them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The resource's name in messages: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def prefix(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @property
    def key(self) -> str:
        """The storage key: versions of one resource share it."""
        return self.storage or self.qualified

    @property
    def has_status(self) -> bool:
        """Whether status is written apart from the rest."""
        return "status" in self.subresources

    @property
    def schema(self) -> Json:
        """The schema of the objects, with the metadata that a definition leaves out."""
        if self.custom is None:
            return struct(struct_name(self.group, self.kind)) or {"type": "object"}
        declared: Json = (self.custom.get("schema") or {}).get("openAPIV3Schema") or {}
        return declared | {"properties": (declared.get("properties") or {}) | _ROOT}

    def path(self, namespace: str, name: str = "", subresource: str = "") -> str:
        """Write the path of an object or, without a name, of the collection."""
        parts = [self.prefix]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *filter(None, (name, subresource))])


def _row(line: str) -> ApiResource:
    api_version, kind, plural, scope, short, subs, categories = line.split()
    group, _, version = api_version.rpartition("/")
    return ApiResource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=scope == "n",
        singular=_SINGULAR.get(plural, kind.lower()),
        short_names=_names(short),
        subresources=frozenset(_names(subs)),
        categories=_names(categories),
        list_kind=f"{kind}List",
        storage="events" if plural == "events" else "",
        verbs=("create",) if plural.endswith("reviews") or plural == "bindings" else ALL_VERBS,
    )


def _names(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


BUILTIN = tuple(_row(line) for line in (_CORE + _GROUPS).splitlines() if line)


def builtin(key: str) -> ApiResource:
    """Return a built-in resource by its storage key."""
    return next(row for row in BUILTIN if row.key == key)


PODS = builtin("pods")
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class Registry:
    """The served resources by group, version and plural; CRDs come and go."""

    def __init__(self) -> None:
        self._rows = {(row.group, row.version, row.plural): row for row in BUILTIN}

    def __iter__(self) -> Iterator[ApiResource]:
        return iter(self._rows.values())

    def find(self, group: str, version: str, plural: str) -> ApiResource | None:
        """Look a resource up as a path names it."""
        return self._rows.get((group, version, plural))

    def of_kind(self, kind: str, api_version: str = "") -> ApiResource | None:
        """Look a resource up by kind and, where given, API version."""
        for row in self:
            if row.kind == kind and api_version in ("", row.api_version):
                return row
        return None

    def stored_as(self, key: str) -> ApiResource | None:
        """Look a resource up by its storage key."""
        return next((row for row in self if row.key == key), None)

    def groups(self) -> dict[str, list[str]]:
        """List the versions of every group, the core group being the empty name."""
        found: dict[str, list[str]] = {}
        for row in self:
            versions = found.setdefault(row.group, [])
            if row.version not in versions:
                versions.append(row.version)
        return found

    def replace_custom(self, crd: str, rows: list[ApiResource]) -> None:
        """Serve these rows for a CRD (none: it is gone)."""
        kept = {key: row for key, row in self._rows.items() if row.custom is None or row.key != crd}
        self._rows = kept | {(row.group, row.version, row.plural): row for row in rows}
