"""Leader election by a Lease of coordination.k8s.io/v1, with client-go's semantics.

`lease` reads and writes the object, `elector` decides when to take it, renew it and give it up.
"""
