"""HTTP interface of the sandbox: requests, tables, watch streams, discovery, OpenAPI.

Tests can inject faults into requests. Only the columns of `kubectl get` depend on the kind.
"""
