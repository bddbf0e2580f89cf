"""HTTP interface of the sandbox: requests, tables, watch streams, discovery, OpenAPI.

Tests can set faults for requests. Only the columns of `kubectl get` depend on the kind.
"""
