"""The plugins for volumes: VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.

Comes in: a pod's claims, the state's volumes, claims and storage classes. Goes out: reason codes a row, and what a pod
on its way to a node holds (`reservation`). `claims` finds them, `volume_topology` and `matching` say where a
volume can be used and which one a claim takes.
"""
