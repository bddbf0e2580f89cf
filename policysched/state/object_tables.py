"""`ObjectTables`: objects of further kinds by key. `Workloads`: the label selectors of Services and controllers.

Source: client-go/tools/cache/store.go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping
from typing import Any, TypeVar

from policysched.model.custom_objects import CustomObject, custom_kind
from policysched.model.kinds import KINDS, ApiKind, CustomResource
from policysched.model.objects import LabelSelector, Service, Workload
from policysched.model.selection.selectors import LabelMatcher, SelectorError, compile_selector
from policysched.state.cluster_events import Change, change_of

T = TypeVar("T")
Selector = Mapping[str, str] | LabelSelector
MAX_ASKED = 100_000
"""Maximum number of read selectors that `Workloads` remembers; beyond it, the stamp changes and all are forgotten."""


class ObjectTables:
    """The objects of the kinds that are stored only by name: by kind and key (`namespace/name`, or `name`)."""

    __slots__ = ("_tables",)

    def __init__(self) -> None:
        self._tables: defaultdict[str, dict[str, Any]] = defaultdict(dict)

    def of(self, shape: type[T]) -> dict[str, T]:
        """Return the dictionary of a kind's objects by key; it is always the same dictionary."""
        return self._tables[shape.__name__]

    def custom(self, resource: CustomResource) -> dict[str, CustomObject]:
        """Return the objects of a custom resource by key."""
        return self._tables[resource.value]

    def put(self, obj: Any) -> Change:
        """Add or replace an object of a kind that is stored only by name; return the change."""
        kind = _kind_of(obj)
        table, key = self._tables[kind.kind], kind.key(obj)
        old = table.get(key)
        table[key] = obj
        return change_of(kind.resource, old, obj)

    def drop(self, obj: Any) -> Change:
        """Remove an object of a kind that is stored only by name; return the change."""
        kind = _kind_of(obj)
        return change_of(kind.resource, self._tables[kind.kind].pop(kind.key(obj), None), None)


def _kind_of(obj: Any) -> ApiKind[Any]:
    return custom_kind(obj.resource) if isinstance(obj, CustomObject) else KINDS[type(obj).__name__]


class Workloads:
    """The label selectors of Services and workload controllers, for default topology spread constraints.

    Spread constraints that are derived from them are prepared once for many pods, until `stamp` changes. Controllers
    change all the time in a busy cluster, so `stamp` changes only if a selector changes that was read since.
    """

    __slots__ = ("_asked", "_compiled", "_controllers", "_services", "stamp")

    def __init__(self) -> None:
        self.stamp = 0
        """A number that changes if a selector that was read may have changed."""
        self._services: dict[str, dict[str, Mapping[str, str]]] = {}
        self._controllers: dict[tuple[str, str, str], Selector] = {}
        self._compiled: dict[tuple[str, str, str], LabelMatcher] = {}
        """The compiled selectors of workload controllers, by kind, namespace and name."""
        self._asked: set[Hashable] = set()

    def services(self, namespace: str) -> Collection[Mapping[str, str]]:
        """Return the label selectors of the Services in a namespace, without Services that have no selector."""
        self._remember(namespace)
        return self._services.get(namespace, {}).values()

    def controller(self, kind: str, namespace: str, name: str) -> Selector | None:
        """Return the label selector of a workload controller; None if the controller is unknown or has no selector."""
        key = (kind, namespace, name)
        self._remember(key)
        return self._controllers.get(key)

    def demands(self, kind: str, namespace: str, name: str) -> Mapping[str, str] | LabelMatcher | None:
        """Return the compiled label selector of a workload controller; None if the controller has none."""
        selector = self.controller(kind, namespace, name)
        if not isinstance(selector, LabelSelector):
            return selector
        key = (kind, namespace, name)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = _compiled(selector)
        return compiled

    def put(self, workload: Workload) -> None:
        """Add or replace a Service or workload controller."""
        metadata = workload.metadata
        if isinstance(workload, Service):
            self._put_service(metadata.namespace, metadata.name, workload.spec.selector or {})
        else:
            self._put_controller((_kind(workload), metadata.namespace, metadata.name), workload.spec.selector)

    def drop(self, workload: Workload) -> None:
        """Remove a Service or workload controller."""
        metadata = workload.metadata
        if isinstance(workload, Service):
            self._put_service(metadata.namespace, metadata.name, {})
        else:
            self._put_controller((_kind(workload), metadata.namespace, metadata.name), None)

    def _put_service(self, namespace: str, name: str, selector: Mapping[str, str]) -> None:
        named = self._services.setdefault(namespace, {})
        if named.get(name, {}) != selector:
            named[name] = selector
            self._changed(namespace)
        if not selector:
            named.pop(name, None)
        if not named:
            del self._services[namespace]

    def _put_controller(self, key: tuple[str, str, str], selector: Selector | None) -> None:
        if self._controllers.get(key) == selector:
            return
        self._compiled.pop(key, None)
        if selector is None:
            del self._controllers[key]
        else:
            self._controllers[key] = selector
        self._changed(key)

    def _remember(self, question: Hashable) -> None:
        if len(self._asked) >= MAX_ASKED:
            self._start_over()
        self._asked.add(question)

    def _changed(self, question: Hashable) -> None:
        if question in self._asked:
            self._start_over()

    def _start_over(self) -> None:
        self._asked.clear()
        self.stamp += 1


def _compiled(selector: LabelSelector) -> LabelMatcher:
    try:
        return compile_selector(selector)
    except SelectorError:
        return compile_selector(None)


def _kind(workload: Workload) -> str:
    return type(workload).__name__
