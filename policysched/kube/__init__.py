"""The client side of the Kubernetes API: credentials, requests, list and watch, writes. It decides nothing.

Comes in: a kubeconfig or a service account, and what the scheduler wants written. Goes out: objects and their changes,
to a `Handler`; requests. `connection` knows the server and the credentials, `transport` sends requests; `reflector`
lists (`listing`) and watches one resource and keeps its objects (`object_cache`); `client` writes bindings, conditions
and statuses, `events` the events about pods. Only this package talks to an API server.
"""
