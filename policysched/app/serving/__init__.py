"""The HTTPS port of a scheduler: health, metrics, configuration, policies, dry-runs.

The port has its own thread and event loop, so that cycles and slow clients do not block each other. `thread` starts and
stops it, `server` accepts connections, `endpoints` answers requests, `access` authorizes them through the API server.
"""
