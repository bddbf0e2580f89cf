"""POST /dry-run: reads pods, asks the scheduler's loop, writes decision records.

Comes in: pods as YAML or JSON. Goes out: their decision records, written in pieces. The scheduler's loop decides,
between its own cycles; the port's thread reads and writes. `endpoint` takes requests, `pod_requests` says what one
asks, `interface` is what goes to the scheduler's loop and back, `record_answers` writes the records.
"""
