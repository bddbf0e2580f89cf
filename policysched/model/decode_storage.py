"""Turn what the API server or a file gives of volumes, claims and CSI objects into structs.

As in `policysched.model.decode`, an object with a malformed quantity is refused as a whole: a claim of a wrong size
would be given a wrong volume.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from policysched.model.decode import ObjectError, decode
from policysched.model.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Stored,
    VolumeAttachment,
)
from policysched.model.quantity import QuantityError, parse

Raw = bytes | Mapping[str, Any]
SHAPES: Final[Mapping[str, type[Stored]]] = {
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "StorageClass": StorageClass,
    "CSINode": CSINode,
    "CSIDriver": CSIDriver,
    "CSIStorageCapacity": CSIStorageCapacity,
    "VolumeAttachment": VolumeAttachment,
}
"""The kinds, as objects name them."""


def decode_stored(kind: str, raw: Raw) -> Stored:
    """Decode an object of one of the kinds.

    Raises:
        ObjectError: it is malformed.
    """
    made = decode(SHAPES[kind], kind, raw)
    for field, amount in _amounts(made):
        try:
            parse(amount)
        except QuantityError as error:
            metadata = made.metadata
            key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
            raise ObjectError(kind, key, str(error), field) from error
    return made


def _amounts(made: Stored) -> list[tuple[str, str | int | float]]:
    if isinstance(made, PersistentVolume):
        return [(f"spec.capacity.{name}", amount) for name, amount in made.spec.capacity.items()]
    if isinstance(made, PersistentVolumeClaim):
        return [(f"spec.resources.requests.{name}", amount) for name, amount in made.spec.resources.requests.items()]
    if isinstance(made, CSIStorageCapacity):
        sizes = (("capacity", made.capacity), ("maximumVolumeSize", made.maximum_volume_size))
        return [(field, amount) for field, amount in sizes if amount is not None]
    return []
