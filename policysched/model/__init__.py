"""Kubernetes objects: typed structs, quantities, selectors, taints, requests.

Functions handle one object at a time; there are no arrays. `objects` has the structs, `decode` reads them, `defaults`
completes them as an API server does, `selection` compiles selectors. All packages above may import this package; it
imports none of them.
"""
