"""The resources that the sandbox serves, with their schemas, and the registry that CustomResourceDefinitions extend.

`fields/resources.txt` has one resource per line: version, kind, plural, scope (n or c), short names, subresources,
categories, + if its metadata has a generation, and the selectable fields. The other files in that folder have one type
with its fields per line, `name=number:type`: `*type` if absent and empty differ, `/key` if the list merges by that key,
`/` if it merges as a set, `+number:type` for fields that JSON writes inline. `defaults.txt` has the unconditional
defaults of the API server. The fields are those of Kubernetes v1.37, which include those of v1.36. Each type becomes a
structural OpenAPI schema, as custom resources have, so the same code decodes, completes, merges and describes both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from policysched.apimachinery import Json, decode
from policysched.model.kinds import KINDS, POLICIES

GO_TYPE = "x-go-type"
"""Schema key under which a field's Go type is stored, because values are decoded as in Go."""
STRUCT = "x-struct"
"""Schema key under which the qualified name of a struct is stored, such as `core.Pod`."""
DEFAULTS = "x-defaults"
"""Schema key under which the defaults of a struct's fields are stored."""
_ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_FIELD = re.compile(
    r"(?:(?P<name>[\w$][\w$-]*)|\+)(?:=?(?P<number>\d+))?:(?P<pointer>\*?)(?P<type>[^/]+)(?:/(?P<key>\w*))?"
)
_FILES = (
    "core", "apps", "policy", "scheduling", "storage", "coordination", "events", "resource", "rbac", "apiextensions",
    "authorization", "autoscaling", "node",
)  # fmt: skip
"""Names of the files with the built-in types; each is the first word of the types' API group."""
_SCALARS: dict[str, Json] = {
    "string": {"type": "string", GO_TYPE: "string"},
    "bool": {"type": "boolean", GO_TYPE: "bool"},
    "int": {"type": "integer", "format": "int64", GO_TYPE: "int32"},
    "float": {"type": "number", "format": "double", GO_TYPE: "float64"},
    "bytes": {"type": "string", "format": "byte", GO_TYPE: "[]uint8"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}], GO_TYPE: "quantity"},
    "time": {"type": "string", "format": "date-time", GO_TYPE: "time"},
    "microtime": {"type": "string", "format": "date-time", GO_TYPE: "microtime"},
    "duration": {"type": "string", GO_TYPE: "duration"},
    "intorstring": {
        "oneOf": [{"type": "integer"}, {"type": "string"}],
        "format": "int-or-string",
        GO_TYPE: "intorstring",
    },
    "any": {"x-kubernetes-preserve-unknown-fields": True, GO_TYPE: "any"},
}


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field of a built-in struct; a field without a name is inlined: its JSON fields are fields of the struct."""

    name: str
    schema: Json
    number: int
    pointer: bool


def struct_name(group: str, kind: str) -> str:
    """Return the struct name of a built-in kind, such as `core.Pod`, whether or not the struct exists."""
    file = group.removesuffix(".k8s.io").removesuffix(".authorization") or "core"
    return f"{file if file in _FILES else ''}.{kind}"


def struct(name: str) -> Json | None:
    """Return the schema of a struct, shared and read-only; None if the struct is unknown."""
    return _structs()[0].get(name)


def rows(name: str) -> list[FieldRow]:
    """Return the fields of a built-in struct, in the order of the file that defines the struct."""
    return _structs()[1][name]


@cache
def _structs() -> tuple[dict[str, Json], dict[str, list[FieldRow]]]:
    """Read the schemas and the field rows of all built-in structs from the files."""
    lines = {f"{file}.{name}": rest for file in (*_FILES, "meta") for name, rest in _lines(file)}
    schemas: dict[str, Json] = {
        name: {"type": "object", "properties": {}, GO_TYPE: f"v1.{name.partition('.')[2]}", STRUCT: name}
        for name in lines
    }
    table = {
        name: [_field_row(text, name.partition(".")[0], schemas) for text in texts.split()]
        for name, texts in lines.items()
    }
    for name, schema in schemas.items():
        schema["properties"].update(_properties(name, table))
    for name, texts in _lines("defaults"):
        fields = (text.partition("=") for text in texts.split())
        schemas[name][DEFAULTS] = {path: decode(value.encode()) for path, _, value in fields}
    return schemas, table


def _lines(file: str) -> Iterator[tuple[str, str]]:
    text = files("policysched.apimachinery").joinpath("fields", f"{file}.txt").read_text("utf-8")
    for line in text.splitlines():
        first, _, rest = line.partition(" ")
        yield first, rest


def _field_row(text: str, file: str, schemas: dict[str, Json]) -> FieldRow:
    match = _FIELD.fullmatch(text)
    if match is None:
        raise ValueError(f"not a field: {text}")
    schema = _schema(match["type"], file, schemas)
    if match["key"] is not None:
        schema["x-kubernetes-patch-strategy"] = "merge"
        if match["key"]:
            schema["x-kubernetes-patch-merge-key"] = match["key"]
    return FieldRow(match["name"] or "", schema, int(match["number"] or 0), bool(match["pointer"]))


def _schema(text: str, file: str, schemas: dict[str, Json]) -> Json:
    if text[0] == "[":
        item = _schema(text[1:-1], file, schemas)
        return {"type": "array", "items": item, GO_TYPE: f"[]{item[GO_TYPE]}"}
    if text[0] == "{":
        item = _schema(text[1:-1], file, schemas)
        return {"type": "object", "additionalProperties": item, GO_TYPE: f"map[string]{item[GO_TYPE]}"}
    return _SCALARS.get(text) or schemas[text if "." in text else f"{file}.{text}"]


def _properties(name: str, table: dict[str, list[FieldRow]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for row in table[name]:
        found |= {row.name: row.schema} if row.name else _properties(row.schema[STRUCT], table)
    return found


@dataclass(frozen=True, slots=True)
class ApiResource:
    """One resource in one API version; all versions of a resource share a storage key."""

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
    counts_generations: bool = True
    selectable: tuple[str, ...] = ()
    custom: Json | None = field(default=None, compare=False)
    """The version entry of the CustomResourceDefinition; None for a built-in resource."""

    @property
    def api_version(self) -> str:
        """Group and version of the resource, as in an object's `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Resource name in messages, such as `pods` or `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def key(self) -> str:
        """Storage key of the resource; equal for the events of events.k8s.io and of the core group."""
        return self.storage or self.qualified

    @property
    def has_status(self) -> bool:
        """Whether the resource has a status subresource."""
        return "status" in self.subresources

    @property
    def schema(self) -> Json:
        """Schema of the objects, including the metadata that a CustomResourceDefinition omits."""
        if self.custom is None:
            return struct(struct_name(self.group, self.kind)) or _ANY
        declared: Json = (self.custom.get("schema") or {}).get("openAPIV3Schema") or {}
        root = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": struct("meta.ObjectMeta")}
        return declared | {"properties": (declared.get("properties") or {}) | root}


def _builtin(line: str) -> ApiResource:
    api_version, kind, plural, scope, *more = line.split()
    group, _, version = api_version.rpartition("/")
    lists = [() if text == "-" else tuple(text.split(",")) for text in more]
    return ApiResource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=scope == "n",
        singular=kind.lower(),
        short_names=lists[0],
        subresources=frozenset(lists[1]),
        categories=lists[2],
        list_kind=f"{kind}List",
        storage="events" if plural == "events" else "",
        verbs=("create",) if plural.endswith("reviews") or plural == "bindings" else ALL_VERBS,
        counts_generations=bool(lists[3]),
        selectable=lists[4],
    )


BUILTIN = tuple(_builtin(" ".join(line)) for line in _lines("resources"))


def _declared() -> Iterator[ApiResource]:
    """Yield resources for the kinds that the scheduler watches but the resource file does not list."""
    served = {row.kind for row in BUILTIN}
    for kind in KINDS.values():
        if kind.kind not in served and kind is not POLICIES:
            scope = "n" if kind.namespaced else "c"
            yield _builtin(f"{kind.api_version} {kind.kind} {kind.plural} {scope} - status - - -")


def builtin(key: str) -> ApiResource:
    """Return a built-in resource by its storage key."""
    return next(row for row in BUILTIN if row.key == key)


PODS = builtin("pods")


class Registry:
    """The resources that the sandbox serves; CustomResourceDefinitions add and remove resources."""

    def __init__(self) -> None:
        self._rows = {(row.group, row.version, row.plural): row for row in (*BUILTIN, *_declared())}

    def __iter__(self) -> Iterator[ApiResource]:
        return iter(self._rows.values())

    def find(self, group: str, version: str, plural: str) -> ApiResource | None:
        """Return the resource of a request path; None if the sandbox does not serve the path."""
        return self._rows.get((group, version, plural))

    def of_kind(self, kind: str, api_version: str = "") -> ApiResource | None:
        """Return the resource of a kind and, if given, apiVersion; None if the sandbox does not serve the kind."""
        return next((row for row in self if row.kind == kind and api_version in ("", row.api_version)), None)

    def stored_as(self, key: str) -> ApiResource | None:
        """Return the resource with a storage key; None if the sandbox does not serve such a resource."""
        return next((row for row in self if row.key == key), None)

    def groups(self) -> dict[str, list[str]]:
        """Return the served versions of every API group; the core group has an empty name."""
        found: dict[str, dict[str, None]] = {}
        for row in self:
            found.setdefault(row.group, {})[row.version] = None
        return {group: list(versions) for group, versions in found.items()}

    def serve(self, crd: Json, *, gone: bool = False) -> None:
        """Replace the resources of a CustomResourceDefinition, one per served version; with `gone`, remove them."""
        spec, names, key = crd["spec"], crd["spec"]["names"], crd["metadata"]["name"]
        stored = next((each["name"] for each in spec["versions"] if each.get("storage")), "")
        self._rows = {at: row for at, row in self._rows.items() if row.custom is None or row.key != key}
        for version in () if gone else spec["versions"]:
            if version.get("served"):
                self._rows[spec["group"], version["name"], names["plural"]] = ApiResource(
                    group=spec["group"],
                    version=version["name"],
                    kind=names["kind"],
                    plural=names["plural"],
                    namespaced=spec["scope"] == "Namespaced",
                    singular=names["singular"],
                    short_names=tuple(names.get("shortNames") or ()),
                    subresources=frozenset(version.get("subresources") or ()),
                    categories=tuple(names.get("categories") or ()),
                    list_kind=names["listKind"],
                    selectable=tuple(row["jsonPath"].lstrip(".") for row in version.get("selectableFields") or ()),
                    custom=version | {"storedVersion": stored},
                )
