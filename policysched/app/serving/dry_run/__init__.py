"""POST /dry-run: reads pods, asks the scheduler's loop, writes decision records.

Comes in: pods as YAML or JSON. Goes out: their decision records, written in pieces. The scheduler's loop decides,
between its own cycles; the port's thread reads and writes. `endpoint` takes requests, `pod_requests` says what one asks,
`interface` is what it hands to the scheduler's loop, and `record_answers` what it writes of the records.
"""
