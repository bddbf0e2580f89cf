"""Scheduling: the cycle, the queue, bindings and reload. It knows a `Client`, not the network."""
