"""HTTP: requests in, JSON, tables and watch streams out; discovery and OpenAPI for kubectl.

A request is taken apart (resource, namespace, name, subresource, body) and answered from the storage, or by a fault
that a test has set for it. Nothing here knows a kind but for the columns that `kubectl get` prints.
"""
