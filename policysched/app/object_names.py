"""Names of objects that a user types: with a kind, as `kubectl get -o name` prints them, shortened or misspelt."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from policysched.errors import UsageError
from policysched.language.messages.suggestions import did_you_mean

_KINDS: Final = {
    "node": ("node", "nodes"),
    "policy": ("schedulingpolicy.policysched.io", "schedulingpolicy", "schedulingpolicies"),
}
"""How `kubectl` writes a kind before a name."""


def without_kind(kind: str, name: str) -> str:
    """Return a name without its kind: `n1` of `node/n1`."""
    before, slash, rest = name.partition("/")
    return rest if slash and before in _KINDS[kind] else name


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the name that was meant, or nothing.

    A name that begins with the given one comes first: `ip-10-0-1-17.eu-central-1.compute.internal` for `ip-10-0-1-17`.
    """
    names = sorted(known)
    longer = [one for one in names if name and one.startswith((f"{name}.", f"{name}-"))]
    return f"did you mean `{longer[0]}`?" if longer else did_you_mean(name, names)


def nearest_key(key: str, known: Collection[str]) -> str:
    """Return a sentence with the object `namespace/name` that was meant, or nothing.

    The same name in another namespace comes first, then similar names of the namespace, then of all namespaces.
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
    """Refuse names that do not exist.

    Args:
        kind: `node` or `policy`.
        names: The names, without kinds.
        known: All names that exist.
        where: The place of the objects, for the message.

    Raises:
        UsageError: a name does not exist; the text has the nearest name.
    """
    there = set(known)
    for name in names:
        if name not in there:
            raise UsageError("; ".join(filter(None, (f'no {kind} "{name}" in {where}', nearest(name, there)))))
