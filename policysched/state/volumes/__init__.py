"""Volumes, claims, storage classes and CSI objects, as stored and as assumed after a decision.

`storage` has the objects; `attachments` counts volumes per row and driver (`row_volumes`), with the names of
`csi_names`; `volume_users` finds the placed pods that use a claim or disk.
"""
