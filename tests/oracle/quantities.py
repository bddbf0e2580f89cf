"""Quantities in all the spellings that Kubernetes accepts, for generated cases.

Knows nothing of pods or nodes. Amounts are drawn first and spelled afterwards, so that cases stay
about as full as intended whatever the suffix; a few spellings miss the amount by a fraction of a
unit on purpose, because rounding up is where ports go wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from random import Random

Quantities: TypeAlias = "dict[str, str | int]"


def cpu(rng: Random, millis: int) -> str | int:
    """Spell an amount of CPU.

    Units: millis in thousandths of a core.
    """
    if millis % 1000 == 0 and rng.random() < 0.3:
        cores = millis // 1000
        whole: list[str | int] = [cores, f"{cores}e0", f"{cores}.0"]
        return rng.choice(whole)
    spellings = [
        f"{millis}m",
        f"{millis / 1000:.3f}",
        f"{millis * 1000}u",
        f"{millis * 1000 - 1}u",
        f"{millis * 1_000_000 + 1}n",
        f"{millis}e-3",
    ]
    plain = rng.random() < 0.6
    return spellings[0] if plain or millis == 0 else rng.choice(spellings)


def memory(rng: Random, mebibytes: int) -> str | int:
    """Spell an amount of memory, storage or huge pages.

    Units: mebibytes in 2**20 bytes.
    """
    size = mebibytes * 2**20
    spellings: list[str | int] = [
        f"{mebibytes}Mi",
        f"{mebibytes * 1024}Ki",
        f"{mebibytes / 1024:.4f}Gi",
        f"{size // 10**6}M",
        f"{size // 1000}k",
        f"{size // 10**6}e6",
        f"{size // 10**6}E6",
        f"{size * 1000 + 1}m",
        f"{size + 7}",
        size,
    ]
    plain = rng.random() < 0.6
    return spellings[0] if plain or mebibytes == 0 else rng.choice(spellings)


def tiny_memory(rng: Random) -> str:
    """Spell less than a byte, or a few: each is rounded up before it is added to others."""
    return rng.choice(["1n", "100m", "1500m", "1u", "3", "2001m"])
