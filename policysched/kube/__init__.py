"""Client of the Kubernetes API: credentials, lists, watches, writes.

`connection` has server and credentials, `transport` sends requests. `reflector` lists (`listing`) and watches one kind
and stores its objects (`object_cache`). `client` writes bindings, conditions and statuses, `events` writes events. Only
`app` and the packages above it import this package.
"""
