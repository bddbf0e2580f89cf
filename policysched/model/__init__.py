"""Kubernetes objects: typed structs, quantities, selectors, taints, requests.

Every function takes one object and returns one answer; there are no arrays. `objects` has the structs, `decode` reads
them, `defaults` completes them as an API server does, `selection` compiles selectors. All upper packages may import it;
it imports none.
"""
