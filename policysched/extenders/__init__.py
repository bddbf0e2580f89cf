"""HTTP extenders: services outside of the process that take part in decisions, as kube-scheduler's `extenders` do.

Comes in: what a configuration says of an extender, and objects as the API server wrote them. Goes out: an `Extender` of
the framework. `settings` is what is configured, `http_extender` asks, `wire` has the shapes of what is
sent and read, `bounded_json` decodes what is read in bounded time.
"""
