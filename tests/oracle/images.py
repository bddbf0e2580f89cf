"""Container images: what nodes hold and how pods name them.

Knows nothing of resources. Sizes belong to a name, with rare exceptions: kube-scheduler keeps the
size that the first node reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

MEBI = 2**20
DIGEST = "sha256:" + "0123456789abcdef" * 4
SIZES = {
    "nginx:latest": 180 * MEBI,
    "nginx:1.27": 190 * MEBI,
    "docker.io/library/nginx:latest": 180 * MEBI,
    "registry.example.com:5000/team/app:v2": 900 * MEBI,
    "registry.example.com:5000/team/app:latest": 950 * MEBI,
    f"registry.example.com/model@{DIGEST}": 3000 * MEBI,
    "registry.example.com/model:v1": 3000 * MEBI,
    "tiny:latest": 5 * MEBI,
    "big:1": 1500 * MEBI,
}
REFERENCES = [
    "nginx",
    "nginx:1.27",
    "nginx:latest",
    "docker.io/library/nginx",
    "registry.example.com:5000/team/app",
    "registry.example.com:5000/team/app:v2",
    f"registry.example.com/model@{DIGEST}",
    "registry.example.com/model:v1",
    "tiny",
    "big:1",
    "absent:1",
    "",
]


def on_node(rng: Random) -> list[dict[str, Any]]:
    """List a node's images; aliases of one image share an entry."""
    found = []
    for name in rng.sample(list(SIZES), rng.randint(0, 5)):
        size = SIZES[name] if rng.random() < 0.97 else SIZES[name] // 2
        names = [name, f"alias.example.com/{name.split(':')[0]}:x"] if rng.random() < 0.2 else [name]
        found.append({"names": names, "sizeBytes": size})
    return found


def reference(rng: Random) -> str:
    """Name an image as a pod does."""
    return rng.choice(REFERENCES)


def volumes(rng: Random) -> list[dict[str, Any]]:
    """Mount images as volumes."""
    return [
        {"name": f"data-{number}", "image": {"reference": rng.choice(REFERENCES[:-1]), "pullPolicy": "IfNotPresent"}}
        for number in range(rng.choice([1, 1, 2, 3]))
    ]
