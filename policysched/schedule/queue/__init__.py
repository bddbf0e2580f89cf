"""The scheduling queue: active, backoff, unschedulable and gated pods.

`queue` combines the `subqueues`. `hints` calls queueing hints with a time limit, `timers` wakes pods at a time,
`in_flight` keeps the changes during an attempt.
"""
