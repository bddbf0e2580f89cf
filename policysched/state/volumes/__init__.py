"""Volumes, claims, storage classes and CSI objects: as stored, and as assumed for pods that are being bound.

Comes in: objects of the API and assumed bindings. Goes out: lookups, the volumes that a claim can still take, and how
many volumes of each driver are attached to each node. `storage` has objects as stored and assumed; `attachments` counts
by row and driver (`row_volumes`), under the names that drivers know (`csi_names`); `volume_users` has the placed pods
that use a claim or a disk.
"""
