"""Plugins for volumes: VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits.

`claims` finds the claims of a pod, `volume_topology` the nodes of a volume, `matching` the volume for a claim,
`reservation` the volumes of an assumed pod.
"""
