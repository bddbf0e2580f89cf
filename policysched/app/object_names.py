"""Matching of object names that users type: with a kind as in `kubectl get -o name`, shortened or misspelt."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from policysched.errors import UsageError
from policysched.language.messages.suggestions import did_you_mean

_KINDS: Final = {
    "node": ("node", "nodes"),
    "policy": ("schedulingpolicy.policysched.io", "schedulingpolicy", "schedulingpolicies"),
}
"""Kinds as `kubectl` writes them before a name."""


def without_kind(kind: str, name: str) -> str:
    """Return a name without its kind: `n1` for `node/n1`."""
    before, slash, rest = name.partition("/")
    return rest if slash and before in _KINDS[kind] else name


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence that suggests the known name most similar to a name; empty if no name is similar.

    A name that starts with the given one has priority: `ip-10-0-1-17.eu-central-1.compute.internal` for `ip-10-0-1-17`.
    """
    names = sorted(known)
    longer = [one for one in names if name and one.startswith((f"{name}.", f"{name}-"))]
    return f"did you mean `{longer[0]}`?" if longer else did_you_mean(name, names)


def nearest_key(key: str, known: Collection[str]) -> str:
    """Return a sentence that suggests the `namespace/name` most similar to a key; empty if none is similar.

    The same name in another namespace has priority, then similar names in the namespace, then in all namespaces.
    """
    namespace, _, name = key.partition("/")
    keys = {one.partition("/")[2]: one for one in sorted(known, reverse=True)}
    if name in keys:
        return f"did you mean `{keys[name]}`?"
    inside = {one.partition("/")[2]: one for one in known if one.startswith(f"{namespace}/")}
    for names in (inside, keys):
        meant = nearest(name, names)
        if meant:
            return f"did you mean `{names[meant.split('`')[1]]}`?"
    return ""


def refuse_unknown(kind: str, names: Iterable[str], known: Collection[str], where: str) -> None:
    """Raise an error, with a suggestion, for a name that no object of a kind has.

    Args:
        kind: `node` or `policy`.
        names: The names, without kinds.
        known: All names that exist.
        where: Source of the objects, for the message.

    Raises:
        UsageError: a name does not exist; the text contains the nearest name.
    """
    there = set(known)
    for name in names:
        if name not in there:
            raise UsageError("; ".join(filter(None, (f'no {kind} "{name}" in {where}', nearest(name, there)))))
