"""Leader election with a Lease, with client-go's semantics.

`lease` reads and writes the object, `elector` acquires, renews and releases it.
"""
