"""Store of the sandbox: objects, resource versions, admission, history for watches.

Every write passes admission, gets a resource version, and emits an event to listeners.
"""
