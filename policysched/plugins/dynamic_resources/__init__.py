"""DynamicResources: allocate the devices of resource claims to pods.

`plugin` has the extension points. `pod_claims` finds the claims of a pod, `extended_resources` makes claims for
extended resources, `claim_rows` finds feasible nodes, `reservation` allocates and reserves, `claim_writes` writes.
"""
