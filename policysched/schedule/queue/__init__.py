"""The scheduling queue: active, backoff, unschedulable and gated pods.

`queue` combines the `subqueues`. `hints` calls queueing hints, `moves` handles many pods in chunks, `timers` wakes pods
at a time, `in_flight` keeps the changes during an attempt.
"""
