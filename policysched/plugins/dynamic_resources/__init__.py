"""DynamicResources: filters nodes by the devices that resource claims need, and allocates devices to claims.

`plugin` has the extension points. `pod_claims` finds the claims of a pod, `extended_resources` makes claims for
extended resources, `claim_rows` finds feasible nodes, `reservation` allocates and reserves, `claim_writes` writes.
"""
