"""Kubernetes objects as typed structs; quantities, compiled selectors and taints, requests of pods.

Functions handle one object at a time; there are no arrays. `objects` has the structs, `decode` reads them, `defaults`
completes them as an API server does, `selection` compiles selectors. All packages above may import this package; it
imports none of them.
"""
