"""Events about pods, written in the background so that they never delay a binding.

Comes in: what is to be said of which pod. Goes out: requests to events.k8s.io/v1. `bodies` makes an event's bytes and
knows which repeat an earlier one, `writer` has a queue bounded in number and bytes, a few workers, and tries again.
"""
